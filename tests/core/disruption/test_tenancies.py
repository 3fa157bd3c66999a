from datetime import timedelta

import pytest

from karpy.core.disruption.cost import POD, moving_cost
from karpy.core.disruption.tenancies import (
    LOOKUPS_MAX,
    RELIED_ON,
    Tenancy,
    assume,
    choose_lookups,
    is_reliable,
    remember,
)
from karpy.model.pods import DAEMON_SET, Pod
from karpy.model.tenants import Tenant
from tests.builders import owner, pod
from tests.builders.pods import NOON
from tests.core.disruption.scenes import tenant

CHEAP = {"karpenter.sh/disruption-cost": "-134217728"}
OLD_CHEAP = {"controller.kubernetes.io/pod-deletion-cost": "-134217728"}
LATER = NOON + timedelta(minutes=1)


def on_node(name: str, *, phase: str = "Running", deleting: bool = False) -> Pod:
    return pod(name, uid=f"uid-{name}", on="n1", phase=phase, deleting=deleting)


def test_of_an_empty_node_all_tenants_are_remembered() -> None:
    tenants = [tenant("b", is_daemon=True), tenant("a", annotations=CHEAP)]

    tenancy = remember(tenants, [on_node("a"), on_node("b")], NOON)

    assert tenancy == Tenancy(
        NOON,
        tuple(tenants),
        seen=frozenset({("uid-a", "Running", False), ("uid-b", "Running", False)}),
    )


def test_of_any_other_node_one_is_enough_that_keeps_it() -> None:
    tenants = [tenant("c"), tenant("b"), tenant("a", annotations=CHEAP)]

    tenancy = remember(tenants, [], NOON)

    assert tenancy == Tenancy(NOON, (tenant("b"),), is_partial=True)


def test_a_cost_that_we_write_ourselves_makes_no_pod_cheap() -> None:
    cheap = tenant("a", annotations=OLD_CHEAP)

    assert not remember([cheap], [], NOON).is_partial
    assert remember([cheap], [], NOON, reads_deletion_cost=False).is_partial


@pytest.mark.parametrize(
    ("tenants", "before", "after", "expected"),
    [
        ([tenant("a", is_daemon=True)], [on_node("a")], [on_node("a")], True),
        ([tenant("a", is_daemon=True)], [on_node("a")], [on_node("a"), on_node("b")], False),
        ([tenant("a", is_daemon=True)], [on_node("a")], [], False),
        ([tenant("a", is_daemon=True)], [on_node("a")], [on_node("a", phase="Failed")], False),
        ([tenant("a")], [on_node("a")], [on_node("a"), on_node("b")], True),
        ([tenant("a")], [on_node("a")], [on_node("a", deleting=True), on_node("b")], False),
        ([tenant("a")], [on_node("a")], [on_node("b")], False),
        ([], [], [], True),
        ([], [], [on_node("a")], False),
    ],
)
def test_what_is_remembered_holds_until_somebody_comes_or_goes(
    tenants: list[Tenant], before: list[Pod], after: list[Pod], *, expected: bool
) -> None:
    tenancy = remember(tenants, before, NOON)

    assert is_reliable(tenancy, after, LATER) is expected


def test_nothing_is_remembered_for_long() -> None:
    tenancy = remember([tenant("a")], [on_node("a")], NOON)

    assert is_reliable(tenancy, [on_node("a")], NOON + RELIED_ON - timedelta(seconds=1))
    assert not is_reliable(tenancy, [on_node("a")], NOON + RELIED_ON)


def test_a_pod_that_nobody_has_looked_at_is_taken_to_keep_its_node() -> None:
    tenancy = assume([on_node("b"), on_node("a")])

    assert tenancy is not None
    assert [each.pod.uid for each in tenancy.tenants] == ["uid-a"]
    assert moving_cost(tenancy.tenants) > POD
    assert not is_reliable(tenancy, [on_node("a")], NOON)


def test_nobody_is_assumed_where_nobody_would_move() -> None:
    daemon = pod("d", on="n1", owners=[owner(DAEMON_SET)])

    assert assume([daemon, on_node("a", phase="Succeeded")]) is None


def test_all_nodes_that_may_be_empty_are_looked_up_and_of_others_some_in_turn() -> None:
    keeper = assume([on_node("a")])
    busy = {f"busy-{number:03}": keeper for number in range(LOOKUPS_MAX + 2)}
    empty = dict.fromkeys(("empty-1", "empty-2"))
    known = {"busy-000": Tenancy(NOON), "busy-001": Tenancy(NOON - timedelta(hours=1))}

    chosen = choose_lookups({**busy, **empty}, known)

    assert {"empty-1", "empty-2"} <= chosen
    assert (busy.keys() | empty.keys()) - chosen == {"busy-000", "busy-001"}
