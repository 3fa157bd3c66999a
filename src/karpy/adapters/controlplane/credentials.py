"""Keys, tokens and kubeconfigs of a control plane, made with the standard library only."""

import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from secrets import randbelow, token_hex
from typing import Final

ADMIN: Final = "admin"
CONTEXT: Final = "karpy-controlplane"
"""The only context in a kubeconfig that Karpy writes; it marks the file as Karpy's."""

_KEY_HEAD: Final = bytes.fromhex("30310201010420")
_KEY_TAIL: Final = bytes.fromhex("a00a06082a8648ce3d030107")
_KEY_BYTES: Final = 32
_ORDER_OF_P256: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_CERTIFICATE: Final = re.compile(
    r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----\n", re.DOTALL
)


def make_signing_key() -> str:
    """
    Make a private key to sign service account tokens with.

    A key on the curve P-256 is a random number; Go computes the public half by itself. The bytes
    around it are RFC 5915: version 1, the number, the name of the curve.
    """
    number = randbelow(_ORDER_OF_P256 - 1) + 1
    key = _KEY_HEAD + number.to_bytes(_KEY_BYTES, "big") + _KEY_TAIL
    text = b64encode(key).decode()
    lines = [text[start : start + 64] for start in range(0, len(text), 64)]
    return "\n".join(["-----BEGIN EC PRIVATE KEY-----", *lines, "-----END EC PRIVATE KEY-----", ""])


def authority_of(chain: str) -> str:
    """Return the authority of a certificate chain, its last one; empty if it is incomplete."""
    certificates = _CERTIFICATE.findall(chain)
    return certificates[-1] if len(certificates) > 1 else ""


def make_tokens(users: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Make a random token for each user."""
    return {user: token_hex(16) for user in users}


def tokens_file(users: Mapping[str, Sequence[str]], tokens: Mapping[str, str]) -> str:
    """Return users, groups and tokens in the form of kube-apiserver's `--token-auth-file`."""
    return "".join(
        f'{tokens[user]},{user},{user},"{",".join(groups)}"\n' for user, groups in users.items()
    )


def write_kubeconfig(path: Path, *, server: str, authority: str, token: str) -> None:
    """Write a kubeconfig with one user, readable by its owner only."""
    cluster = {"server": server, "certificate-authority-data": b64encode(authority.encode())}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": CONTEXT,
        "clusters": [{"name": CONTEXT, "cluster": cluster}],
        "users": [{"name": CONTEXT, "user": {"token": token}}],
        "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": CONTEXT}}],
    }
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_text(json.dumps(document, indent=2, default=bytes.decode) + "\n", encoding="utf-8")
