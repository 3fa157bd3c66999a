"""The version and origin of this build, and the versions that it is compatible with."""

import json
import platform
from importlib.metadata import PackageNotFoundError, distribution
from typing import Final

from karpy import __version__
from karpy.adapters.controlplane.bundles import CONTROL_PLANE, PEER

AWS_PROVIDER: Final = "v1.14"
"""The version of Karpenter's AWS provider whose API and settings Karpy implements."""
OLDEST_KUBERNETES: Final = "v1.29"
"""The lowest version in the chart; the validation rules of the CRDs need it."""
_DIGITS: Final = 12


def version_text() -> str:
    """Return all versions, one per line."""
    build = build_text(_origin())
    system = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    rows = (
        ("karpy", f"{__version__}{f' ({build})' if build else ''}, {system}"),
        ("karpenter", f"API v1, as core {PEER.version} and AWS provider {AWS_PROVIDER} have it"),
        ("kubernetes", f"{OLDEST_KUBERNETES} or newer, tested with {CONTROL_PLANE.version}"),
    )
    return "\n".join(f"{name} {text}" for name, text in rows)


def build_text(origin: str | None) -> str:
    """Return the installed commit or file, from `direct_url.json` (PEP 610)."""
    noted = json.loads(origin) if origin else {}
    if commit := noted.get("vcs_info", {}).get("commit_id"):
        return f"commit {commit[:_DIGITS]}"
    if noted.get("dir_info", {}).get("editable"):
        return "sources"
    hashes = noted.get("archive_info", {}).get("hashes", {})
    return f"sha256 {hashes['sha256'][:_DIGITS]}" if "sha256" in hashes else ""


def _origin() -> str | None:
    try:
        return distribution("karpy").read_text("direct_url.json")
    except PackageNotFoundError:
        return None
