"""Sections 2, 3 and 9: minValues, how much variety a launch must keep."""

import pytest

from karpy.model.instances import LAUNCH_OPTIONS_MAX
from karpy.model.labels import INSTANCE_TYPE, ZONE
from karpy.model.pools import NodePool
from karpy.model.settings import MinValuesPolicy, Settings
from karpy.model.verdicts import Constraint, Exclusion, Reason, Refusal
from tests.builders import (
    CPUS,
    FAMILY,
    ZONE_A,
    ZONE_B,
    catalog,
    exists,
    instance_type,
    is_in,
    min_values,
    offering,
    pod,
    pool,
    snapshot,
    storage,
    term,
    volume,
    volume_claim,
)
from tests.core.scheduling.answers import decide_checked, hosts, only_launch, only_refusal

BEST_EFFORT = Settings(min_values_policy=MinValuesPolicy.BEST_EFFORT)


def _families(count: int) -> NodePool:
    return pool(requirements=[min_values(exists(FAMILY), count)])


# --- Strict ----------------------------------------------------------------------------------


def test_a_pool_without_the_variety_is_empty() -> None:
    verdict = decide_checked(snapshot(pods=[pod("p")], pools=[_families(4)]))

    assert [notice.why for notice in verdict.pools] == [
        Exclusion(Constraint.MIN_VALUES, f"{FAMILY}: 3 values on offer", 12)
    ]
    assert verdict.launches == ()


@pytest.mark.parametrize(("count", "host"), [(1, "default-0"), (2, "NO_HOST")])
def test_a_new_claim_must_keep_the_variety(count: int, host: str) -> None:
    only_m = pod("p", selector={FAMILY: "m"})

    assert hosts(snapshot(pods=[only_m], pools=[_families(count)])) == {"p": host}


def test_a_claim_takes_no_pod_that_would_narrow_it_too_far() -> None:
    """With 8Gi for each CPU only the r family is left; that pod finds no other node either."""
    batch = [pod("any", cpu="1"), pod("greedy", cpu="900m", memory="20Gi")]
    types = [instance_type(f"{each}.x", memory=f"{gib}Gi") for each, gib in (("c", 8), ("r", 32))]

    assert hosts(snapshot(pods=batch, pools=[_families(2)], catalog=catalog(types))) == {
        "any": "default-0",
        "greedy": "NO_HOST",
    }


def test_several_keys_must_each_have_their_variety() -> None:
    def host(cpus: int) -> dict[str, str]:
        picky = pool(requirements=[min_values(exists(FAMILY), 3), min_values(exists(CPUS), cpus)])
        return hosts(snapshot(pods=[pod("p", cpu="3")], pools=[picky]))

    assert host(3) == {"p": "default-0"}
    assert host(4) == {"p": "NO_HOST"}


def test_only_values_that_the_requirement_allows_count() -> None:
    """Golden: a zone narrowed to one value leaves one, though the type is sold in three."""
    picky = pool(requirements=[min_values(exists(ZONE), 3)])
    stored = storage(volume_claim("c", bound_to="v"), volume("v", term(is_in(ZONE, ZONE_A))))
    narrowed = pod("p", claims=["c"])

    assert hosts(snapshot(pods=[pod("p")], pools=[picky])) == {"p": "default-0"}
    assert hosts(snapshot(pods=[narrowed], pools=[picky], storage=stored)) == {"p": "NO_HOST"}


def test_a_pools_own_values_limit_what_counts() -> None:
    picky = pool(requirements=[min_values(is_in(FAMILY, "c", "m", "x"), 3)])
    verdict = decide_checked(snapshot(pods=[pod("p")], pools=[picky]))

    assert [notice.why for notice in verdict.pools] == [
        Exclusion(Constraint.MIN_VALUES, f"{FAMILY}: 2 values on offer", 12)
    ]


def test_min_values_travel_with_the_launch() -> None:
    launch = only_launch(snapshot(pods=[pod("p")], pools=[_families(2)]))

    assert launch.requirements[FAMILY] == min_values(exists(FAMILY), 2)
    assert not launch.is_min_values_relaxed


# --- BestEffort ------------------------------------------------------------------------------


def test_best_effort_lowers_min_values_of_a_pool_to_the_values_there_are() -> None:
    cluster = snapshot(pods=[pod("p")], pools=[_families(4)], settings=BEST_EFFORT)

    launch = only_launch(cluster)

    assert launch.requirements[FAMILY].min_values == 3
    assert launch.is_min_values_relaxed


def test_best_effort_lowers_min_values_of_new_claims_only() -> None:
    """The claim of the first pod has room for the second, but would no longer reach minValues."""
    batch = [pod("any", cpu="200m"), pod("m", selector={FAMILY: "m"})]
    verdict = decide_checked(snapshot(pods=batch, pools=[_families(2)], settings=BEST_EFFORT))

    assert [
        (each.pods, each.requirements[FAMILY].min_values, each.is_min_values_relaxed)
        for each in verdict.launches
    ] == [(("default/any",), 2, False), (("default/m",), 1, True)]


def test_best_effort_counts_only_values_that_are_allowed() -> None:
    picky = pool(requirements=[min_values(exists(ZONE), 3)])
    cluster = snapshot(
        pods=[pod("p", selector={ZONE: ZONE_B})], pools=[picky], settings=BEST_EFFORT
    )

    assert only_launch(cluster).requirements[ZONE] == min_values(is_in(ZONE, ZONE_B), 1)


# --- at most 600 options ---------------------------------------------------------------------


def test_a_launch_whose_cheapest_types_lack_the_variety_is_dropped() -> None:
    """The other family costs more than the 600 cheapest types, and is cut off."""
    many = [instance_type(f"c.{i:03}", dollars=1) for i in range(LAUNCH_OPTIONS_MAX)]
    on_sale = catalog([*many, instance_type("m.x", dollars=2)])
    batch = [pod("p"), pod("q")]

    strict = snapshot(pods=batch, pools=[_families(2)], catalog=on_sale)
    lenient = snapshot(pods=batch, pools=[_families(2)], catalog=on_sale, settings=BEST_EFFORT)

    assert only_refusal(strict) == Refusal(Reason.MIN_VALUES_TRUNCATED, ("default/p", "default/q"))
    assert hosts(lenient) == {"p": "default-0", "q": "default-0"}


def test_a_launch_whose_cheapest_types_have_the_variety_is_kept() -> None:
    many = [instance_type(f"c.{i:03}", dollars=1) for i in range(LAUNCH_OPTIONS_MAX)]
    on_sale = catalog([*many, instance_type("m.x", dollars=0.5)])
    picky = pool(requirements=[min_values(exists(FAMILY), 2)])

    launch = only_launch(snapshot(pods=[pod("p")], pools=[picky], catalog=on_sale))

    assert len(launch.options) == LAUNCH_OPTIONS_MAX
    assert launch.options[0].instance_type == "m.x"


def test_variety_that_cannot_be_launched_is_none() -> None:
    """A full reservation is no option, so that the launch would have one family to choose from."""
    full = instance_type("c.x", offerings=[offering(dollars=0.1, reservation="cr", left=0)])
    on_sale = catalog([full, instance_type("m.x")])

    assert hosts(snapshot(pods=[pod("p")], pools=[_families(2)], catalog=on_sale)) == {
        "p": "MIN_VALUES_TRUNCATED"
    }


def test_min_values_of_instance_types_count_types() -> None:
    picky = pool(requirements=[min_values(exists(INSTANCE_TYPE), 3)])
    big = pod("p", cpu="15")

    assert hosts(snapshot(pods=[big], pools=[picky])) == {"p": "default-0"}
    assert hosts(snapshot(pods=[pod("p", cpu="15", memory="40Gi")], pools=[picky])) == {
        "p": "NO_HOST"
    }
