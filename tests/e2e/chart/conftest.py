"""A real control plane for the charts; the requests of the chart's own account are audited."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from karpy.adapters.controlplane.operators import NAMESPACE
from karpy.adapters.controlplane.plane import ControlPlane
from tests.charts.helm import Helm
from tests.cli.conftest import karpy
from tests.programs import tools

__all__ = ["karpy", "tools"]


@pytest.fixture(scope="package")
def plane(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    account = f"system:serviceaccount:{NAMESPACE}:karpenter"
    with ControlPlane(programs, tmp_path_factory.mktemp("chart"), audited=account) as plane:
        yield plane


@pytest.fixture(scope="package")
def helm(tools: Path, plane: ControlPlane) -> Helm:
    return Helm(tools / "helm", plane.home, plane.kubeconfig)


@pytest.fixture
def namespace(plane: ControlPlane) -> Iterator[str]:
    """The usual namespace, and it enforces the restricted profile."""
    plane.mend()
    plane.kubectl("create", "namespace", NAMESPACE)
    for mode in ("enforce", "warn", "audit"):
        label = f"pod-security.kubernetes.io/{mode}=restricted"
        plane.kubectl("label", "namespace", NAMESPACE, label)
    yield NAMESPACE
    plane.kubectl("delete", "namespace", NAMESPACE, "--timeout=60s")
