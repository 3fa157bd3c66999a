"""The real kubectl, and an embedded cluster for it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from karpy.adapters.controlplane.programs import find_program
from karpy.sim.kubelets.timing import AT_ONCE
from karpy.sim.world import World, WorldSettings
from karpy.wiring.embedded import ServedCluster, embedded_world, serve
from tests.e2e.kubectl.commands import DEPLOYMENT, Kubectl


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """A cluster without delays, so that tests need not wait."""
    async with embedded_world(WorldSettings(timing=AT_ONCE, history=50)) as world:
        yield world


@pytest.fixture
async def served(world: World) -> AsyncIterator[ServedCluster]:
    async with serve(world) as served:
        yield served


@pytest.fixture(scope="session")
def kubectl_program(programs: Path) -> Path:
    """The program; without it tests are skipped, or fail in CI."""
    return find_program(programs, "kubectl")


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
