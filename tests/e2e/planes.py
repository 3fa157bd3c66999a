"""The real control plane as a fixture, and the selection of tests that need it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest

from karpy.adapters.controlplane.bundles import CONTROL_PLANE
from karpy.adapters.controlplane.plane import ControlPlane
from tests.programs import folder_of

STRANGER: Final = "stranger"
"""A user without rights, until a test binds a role."""


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder of the programs; without them tests are skipped, or fail in CI."""
    return folder_of(CONTROL_PLANE)


@pytest.fixture(scope="session")
def control_plane(
    programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """A control plane for all tests of a process, each of which has its namespace."""
    home = tmp_path_factory.mktemp("controlplane")
    with ControlPlane(programs, home, users={STRANGER: ()}) as plane:
        yield plane


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """A namespace for a test."""
    control_plane.restart_ended()
    name = f"test-{uuid4().hex[:8]}"
    control_plane.kubectl("create", "namespace", name)
    yield name
    control_plane.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def node(control_plane: ControlPlane) -> Iterator[str]:
    """A node whose kubelet KWOK plays."""
    control_plane.restart_ended()
    name = f"node-{uuid4().hex[:8]}"
    metadata = {"name": name, "annotations": {"kwok.x-k8s.io/node": "fake"}}
    manifest = {"apiVersion": "v1", "kind": "Node", "metadata": metadata}
    control_plane.kubectl("create", "-f", "-", stdin=json.dumps(manifest))
    yield name
    control_plane.kubectl("delete", "node", name, "--wait=false")


def is_left_out(folder: Path, config: pytest.Config) -> bool:
    """Say whether a folder is not named on the command line, as in a plain `pytest`."""
    asked = [
        (config.invocation_params.dir / arg.partition("::")[0]).resolve() for arg in config.args
    ]
    return not any(path.is_relative_to(folder) for path in asked)
