import base64
import json
import stat
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from karpy.adapters.controlplane.credentials import (
    CONTEXT,
    authority_of,
    make_signing_key,
    make_tokens,
    tokens_file,
    write_kubeconfig,
)


def certificate(text: str) -> str:
    return f"-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n"


def test_a_signing_key_is_one() -> None:
    key = load_pem_private_key(make_signing_key().encode(), password=None)

    assert isinstance(key, EllipticCurvePrivateKey)
    assert isinstance(key.curve, SECP256R1)


def test_no_two_signing_keys_are_the_same() -> None:
    assert make_signing_key() != make_signing_key()


def test_the_last_certificate_of_a_chain_vouches_for_it() -> None:
    assert authority_of(certificate("bGVhZg==") + certificate("cm9vdA==")) == certificate(
        "cm9vdA=="
    )


def test_a_chain_that_is_still_being_written_has_no_authority_yet() -> None:
    assert authority_of(certificate("bGVhZg==") + "-----BEGIN CERTIFICATE-----\ncm9v") == ""


def test_every_user_has_a_token_and_groups() -> None:
    users = {"ada": ("dev", "ops"), "bob": ()}
    tokens = make_tokens(users)

    written = tokens_file(users, tokens)

    assert written == f'{tokens["ada"]},ada,ada,"dev,ops"\n{tokens["bob"]},bob,bob,""\n'
    assert tokens["ada"] != tokens["bob"]


def test_a_kubeconfig_trusts_the_server_and_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    token = make_tokens({"ada": ()})["ada"]

    write_kubeconfig(path, server="https://127.0.0.1:6443", authority="root", token=token)

    written = json.loads(path.read_text())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert written["current-context"] == CONTEXT
    assert written["users"][0]["user"] == {"token": token}
    assert written["clusters"][0]["cluster"] == {
        "server": "https://127.0.0.1:6443",
        "certificate-authority-data": base64.b64encode(b"root").decode(),
    }
