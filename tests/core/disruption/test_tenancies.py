from datetime import timedelta

import pytest

from karpy.core.disruption.tenancies import RELIED_ON, Tenancy, is_reliable, remember
from karpy.model.pods import Pod
from karpy.model.tenants import Tenant
from tests.builders import pod
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
