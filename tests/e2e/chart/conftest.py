"""A real control plane for the charts, which audits the chart's service account."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from karpy.adapters.controlplane.operators import NAMESPACE
from karpy.adapters.controlplane.plane import ControlPlane
from tests.charts.helm import CHART, CRD_CHART, Helm
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


@pytest.fixture(scope="package")
def namespace(plane: ControlPlane) -> str:
    """The namespace of the chart, which enforces the restricted profile."""
    return restricted_namespace(plane)


@pytest.fixture(scope="package")
def definitions(helm: Helm, namespace: str, plane: ControlPlane) -> str:
    """The release of the definitions, which stays, since an API server deletes them slowly."""
    helm("install", "karpenter-crd", CRD_CHART, "--namespace", namespace)
    plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    return namespace


@pytest.fixture
def release(helm: Helm, plane: ControlPlane, definitions: str) -> Iterator[str]:
    """The operator's chart with KWOK, besides the release of the definitions."""
    plane.restart_ended()
    kwok = ("--set", "settings.provider=kwok")
    helm("install", "karpenter", CHART, "--namespace", definitions, "--skip-crds", *kwok)
    yield definitions
    helm("uninstall", "karpenter", "--namespace", definitions, "--ignore-not-found")


def restricted_namespace(plane: ControlPlane) -> str:
    """Create the namespace of the chart, enforcing the restricted profile."""
    plane.kubectl("create", "namespace", NAMESPACE)
    for mode in ("enforce", "warn", "audit"):
        label = f"pod-security.kubernetes.io/{mode}=restricted"
        plane.kubectl("label", "namespace", NAMESPACE, label)
    return NAMESPACE
