"""Whatever an object says, it harms itself only."""

import pytest

from tests.hostile.objectfuzz import play


@pytest.mark.parametrize("seed", range(24))
def test_spoilt_objects_harm_themselves_only(seed: int) -> None:
    assert play(seed).findings == []
