"""The folders of built programs."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from karpy.adapters.controlplane.bundles import CONTROL_PLANE, Bundle
from karpy.errors import ControlPlaneMissing

_OTHER_NAMES: Final[Mapping[str, str]] = {"etcd": "server"}
"""`go build` names a program after the last part of its package path."""


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder for everything that is built and cached, outside of any repository."""
    root = environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME") or Path.home(), ".cache")
    return Path(root, "karpy")


def built_folder(environ: Mapping[str, str], bundle: Bundle = CONTROL_PLANE) -> Path:
    """Return the folder for these versions of the programs, which may not exist yet."""
    return cache_folder(environ) / bundle.name / bundle.digest


def chosen_folder(environ: Mapping[str, str], bundle: Bundle = CONTROL_PLANE) -> Path | None:
    """Return the folder that the environment names, or None."""
    chosen = environ.get(bundle.assets)
    return Path(chosen) if chosen else None


def missing_programs(
    folder: Path, names: Iterable[str] = tuple(CONTROL_PLANE.packages)
) -> list[str]:
    """List the programs that are not in a folder."""
    return [name for name in names if _program(folder, name) is None]


def find_program(folder: Path, name: str, bundle: Bundle = CONTROL_PLANE) -> Path:
    """Return the path of a program."""
    path = _program(folder, name)
    if path is None:
        raise ControlPlaneMissing(
            what=bundle.what,
            problem=f"there is no program `{name}` in `{folder}`",
            hint=f"{_how_to_build(bundle)}, or add it",
        )
    return path


def require_programs(environ: Mapping[str, str], bundle: Bundle = CONTROL_PLANE) -> Path:
    """Return the folder of the programs; raise ControlPlaneMissing if one of them is not there."""
    chosen = chosen_folder(environ, bundle)
    folder = chosen or built_folder(environ, bundle)
    missing = missing_programs(folder, bundle.packages)
    if missing and chosen:
        raise ControlPlaneMissing(
            what=bundle.what,
            problem=f"{bundle.assets} is `{folder}`, which has no {', '.join(missing)}",
            hint=f"add what is missing, or unset {bundle.assets} and {_how_to_build(bundle)}",
        )
    if missing:
        raise ControlPlaneMissing(
            what=bundle.what,
            problem=f"its programs are not in `{folder}` yet",
            hint=f"{_how_to_build(bundle)}{bundle.or_elsewhere}",
        )
    return folder


def _how_to_build(bundle: Bundle) -> str:
    return f"run `{bundle.command}` ({bundle.duration}, once)"


def _program(folder: Path, name: str) -> Path | None:
    for each in (name, _OTHER_NAMES.get(name, name)):
        path = folder / each
        if path.is_file() and os.access(path, os.X_OK):
            return path
    return None
