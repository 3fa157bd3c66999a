"""These tests need a real control plane: they run by `make e2e`, or if asked for by name."""

from pathlib import Path

import pytest

from tests.e2e.planes import control_plane, is_left_out, namespace, node, programs

__all__ = ["control_plane", "namespace", "node", "programs"]


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    return True if is_left_out(Path(__file__).parent, config) else None
