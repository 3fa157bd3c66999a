"""Whatever an object says, it harms itself only."""

from typing import Final

import pytest

from karpy.model.kinds import BUILT_IN, CUSTOM
from tests.hostile.objectfuzz import play

NOT_READ: Final = {
    *("configmaps", "secrets", "serviceaccounts", "controllerrevisions", "jobs", "cronjobs"),
    *("events", "priorityclasses", "customresourcedefinitions", "ec2nodeclasses"),
    "resourcequotas",
}
WRITTEN_ONLY: Final = {"leases"}
"""Read to be written: by the election, which these operators do without."""


@pytest.mark.parametrize("seed", range(24))
def test_spoilt_objects_harm_themselves_only(seed: int) -> None:
    assert play(seed).findings == []


def test_objects_of_every_kind_that_is_read_are_there_to_be_spoilt() -> None:
    kinds = {each.plural for each in (*BUILT_IN, *CUSTOM)}

    assert {each.plural for each in play(0).kinds} == kinds - NOT_READ - WRITTEN_ONLY
