"""A control plane for all tests, with the operator under its service account."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from karpy.adapters.controlplane.operators import NAMESPACE, OperatorProcess
from karpy.adapters.controlplane.plane import ControlPlane
from karpy.model.kinds import KWOK_NODE_CLASS
from tests.e2e.claimlog import ClaimLog, watching
from tests.e2e.operator.stage import ACCOUNT, Stage, install, start_karpy
from tests.scenarios.manifests import node_class


@pytest.fixture(scope="package")
def plane(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    account = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
    with ControlPlane(programs, tmp_path_factory.mktemp("operator"), audited=account) as plane:
        yield plane


@pytest.fixture(scope="package")
def kubeconfig(plane: ControlPlane) -> Path:
    """The kubeconfig of the operator's service account, which the chart makes."""
    return install(plane, plane.home)


@pytest.fixture(scope="package")
def operator(plane: ControlPlane, kubeconfig: Path) -> Iterator[OperatorProcess]:
    with start_karpy(plane, kubeconfig) as operator:
        yield operator


@pytest.fixture
def stage(plane: ControlPlane, operator: OperatorProcess) -> Iterator[Stage]:
    """A cluster without nodes; objects of a test are deleted gracefully afterwards."""
    plane.restart_ended()
    stage = Stage(plane, operator)
    stage.apply(KWOK_NODE_CLASS, node_class())
    yield stage
    stage.clear()


@pytest.fixture
def log(stage: Stage) -> Iterator[ClaimLog]:
    """The log of a test's NodeClaims; events of earlier tests are deleted."""
    for name in stage.plane.kubectl("get", "namespaces", "-o", "name").split():
        # One request per namespace, since `--all` deletes thousands of events one by one.
        events = f"/api/v1/namespaces/{name.removeprefix('namespace/')}/events"
        stage.plane.kubectl("delete", "--raw", events)
    with watching(stage.plane) as log:
        yield log
