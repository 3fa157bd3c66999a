"""A kubeconfig for the users of an embedded cluster."""

import json
import os
from base64 import b64encode
from pathlib import Path
from typing import Any, Final

from karpy.codec.limits import Unparsable
from karpy.codec.yamltext import parse_yaml

CONTEXT: Final = "karpy-cluster"
"""The only context in a kubeconfig that Karpy writes; it marks the file as Karpy's."""


def is_ours(path: Path) -> bool:
    """Say whether a file is a kubeconfig that Karpy wrote, without additions."""
    try:
        found: Any = parse_yaml(path.read_text(encoding="utf-8"))
        return [each["name"] for each in found["contexts"]] == [CONTEXT]
    except (OSError, UnicodeDecodeError, Unparsable, TypeError, KeyError):
        return False


def write_kubeconfig(path: Path, *, server: str, authority: str, token: str) -> None:
    """Write a kubeconfig with one context, readable by its owner only."""
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
    """Write a file that only its owner can read at any time."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
        # `os.open` does not change the mode of an existing file.
        path.chmod(0o600)
        file.write(text)
