"""
Build wheel and sources, and run the wheel by `uvx`: `python -m tests.package`.

Packages that the wheel needs are fetched in the versions that pyproject.toml allows.
"""

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from karpy import __version__
from tests.tidy.repository import ROOT

_UV: Final = Path(sys.executable).with_name("uv")
_WHEEL: Final = f"karpy-{__version__}-py3-none-any.whl"
_SOURCES: Final = f"karpy-{__version__}.tar.gz"


def main() -> None:
    """Build, look inside, and run."""
    with TemporaryDirectory(prefix="karpy-package-") as name:
        folder = Path(name)
        # Without --wheel it is built from the sources, as those who repackage it build it.
        _uv("build", "--quiet", "--out-dir", str(folder), str(ROOT), folder=folder)
        wheel, sources = folder / _WHEEL, folder / _SOURCES
        _check_wheel(wheel)
        _check_sources(sources)
        version = _uvx(wheel, "--version")
        assert version.startswith(f"karpy {__version__}"), version
        answer = json.loads(_uvx(wheel, "demo", "--speed", "20", "--output", "json"))
        assert answer["isComplete"], answer
    print("built, and runs by uvx")


def _check_wheel(wheel: Path) -> None:
    """See that the wheel has what runs, what it shows and its licence, and no tests."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = archive.read(f"karpy-{__version__}.dist-info/METADATA").decode()
    for each in ("py.typed", "cli/main.py", "examples/cluster/10-nodepool.yaml"):
        assert f"karpy/{each}" in names, each
    assert any(each.endswith("/licenses/LICENSE") for each in names)
    assert not [each for each in names if each.startswith("tests") or each.endswith("ruff.toml")]
    assert "Provides-Extra: tui" in metadata


def _check_sources(sources: Path) -> None:
    """See that the sources can be built from again."""
    with tarfile.open(sources) as archive:
        names = {each.partition("/")[2] for each in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "src/karpy/__init__.py"} <= names


def _uvx(wheel: Path, *words: str) -> str:
    argv = ("tool", "run", "--quiet", "--isolated", "--from", str(wheel), "karpy", *words)
    return _uv(*argv, folder=wheel.parent)


def _uv(*words: str, folder: Path) -> str:
    # What is installed here must not help what is built to run.
    environ = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    argv = [str(_UV), "--no-config", *words]
    done = subprocess.run(
        argv, check=False, capture_output=True, encoding="utf-8", env=environ, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


if __name__ == "__main__":
    main()
