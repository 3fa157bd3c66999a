"""Helm, which is built once, for the charts."""

from pathlib import Path

import pytest

from tests.charts.helm import Helm
from tests.programs import tools

__all__ = ["tools"]


@pytest.fixture
def helm(tools: Path, tmp_path: Path) -> Helm:
    return Helm(tools / "helm", tmp_path)
