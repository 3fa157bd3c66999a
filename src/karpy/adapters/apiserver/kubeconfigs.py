"""A kubeconfig for the users of an embedded cluster."""

import json
import os
from base64 import b64encode
from pathlib import Path
from typing import Any, Final

from karpy.codec.limits import Unparsable
from karpy.codec.yamltext import parse_yaml

CONTEXT: Final = "karpy-cluster"
"""The name of the only context in our kubeconfigs, by which we know them again."""


def is_ours(path: Path) -> bool:
    """Tell whether a file is a kubeconfig that Karpy wrote, without additions."""
    try:
        found: Any = parse_yaml(path.read_text(encoding="utf-8"))
        return [each["name"] for each in found["contexts"]] == [CONTEXT]
    except (OSError, UnicodeDecodeError, Unparsable, TypeError, KeyError):
        return False


def write_kubeconfig(path: Path, *, server: str, authority: str, token: str) -> None:
    """Write a kubeconfig with one context, for no eyes but its owner's."""
    cluster = {
        "server": server,
        "certificate-authority-data": b64encode(authority.encode()).decode(),
    }
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": CONTEXT,
        "clusters": [{"name": CONTEXT, "cluster": cluster}],
        "users": [{"name": CONTEXT, "user": {"token": token}}],
        "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": CONTEXT}}],
    }
    write_privately(path, json.dumps(document, indent=2) + "\n")


def write_privately(path: Path, text: str) -> None:
    """Write a file that only its owner may read, from its first byte on."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
        # One that was there before keeps its mode otherwise.
        path.chmod(0o600)
        file.write(text)
