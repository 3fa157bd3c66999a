"""An embedded cluster behind its face, for each test that wants one."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from karpy.adapters.controlplane.programs import find_program, require_programs
from karpy.errors import ControlPlaneMissing
from karpy.sim.kubelets.timing import AT_ONCE
from karpy.sim.world import World, WorldSettings
from karpy.wiring.embedded import ServedCluster, embedded_world, serve
from tests.adapters.apiserver.commands import DEPLOYMENT, Kubectl
from tests.adapters.apiserver.stranger import Stranger


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """A cluster in which nothing takes time, so that tests need not wait."""
    async with embedded_world(WorldSettings(timing=AT_ONCE, history=50)) as world:
        yield world


@pytest.fixture
async def served(world: World) -> AsyncIterator[ServedCluster]:
    mistakes: list[BaseException] = []
    async with serve(world, report=mistakes.append) as served:
        yield served
    assert mistakes == []


@pytest.fixture
async def client(served: ServedCluster) -> AsyncIterator[Stranger]:
    async with Stranger(served.url, served.authority, served.token) as client:
        yield client


@pytest.fixture(scope="session")
def kubectl_program() -> Path:
    """The program; without it tests are skipped, or fail in CI."""
    try:
        return find_program(require_programs(os.environ, ["kubectl"]), "kubectl")
    except ControlPlaneMissing as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{missing} (CI=true, so this is no reason to skip)", pytrace=False)
        pytest.skip(f"{missing.message}; {missing.hint}")


@pytest.fixture
async def kubectl(
    kubectl_program: Path, served: ServedCluster, world: World, tmp_path: Path
) -> Kubectl:
    """The real kubectl, and a cluster with two nodes."""
    world.add_node("node-1")
    world.add_node("node-2")
    return Kubectl(kubectl_program, served.kubeconfig, tmp_path)


@pytest.fixture
async def web(kubectl: Kubectl) -> Kubectl:
    """A kubectl whose cluster runs a deployment."""
    await kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    await kubectl("rollout", "status", "deployment/web", "--timeout=20s")
    return kubectl
