"""Where the programs of a control plane are, and what they are built from."""

import os
import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Final

from karpy.errors import ControlPlaneMissing

PACKAGES: Final = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
    "kwok": "sigs.k8s.io/kwok/cmd/kwok",
}
"""Every program by its usual name, and the Go package it is made of."""
ASSETS: Final = "KUBEBUILDER_ASSETS"
"""The environment variable by which the ecosystem names a folder of such programs."""

_OTHER_NAMES: Final[Mapping[str, str]] = {"etcd": "server"}
"""`go build` calls a program by the last part of its package."""
_HASH_DIGITS: Final = 16
_BUILD: Final = "run `karpy controlplane build` (ten minutes, once)"


def source(name: str) -> str:
    """Read a file that comes with this package: `go.mod`, `go.sum`, `stages.yaml`."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def version_of(module: str) -> str:
    """Say which version of a module go.mod asks for, as in `v1.36.3`."""
    found = re.search(rf"(?m)^(?:require)?\s*{re.escape(module)} (v\S+)", source("go.mod"))
    assert found is not None, f"go.mod asks for no {module}"
    return found[1]


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Name the folder for everything that is built once and kept, outside of any repository."""
    root = environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME") or Path.home(), ".cache")
    return Path(root, "karpy")


def built_folder(environ: Mapping[str, str]) -> Path:
    """Name the folder where these versions of the programs are, or will be once they are built."""
    digest = sha256(source("go.sum").encode()).hexdigest()[:_HASH_DIGITS]
    return cache_folder(environ) / "controlplane" / digest


def programs_folder(environ: Mapping[str, str]) -> Path:
    """Name the folder to look for programs in; who sets KUBEBUILDER_ASSETS has chosen it."""
    return Path(environ[ASSETS]) if environ.get(ASSETS) else built_folder(environ)


def missing_programs(folder: Path, names: Iterable[str] = tuple(PACKAGES)) -> list[str]:
    """List the programs that are not in a folder."""
    return [name for name in names if _program(folder, name) is None]


def find_program(folder: Path, name: str) -> Path:
    """Return the path of a program."""
    path = _program(folder, name)
    if path is None:
        raise ControlPlaneMissing(
            problem=f"there is no program `{name}` in `{folder}`", hint=f"{_BUILD}, or add it"
        )
    return path


def require_programs(environ: Mapping[str, str], names: Iterable[str] = tuple(PACKAGES)) -> Path:
    """Return the folder of the programs; raise ControlPlaneMissing if one of them is not there."""
    folder = programs_folder(environ)
    missing = missing_programs(folder, names)
    if missing and environ.get(ASSETS):
        raise ControlPlaneMissing(
            problem=f"{ASSETS} is `{folder}`, which has no {', '.join(missing)}",
            hint=f"add what is missing, or unset {ASSETS} and {_BUILD}",
        )
    if missing:
        raise ControlPlaneMissing(
            problem=f"its programs are not in `{folder}` yet",
            hint=f"{_BUILD}, or name a folder that has them in {ASSETS}",
        )
    return folder


def _program(folder: Path, name: str) -> Path | None:
    for each in (name, _OTHER_NAMES.get(name, name)):
        path = folder / each
        if path.is_file() and os.access(path, os.X_OK):
            return path
    return None
