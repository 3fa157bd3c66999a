"""Build programs once, and cache them."""

import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from time import monotonic
from typing import Final

from karpy.adapters.controlplane.bundles import CONTROL_PLANE, Bundle
from karpy.adapters.controlplane.guard import Guard, Process
from karpy.adapters.controlplane.programs import (
    built_folder,
    chosen_folder,
    missing_programs,
    require_programs,
)
from karpy.adapters.controlplane.toolchain import OnProgress, find_go
from karpy.errors import ControlPlaneMissing

if sys.platform != "win32":
    import fcntl

_SECONDS_BETWEEN_LINES: Final = 15.0
_SECONDS_TO_GIVE_UP: Final = 10.0
_LAST_LINES: Final = 12
_MODULE: Final = "module"


def ensure_programs(
    environ: Mapping[str, str], on_progress: OnProgress, bundle: Bundle = CONTROL_PLANE
) -> Path:
    """Return the folder of the programs; build them first if they are missing."""
    if chosen_folder(environ, bundle):
        return require_programs(environ, bundle)
    folder = built_folder(environ, bundle)
    if not missing_programs(folder, bundle.packages):
        return folder
    if sys.platform == "win32":
        raise ControlPlaneMissing(
            what=bundle.what,
            problem="it runs on Linux and macOS only",
            hint="run karpy inside WSL",
        )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _locked(folder.with_suffix(".lock"), on_progress, bundle):
            # The process that held the lock before may have built them.
            if missing_programs(folder, bundle.packages):
                _build(bundle, folder, environ, on_progress)
    except OSError as error:
        raise ControlPlaneMissing(
            what=bundle.what,
            problem=f"cannot build into `{folder}`: {error}",
            hint="make room or name another cache folder in XDG_CACHE_HOME",
        ) from error
    return folder


@contextmanager
def _locked(lock: Path, on_progress: OnProgress, bundle: Bundle) -> Iterator[None]:
    """Hold a lock that ends with this process, so that a crash cannot leave it behind."""
    with lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_progress(f"waiting for another build of {bundle.title} to end")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(
    bundle: Bundle, folder: Path, environ: Mapping[str, str], on_progress: OnProgress
) -> None:
    """Build in a temporary folder and rename it, so that the folder is complete or missing."""
    go = find_go(environ, on_progress, bundle)
    on_progress(
        f"building {bundle.title} {bundle.version} with {go}; "
        f"this takes {bundle.duration} or so, once"
    )
    start = monotonic()
    fresh = Path(mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
    try:
        with Guard(fresh, patience_seconds=_SECONDS_TO_GIVE_UP) as guard:
            builder = _Builder(guard, go, bundle, fresh, folder.with_suffix(".log"))
            for number, name in enumerate(bundle.packages, start=1):
                prefix = f"{number} of {len(bundle.packages)} {name}"
                builder.build(name, environ, _with_prefix(on_progress, prefix))
        shutil.rmtree(fresh / _MODULE)
        shutil.rmtree(folder, ignore_errors=True)
        fresh.rename(folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    on_progress(f"built in {monotonic() - start:.0f} s: {folder}")


def _with_prefix(on_progress: OnProgress, prefix: str) -> OnProgress:
    return lambda text: on_progress(f"{prefix}: {text}")


def _has_ended(process: Process, seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


class _Builder:
    """Builds one program after the other, so that shared packages are compiled once."""

    def __init__(self, guard: Guard, go: Path, bundle: Bundle, folder: Path, log: Path) -> None:
        self._guard = guard
        self._go = go
        self._bundle = bundle
        self._folder = folder
        self._log = log
        # Go must run beside a go.mod, and the folder of this package may be read-only.
        self._module = folder / _MODULE
        self._module.mkdir()
        for name in ("go.mod", "go.sum"):
            (self._module / name).write_text(bundle.source(name), encoding="utf-8")
        log.write_bytes(b"")

    def build(self, name: str, environ: Mapping[str, str], on_progress: OnProgress) -> None:
        """Build a program, and report the progress."""
        start = monotonic()
        lines_before = self._lines()
        process = self._guard.spawn(
            [*self._command(), "-o", self._folder / name, self._bundle.packages[name]],
            log=self._log,
            environ={**environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"},
            folder=self._module,
        )
        while not _has_ended(process, _SECONDS_BETWEEN_LINES):
            on_progress(f"{self._lines() - lines_before:,} packages, {monotonic() - start:.0f} s")
        if process.returncode:
            raise self._why_not(name)
        on_progress(f"done after {monotonic() - start:.0f} s")

    def _command(self) -> list[str | Path]:
        stamp = f"-X {self._bundle.stamp}={self._bundle.version}"
        flags = ["-v", "-trimpath", "-tags", self._bundle.tags, "-ldflags", f"-s -w {stamp}"]
        # Debug information is stripped anyway; not compiling it saves a tenth of the CPU time.
        return [self._go, "build", *flags, "-gcflags", "all=-dwarf=false"]

    def _lines(self) -> int:
        """Count the lines of Go's log: one for each package that it downloads or compiles."""
        return self._log.read_bytes().count(b"\n")

    def _why_not(self, name: str) -> ControlPlaneMissing:
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        last = "\n".join(lines[-_LAST_LINES:])
        return ControlPlaneMissing(
            what=self._bundle.what,
            problem=f"`{name}` cannot be built; the end of {self._log}:\n{last}",
            hint="mend what Go complains about (often the network: GOPROXY, HTTPS_PROXY) and try "
            f"again{self._bundle.or_elsewhere}",
        )
