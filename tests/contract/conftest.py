"""Contract tests for every world; they run by `make contract`, or if named on the command line."""

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.contract.worlds import REAL, WORLDS, World, open_world
from tests.e2e.planes import control_plane, is_left_out, programs

__all__ = ["control_plane", "programs"]


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    return True if is_left_out(Path(__file__).parent, config) else None


@pytest.fixture(params=WORLDS)
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """Each world, with a namespace for the test."""
    name: str = request.param
    plane = request.getfixturevalue("control_plane") if name == REAL else None
    async with open_world(name, plane, f"test-{uuid4().hex[:8]}") as opened:
        yield opened
