import pytest
from msgspec.structs import replace

from karpy.model.constraints import SpreadConstraint
from karpy.model.labels import ZONE
from karpy.model.settings import (
    Gates,
    MinValuesPolicy,
    Options,
    Packing,
    PreferencePolicy,
    Settings,
)


def test_the_usual_options_give_the_usual_settings() -> None:
    """But for one: Karpy takes the cheaper plan."""
    assert Options().settings() == Settings(packing=Packing.CHEAPEST)


def test_settings_are_what_decisions_depend_on() -> None:
    options = Options(
        preference_policy=PreferencePolicy.IGNORE,
        min_values_policy=MinValuesPolicy.BEST_EFFORT,
        ignore_device_claims=False,
        gates=Gates(reserved_capacity=False, node_overlay=True),
        default_spreads=(SpreadConstraint(ZONE, 1),),
        packing=Packing.KARPENTER,
    )

    assert options.settings() == Settings(
        preference_policy=PreferencePolicy.IGNORE,
        min_values_policy=MinValuesPolicy.BEST_EFFORT,
        reserved_capacity=False,
        node_overlay=True,
        ignore_device_claims=False,
        default_spreads=(SpreadConstraint(ZONE, 1),),
        packing=Packing.KARPENTER,
    )


@pytest.mark.parametrize(
    ("cpu", "expected"),
    [(1, 10), (1000, 10), (1001, 26), (30_000, 496), (60_000, 1000), (10**6, 1000)],
)
def test_more_cpu_gives_more_workers(cpu: int, expected: int) -> None:
    options = replace(Options(), cpu_requests_milli=cpu)

    assert options.workers(10, 1000) == expected
