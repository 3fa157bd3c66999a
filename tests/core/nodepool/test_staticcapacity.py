from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karpy.core.lifecycle.changes import Remark
from karpy.core.nodepool.staticcapacity import (
    Adjustment,
    count_claims,
    fill_up,
    grant,
    shortage,
    surplus,
    template_launch,
)
from karpy.model.conditions import FALSE, TRUE, Condition
from karpy.model.pools import Headcount, NodePool
from karpy.model.records import NodeClassRef, PoolRecord
from karpy.model.requirements import Requirement, collect, one_of
from karpy.model.verdicts import Constraint, Exclusion, Launch
from tests.builders.pods import NOON
from tests.core.nodepool.records import claim, pool

MINUTE = timedelta(minutes=1)
READY = (Condition("Ready", TRUE, NOON, "Ready"),)
counts = st.integers(0, 20)


def static(replicas: int, limit: int | None = None) -> PoolRecord:
    limits = {} if limit is None else {"nodes": limit}
    return pool(replicas=replicas, limits=limits, conditions=READY)


def adjustment_remark(verb: str, doing: str, current: int, desired: int, count: int) -> Remark:
    fields = {
        "NodePool": "web",
        "current": str(current),
        "desired": str(desired),
        f"{verb}-count": str(count),
    }
    return Remark(f"{doing} nodeclaims to satisfy replica count", fields)


def test_claims_are_counted_by_what_becomes_of_them() -> None:
    claims = [
        claim("a"),
        claim("b", provider_id=""),
        claim("c"),
        claim("d", deleting=True),
        claim("e", pool="batch"),
    ]

    assert count_claims("web", claims, disrupting={"c", "d"}) == Headcount(2, 1, 1)


def test_a_pool_creates_the_claims_that_it_lacks() -> None:
    adjustment = fill_up(static(5), Headcount(active=2), is_synced=True)

    assert adjustment == Adjustment(
        creates=3,
        remarks=(adjustment_remark("provision", "provisioning", 2, 5, 3),),
        requeue_after=MINUTE,
    )


def test_a_node_that_is_being_replaced_counts() -> None:
    """Its replacement is being launched already."""
    adjustment = fill_up(static(5), Headcount(active=4, disrupting=1), is_synced=True)

    assert adjustment == Adjustment(requeue_after=MINUTE)


def test_a_limit_counts_nodes_that_are_still_going() -> None:
    heads = Headcount(active=2, disrupting=1, deleting=2)

    adjustment = fill_up(static(6, limit=6), heads, is_synced=True)

    assert adjustment.creates == 1
    assert adjustment.withheld == Exclusion(Constraint.NODE_LIMIT, "", 3)


def test_a_pool_at_its_limit_says_so() -> None:
    adjustment = fill_up(static(5, limit=3), Headcount(active=2), is_synced=True, reserved=1)

    assert adjustment == Adjustment(
        withheld=Exclusion(Constraint.NODE_LIMIT, "", 3),
        remarks=(Remark("nodepool node limit reached", {"NodePool": "web"}),),
        requeue_after=timedelta(seconds=30),
    )


def test_nothing_is_created_before_the_cache_is_synced() -> None:
    adjustment = fill_up(static(5), Headcount(), is_synced=False)

    assert adjustment == Adjustment(requeue_after=timedelta(seconds=1))


@pytest.mark.parametrize(
    "unfit",
    [pool(conditions=READY), pool(replicas=5, conditions=READY, deleting=True)],
    ids=["dynamic", "deleting"],
)
def test_a_pool_that_is_dynamic_or_deleting_creates_nothing(unfit: PoolRecord) -> None:
    assert fill_up(unfit, Headcount(), is_synced=True) == Adjustment()


@pytest.mark.parametrize(
    "unfit",
    [pool(replicas=5, conditions=[Condition("Ready", FALSE, NOON)]), pool(replicas=5)],
    ids=["not ready", "unknown"],
)
def test_a_pool_that_is_not_ready_says_what_it_lacks(unfit: PoolRecord) -> None:
    adjustment = fill_up(unfit, Headcount(active=3), is_synced=True)

    assert adjustment == Adjustment(withheld=Exclusion(Constraint.POOL_NOT_READY, "", 2))


@given(counts, counts, counts, counts, counts, counts)
def test_no_grant_goes_beyond_the_limit(
    limit: int, active: int, disrupting: int, deleting: int, wanted: int, reserved: int
) -> None:
    heads = Headcount(active, disrupting, deleting)

    granted = grant(static(5, limit), heads, wanted, reserved)

    assert 0 <= granted <= wanted
    assert granted == 0 or heads.total + reserved + granted <= limit


def test_a_claim_of_a_static_pool_asks_for_what_its_template_says() -> None:
    zone = Requirement("zone", frozenset({"a", "b"}))
    made = NodePool(
        "web", labels={"team": "red"}, requirements=(zone,), node_class=NodeClassRef("g", "K", "k")
    )

    launch = template_launch(made)

    wanted = [
        zone,
        one_of("team", "red"),
        one_of("karpenter.sh/nodepool", "web"),
        one_of("g/k", "k"),
    ]
    assert launch == Launch("web", "web", (), collect(wanted), {}, ())


@pytest.mark.parametrize(
    "unfit", [pool(conditions=READY), pool(replicas=0, deleting=True)], ids=["dynamic", "deleting"]
)
def test_a_pool_that_is_not_static_gives_up_nothing(unfit: PoolRecord) -> None:
    assert surplus(unfit, Headcount(active=5)) == 0
    assert shortage(unfit, Headcount()) == 0


@pytest.mark.parametrize(("active", "expected"), [(1, 0), (2, 0), (5, 3)])
def test_a_surplus_is_what_a_pool_has_beyond_its_number(active: int, expected: int) -> None:
    heads = Headcount(active=active, disrupting=1, deleting=1)

    assert surplus(static(2), heads) == expected


@pytest.mark.parametrize(("active", "expected"), [(0, 4), (1, 3), (4, 0), (9, 0)])
def test_a_shortage_is_what_a_pool_lacks_and_no_command_replaces(
    active: int, expected: int
) -> None:
    heads = Headcount(active=active, disrupting=1, deleting=1)

    assert shortage(static(5), heads) == expected
