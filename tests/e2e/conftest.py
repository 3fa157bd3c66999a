"""Tests on a real control plane; they run by `make e2e`, or if named on the command line."""

from pathlib import Path
from typing import Final

import pytest

from tests.e2e.planes import control_plane, is_left_out, namespace, node, programs

__all__ = ["control_plane", "namespace", "node", "programs"]


LONGEST: Final = (
    "operator/test_hostile.py",
    "operator/test_consolidation.py",
    "test_takeover.py",
    "operator/test_renewal.py",
    "operator/test_drift.py",
    "peer/test_commands.py",
    "operator/test_fencing.py",
    "operator/test_troubles.py",
)
"""Files that take minutes, and therefore start first when tests run in parallel."""


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    return True if is_left_out(Path(__file__).parent, config) else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    ranks = {here / name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(item.path, len(ranks)))
