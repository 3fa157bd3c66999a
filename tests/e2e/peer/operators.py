"""Start Karpenter or Karpy beside a control plane."""

import json
import os
import sys
from pathlib import Path
from typing import Final

import pytest

from karpy.adapters.controlplane.bundles import PEER
from karpy.adapters.controlplane.operators import NAMESPACE, OperatorProcess
from karpy.adapters.controlplane.plane import ControlPlane
from karpy.adapters.controlplane.programs import find_program, require_programs
from karpy.codec.fields import JsonObject
from karpy.errors import ControlPlaneMissing

KARPENTER: Final = "karpenter"
KARPY: Final = "karpy"
SETTINGS: Final = {"FEATURE_GATES": "StaticCapacity=true"}
CRDS: Final = Path(__file__).parents[3] / "deploy" / "crds"


def require_peer() -> Path:
    """Return the program `karpenter`; without it tests are skipped, or fail in CI."""
    try:
        return find_program(require_programs(os.environ, PEER), KARPENTER, PEER)
    except ControlPlaneMissing as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{missing} (CI=true, so this is no reason to skip)", pytrace=False)
        pytest.skip(f"{missing.message}; {missing.hint}")


def start_operator(plane: ControlPlane, name: str, **settings: str) -> OperatorProcess:
    """Return an operator that starts with its context; both get the same settings."""
    program: list[str | Path] = (
        [require_peer()] if name == KARPENTER else [sys.executable, "-m", "karpy", "run"]
    )
    return OperatorProcess(plane, program, name=name, settings=SETTINGS | settings)


def prepare(plane: ControlPlane, *objects: JsonObject) -> None:
    """Install the CRDs and the given objects."""
    plane.kubectl("apply", "--server-side", "-f", str(CRDS))
    plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    plane.kubectl("create", "namespace", NAMESPACE)
    for each in objects:
        plane.kubectl("apply", "-f", "-", stdin=json.dumps(each))
