"""Write lock files with hashes, and the SBOM: `python -m tests.tidy.lock`, or `make lock`."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from tests.tidy.repository import ROOT, shown

LOCK: Final = ROOT / "uv.lock"
REQUIREMENTS: Final = ROOT / "deploy" / "requirements.txt"
BUILDER: Final = ROOT / "deploy" / "requirements-build.txt"
SBOM: Final = ROOT / "deploy" / "sbom.cdx.json"
_UV: Final = Path(sys.executable).with_name("uv")
_INDEX: Final = "https://pypi.org/simple"
_NOTE: Final = """\
# What `karpy run` needs, with any cloud: every version with its hashes; written by `make lock`.
# pip install --require-hashes -r deploy/requirements.txt
"""
_BUILDER_NOTE: Final = """\
# What makes the wheel of Karpy; written by `make lock`.
# pip install --require-hashes -r deploy/requirements-build.txt
"""
_BUILDER_PIN: Final = re.compile(r"(?m)^uv==\S+ \\\n(?: +--hash=\S+(?: \\)?\n)+")
RUN_BY: Final = ("aws",)
"""The extras that `karpy run` may need: one image serves every cloud."""
_EXPORT: Final = ("export", "--frozen", "--no-dev", "--quiet", *(f"--extra={x}" for x in RUN_BY))


def main() -> None:
    """Lock the newest versions that pyproject.toml allows."""
    _uv("lock", "--quiet", "--upgrade", f"--default-index={_INDEX}")
    for path, text in {
        REQUIREMENTS: _requirements(),
        BUILDER: _builder(),
        SBOM: _sbom(),
    }.items():
        path.write_text(text, encoding="utf-8")
    print(f"wrote {', '.join(map(shown, (LOCK, REQUIREMENTS, BUILDER, SBOM)))}")


def _requirements() -> str:
    return _NOTE + _uv(*_EXPORT, "--no-emit-project", "--no-header", "--format=requirements.txt")


def _builder() -> str:
    """Return the lock of uv, which builds the wheel offline."""
    whole = _uv(
        "export", "--frozen", "--extra=dev", "--no-emit-project", "--format=requirements.txt"
    )
    (pin,) = _BUILDER_PIN.findall(whole)
    return _BUILDER_NOTE + str(pin)


def _sbom() -> str:
    """Return the locked packages as CycloneDX; equal locks give equal texts."""
    found: dict[str, Any] = json.loads(
        _uv(*_EXPORT, "--preview-features=sbom-export", "--format=cyclonedx1.5")
    )
    del found["serialNumber"]
    del found["metadata"]["timestamp"]
    del found["metadata"]["tools"]
    return json.dumps(found, indent=1) + "\n"


def _uv(*words: str) -> str:
    # A mirror in the configuration of this machine must not get into shared files.
    environ = {name: text for name, text in os.environ.items() if not name.startswith("UV_")}
    argv = [str(_UV), "--no-config", "--directory", str(ROOT), *words]
    done = subprocess.run(argv, check=True, stdout=subprocess.PIPE, encoding="utf-8", env=environ)
    return done.stdout


if __name__ == "__main__":
    main()
