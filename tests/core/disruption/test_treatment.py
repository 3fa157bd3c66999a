from collections.abc import Sequence
from datetime import timedelta
from typing import Unpack

import pytest
from msgspec.structs import replace

from karpy.core.disruption.repairing import Patient, triage
from karpy.core.disruption.rollout import Target
from karpy.core.disruption.treatment import Treatment, treat
from karpy.core.lifecycle.changes import Count
from karpy.model.conditions import TRUE, Condition
from karpy.model.instances import InstanceType
from karpy.model.pods import Pod
from karpy.model.questions import TreatmentQuestion
from karpy.model.records import PoolRecord
from karpy.model.repairs import RepairAction, RepairPolicy
from karpy.model.resources import NODES
from karpy.model.snapshot import Snapshot
from karpy.model.surroundings import NodeState, Surroundings
from tests.builders import catalog, instance_type, is_in, node, offering, pod, snapshot
from tests.builders import pool as node_pool
from tests.builders.clouds import RESERVATION
from tests.builders.pods import NOON
from tests.core.disruption.scenes import HOUR, NodeFields, around, pool, state, told

MINUTE = timedelta(minutes=1)
GRACE = "karpenter.sh/reboot-termination-grace-period"
POLICIES = (
    RepairPolicy("Ready", "False", 10 * MINUTE, grace_period=timedelta()),
    RepairPolicy("Slow", "True", MINUTE, ".*", RepairAction.REBOOT, grace_period=5 * MINUTE),
    RepairPolicy("Stale", "True", MINUTE, ".*", RepairAction.REBOOT),
)
READY = Condition("Ready", TRUE, NOON - HOUR, "Ready")


def sick(type_: str = "Ready", **fields: Unpack[NodeFields]) -> NodeState:
    """Build a node with a fault, and some that are well."""
    well = state("a", **fields)
    assert well.node is not None
    status = "False" if type_ == "Ready" else "True"
    fault = Condition(type_, status, NOON - HOUR, "Because")
    return replace(well, node=replace(well.node, conditions=(fault,)))


def patient_of(broken: NodeState, **changes: object) -> tuple[Patient, Surroundings]:
    surroundings = around(broken, *(state(f"well-{number}") for number in range(9)), **changes)
    (patient,) = triage(surroundings, POLICIES, {}).patients
    return patient, surroundings


def treated(
    broken: NodeState, cluster: Snapshot, *, may_go_first: bool = False, **changes: object
) -> Treatment:
    patient, surroundings = patient_of(broken, **changes)
    question = TreatmentQuestion(surroundings, cluster, POLICIES, may_go_first=may_go_first)
    return treat(patient, question, "id-1")


def cluster_with(*pods: Pod, **labels: str) -> Snapshot:
    return snapshot(
        nodes=[node("a", pool="web", labels=labels)], pods=pods, pools=[node_pool("web")]
    )


def test_a_node_without_pods_is_just_deleted() -> None:
    treatment = treated(sick(), cluster_with())

    assert treatment.rollout is not None
    assert treatment.rollout.targets == (
        Target("a-claim", "a", "web", 1_000_000, 0, "Ready", timedelta()),
    )
    assert treatment.rollout.replacements == ()
    assert str(treatment.rollout).startswith("Unhealthy/id-1: delete: nodepools=[web]: [a]")


def test_a_node_with_pods_goes_after_its_replacement_has_come() -> None:
    treatment = treated(sick(), cluster_with(pod("x", on="a", cpu="3")))

    assert treatment.rollout is not None
    assert [each.launch.pods for each in treatment.rollout.replacements] == [("default/x",)]
    assert treatment.rollout.decision == "replace"


def test_it_is_told_which_policy_was_selected() -> None:
    (remark,) = treated(sick(), cluster_with()).remarks

    assert remark.event == "selected repair policy"
    assert remark.fields == {
        "Node": "a",
        "NodeClaim": "a-claim",
        "condition": "Ready",
        "status": "False",
        "reason": "Because",
        "reason-regex": "",
        "fallback": "true",
        "action": "ReplaceNode",
        "eligible-at": "2026-03-02T11:10:00Z",
        "termination-grace-period": "0s",
    }


def test_a_node_whose_pods_find_no_place_stays() -> None:
    treatment = treated(sick(), cluster_with(pod("huge", on="a", cpu="300")))

    assert treatment.rollout is None
    assert treatment.refusal is not None
    assert treatment.refusal.why.name == "PODS_UNPLACED"
    assert told(treatment.notices)[0][3].startswith("not all pods would schedule, default/huge: ")


def test_a_reboot_is_written_on_the_claim() -> None:
    treatment = treated(sick("Slow", grace_period=HOUR), cluster_with())

    assert treatment.rollout is None
    assert treatment.reboot is not None
    written = treatment.reboot.claim
    assert written is not None
    assert written.meta.annotations == {GRACE: "5m0s"}
    rebooting = written.conditions.get("Rebooting")
    assert rebooting is not None
    assert (rebooting.reason, rebooting.message) == (
        "RebootRequested",
        "rebooting for Slow/Because",
    )
    reason = written.conditions.get("DisruptionReason")
    assert reason is not None
    assert reason.reason == "Unhealthy"
    labels = {"decision": "reboot", "reason": "unhealthy", "consolidation_type": ""}
    assert treatment.reboot.counts[0] == Count("voluntary_disruption_decisions_total", labels)


@pytest.mark.parametrize(
    ("grace", "expected"), [(None, {}), (HOUR, {GRACE: "1h0m0s"})], ids=["unbounded", "its own"]
)
def test_without_a_policy_the_claim_says_how_long_a_reboot_waits(
    grace: timedelta | None, expected: dict[str, str]
) -> None:
    treatment = treated(sick("Stale", grace_period=grace), cluster_with())

    assert treatment.reboot is not None
    assert treatment.reboot.claim is not None
    assert treatment.reboot.claim.meta.annotations == expected


def reserved(left: int = 0) -> list[InstanceType]:
    return [instance_type("m.xlarge", offerings=[offering(reservation="r1", left=left)])]


def on_reservation(types: Sequence[InstanceType]) -> Snapshot:
    return snapshot(
        nodes=[node("a", pool="web")],
        pods=[pod("x", on="a", cpu="3")],
        pools=[node_pool("web")],
        catalog=catalog(types),
    )


def reserved_node() -> NodeState:
    """Build a broken node of a reservation."""
    broken = sick()
    assert broken.node is not None
    labels = {
        **broken.node.meta.labels,
        "karpenter.sh/capacity-type": "reserved",
        RESERVATION: "r1",
    }
    meta = replace(broken.node.meta, labels=labels)
    return replace(broken, node=replace(broken.node, meta=meta))


@pytest.mark.parametrize(("may_go_first", "decision"), [(False, None), (True, "terminate-first")])
def test_a_node_goes_first_whose_replacement_needs_its_reservation(
    *, may_go_first: bool, decision: str | None
) -> None:
    treatment = treated(reserved_node(), on_reservation(reserved()), may_go_first=may_go_first)

    found = None if treatment.rollout is None else treatment.rollout.decision
    assert found == decision


def test_a_node_that_goes_first_has_no_replacement() -> None:
    treatment = treated(reserved_node(), on_reservation(reserved()), may_go_first=True)

    assert treatment.rollout is not None
    assert treatment.rollout.replacements == ()
    assert treatment.rollout.goes_first == "no-reserved-capacity"


def static_pool(replicas: int, limit: int | None = None) -> PoolRecord:
    limits = {} if limit is None else {NODES: limit}
    made = pool(replicas=replicas)
    conditions = replace(made.conditions, items=(READY,))
    return replace(made, limits=limits, conditions=conditions)


def static_cluster(types: Sequence[InstanceType] | None = None) -> Snapshot:
    made = node_pool("web", static=True, requirements=[is_in("team", "shop")])
    return snapshot(nodes=[node("a", pool="web")], pools=[made], catalog=catalog(types))


def test_a_node_of_a_static_pool_is_replaced_from_the_template() -> None:
    pools = {"web": static_pool(10)}

    treatment = treated(sick(), static_cluster(), pools=pools)

    assert treatment.rollout is not None
    (replacement,) = treatment.rollout.replacements
    assert replacement.launch.pool == "web"
    assert replacement.launch.pods == ()
    assert "team" in replacement.launch.requirements
    assert treatment.rollout.savings == 1_000_000


def test_a_static_pool_that_shrinks_gives_up_nodes_anyway() -> None:
    treatment = treated(sick(), static_cluster(), pools={"web": static_pool(9)})

    assert treatment.refusal is not None
    assert treatment.refusal.why.name == "POOL_SHRINKING"


@pytest.mark.parametrize(
    ("broken", "types", "may_go_first", "expected"),
    [
        (
            sick(),
            None,
            False,
            "static NodePool is at its node limit and cannot stage a replacement",
        ),
        (sick(), None, True, "static-at-limit"),
        (reserved_node(), reserved(), True, "no-reserved-capacity"),
        (
            sick(),
            reserved(),
            True,
            "static NodePool's capacity reservations are full and cannot stage a replacement",
        ),
        (reserved_node(), reserved(left=1), True, "static-at-limit"),
    ],
)
def test_a_node_of_a_static_pool_goes_first_where_no_other_can_come(
    broken: NodeState,
    types: Sequence[InstanceType] | None,
    expected: str,
    *,
    may_go_first: bool,
) -> None:
    pools = {"web": static_pool(10, limit=10)}

    treatment = treated(broken, static_cluster(types), may_go_first=may_go_first, pools=pools)

    first = "" if treatment.rollout is None else treatment.rollout.goes_first
    assert (first or treatment.notices[0].note) == expected
