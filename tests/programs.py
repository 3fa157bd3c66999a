"""Programs that are built once: what needs them is skipped without them, and fails in CI."""

import os
from pathlib import Path

import pytest

from karpy.adapters.controlplane.bundles import TOOLS, Bundle
from karpy.adapters.controlplane.programs import require_programs
from karpy.errors import ControlPlaneMissing


def folder_of(bundle: Bundle) -> Path:
    """Return the folder of the programs; without them skip the test, or fail in CI."""
    try:
        return require_programs(os.environ, bundle)
    except ControlPlaneMissing as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{missing} (CI=true, so this is no reason to skip)", pytrace=False)
        pytest.skip(f"{missing.message}; {missing.hint}")


@pytest.fixture(scope="session")
def tools() -> Path:
    """The folder of helm and promtool."""
    return folder_of(TOOLS)
