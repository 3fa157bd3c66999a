"""Consistency, hydration, garbage collection, pod events."""

from collections.abc import Mapping
from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from karpy.codec.fields import JsonObject
from karpy.codec.unreadable import claim_record
from karpy.core.lifecycle.changes import (
    Changes,
    Count,
    Remark,
    count_reschedulable,
    termination_mode,
)
from karpy.core.lifecycle.garbagecollection import (
    CloudMachine,
    collect_claim,
    find_live_machines,
    find_orphans,
)
from karpy.core.lifecycle.initialization import check_consistency
from karpy.core.lifecycle.markers import PodEvent, can_wait, note_pod_event
from karpy.core.lifecycle.records import hydrate_claim, hydrate_node
from karpy.model.kinds import NODE_CLAIM
from karpy.model.notices import Notice, Subject
from karpy.model.pods import NODE, STATEFUL_SET, Pod
from karpy.model.records import ClaimRecord, NodeClassRef, NodeRecord
from tests.builders.pods import NOON, daemon_pod, owner, pod
from tests.core.lifecycle.scenes import CLASS_LABEL, PROVIDER_ID, claim, condition_of, node

MINUTE = timedelta(minutes=1)
GI = 2**30


def initialized(
    capacity: Mapping[str, int], requests: Mapping[str, int] | None = None
) -> ClaimRecord:
    said = {"Registered": MINUTE, "Initialized": MINUTE}
    asked = {"memory": GI} if requests is None else requests
    return claim(said=said, capacity=capacity, requests=asked)


def test_a_node_with_less_than_promised_is_told_of() -> None:
    made = initialized({"memory": 128 * GI})

    changes = check_consistency(made, node(capacity={"memory": 64 * GI}), NOON)

    issue = "expected 128Gi of resource memory, but found 64Gi (50.0% of expected)"
    expected = ("False", "ConsistencyCheckFailed", "Consistency Check Failed")
    assert condition_of(changes.claim, "ConsistentStateFound") == expected
    assert replace(changes, claim=None) == Changes(
        notices=(
            Notice(
                Subject(NODE_CLAIM, "web-1", uid="uid-web-1"),
                "FailedConsistencyCheck",
                issue,
                is_warning=True,
                same_as=("uid-web-1", issue),
            ),
        ),
        remarks=(Remark("consistency error", {"error": issue}, True),),
        requeue_after=10 * MINUTE,
    )


@pytest.mark.parametrize(
    ("made", "found"),
    [
        (initialized({"memory": 100}), {"memory": 90}),
        (initialized({"memory": 100}, {"memory": 0}), {}),
        (initialized({}), {}),
        (claim(capacity={"cpu": 1000}), {}),
    ],
    ids=["nearly all of it", "not asked for", "not promised", "not initialized"],
)
def test_what_was_promised_and_asked_for_is_compared(
    made: ClaimRecord, found: Mapping[str, int]
) -> None:
    changes = check_consistency(made, node(capacity=found), NOON)

    expected = ("True", "ConsistentStateFound", "")
    assert condition_of(changes.claim, "ConsistentStateFound") == expected
    assert changes.notices == ()


def test_a_claim_that_goes_is_not_checked() -> None:
    assert check_consistency(claim(deleted=MINUTE), node(), NOON) == Changes()


def test_claims_and_nodes_name_their_node_class() -> None:
    hydrated, host = hydrate_claim(claim()).claim, hydrate_node(node(), claim()).node

    assert hydrated == claim(labels=CLASS_LABEL)
    assert host == node(labels=CLASS_LABEL)


def test_a_claim_without_a_node_class_is_left_alone() -> None:
    bare = replace(claim(), node_class=NodeClassRef())

    assert hydrate_claim(bare) == Changes(bare)


REGISTERED = claim(said={"Registered": MINUTE})


@pytest.mark.parametrize(
    "nodes", [(), (node(is_ready=False),), (node(), node(name="n2"))], ids=["no", "dead", "two"]
)
def test_a_claim_whose_machine_is_gone_goes(nodes: tuple[NodeRecord, ...]) -> None:
    labels = {
        "reason": "garbage_collected",
        "nodepool": "web",
        "capacity_type": "spot",
        "consolidation_policy": "",
        "termination_mode": "graceful",
    }

    assert collect_claim(REGISTERED, {"kwok://other"}, nodes, pods=3) == Changes(
        deletes_claim=True,
        counts=(
            Count("nodeclaims_disrupted_total", labels),
            Count("pods_disruption_initiated_total", labels, 3.0),
        ),
        remarks=(
            Remark(
                "deleting nodeclaim whose machine is gone",
                {"provider-id": PROVIDER_ID, "nodepool": "web"},
            ),
        ),
    )


@pytest.mark.parametrize(
    ("kept", "machines", "nodes"),
    [
        (REGISTERED, {PROVIDER_ID}, ()),
        (REGISTERED, set(), (node(),)),
        (claim(), set(), ()),
        (claim(said={"Registered": MINUTE}, deleted=MINUTE), set(), ()),
    ],
    ids=["machine runs", "node is ready", "not registered", "going"],
)
def test_a_claim_stays_while_something_speaks_for_it(
    kept: ClaimRecord, machines: set[str], nodes: tuple[NodeRecord, ...]
) -> None:
    assert collect_claim(kept, machines, nodes) == Changes()


def sighting(name: str, age: int = 31, *, is_ending: bool = False) -> CloudMachine:
    created = NOON - timedelta(seconds=age)
    return CloudMachine(f"kwok://{name}", name, created, is_ending)


@pytest.mark.parametrize(
    ("machine", "claims", "is_orphan"),
    [
        (sighting("web-1"), [], True),
        (sighting("web-1"), [claim(provider_id="kwok://other")], True),
        (sighting("web-1"), [claim()], False),
        (sighting("web-1"), [claim(provider_id="")], False),
        (sighting("web-1", 30), [], False),
        (sighting("web-1", is_ending=True), [], False),
    ],
    ids=["nobody's", "replaced", "claimed", "not claimed yet", "young", "ending"],
)
def test_a_machine_without_a_claim_is_an_orphan(
    machine: CloudMachine, claims: list[ClaimRecord], *, is_orphan: bool
) -> None:
    orphans = find_orphans([machine], claims, NOON)

    assert (machine in orphans) is is_orphan


@pytest.mark.parametrize("status", [{}, {"providerID": "kwok://web-1"}])
def test_the_machine_of_a_claim_that_cannot_be_read_is_no_orphan(status: JsonObject) -> None:
    odd = claim_record({"metadata": {"name": "web-1", "finalizers": 3}, "status": status})

    assert find_orphans([sighting("web-1")], [odd], NOON) == ()


def test_orphans_come_in_the_order_of_their_names() -> None:
    orphans = find_orphans([sighting("b"), sighting("a")], [], NOON)

    assert [each.claim for each in orphans] == ["a", "b"]


def test_a_machine_that_ends_does_not_run() -> None:
    assert find_live_machines([sighting("a"), sighting("b", is_ending=True)]) == {"kwok://a"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (pod("p"), pod("p", on="node-1")),
        (pod("p", on="node-1"), pod("p", on="node-1", phase="Succeeded")),
        (pod("p", on="node-1"), pod("p", on="node-1", deleting=True)),
        (None, pod("p", on="node-1")),
    ],
    ids=["bound", "ended", "leaves", "first seen"],
)
def test_a_pod_that_comes_or_leaves_is_noted(before: Pod | None, after: Pod) -> None:
    changes = note_pod_event(claim(), PodEvent(before, after, NOON))

    assert changes == Changes(replace(claim(), last_pod_event=NOON))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (pod("p"), pod("p")),
        (pod("p", on="node-1"), pod("p", on="node-1")),
        (pod("p", on="node-1", deleting=True), pod("p", on="node-1", deleting=True)),
        (daemon_pod("p"), daemon_pod("p", on="node-1")),
    ],
    ids=["pending", "running", "leaving", "daemon"],
)
def test_nothing_else_is_noted(before: Pod, after: Pod) -> None:
    assert note_pod_event(claim(), PodEvent(before, after, NOON)) == Changes()


@pytest.mark.parametrize(("seconds", "is_noted"), [(9, False), (10, True)])
def test_a_claim_is_written_every_ten_seconds_at_most(seconds: int, *, is_noted: bool) -> None:
    busy = replace(claim(), last_pod_event=NOON - timedelta(seconds=seconds))

    changes = note_pod_event(busy, PodEvent(pod("p"), pod("p", on="node-1"), NOON))

    assert (changes.claim is not None) is is_noted


def test_a_restart_takes_no_old_pod_for_a_new_one() -> None:
    known = replace(claim(), last_pod_event=NOON - MINUTE)
    old, new = pod("old", on="node-1", age=2 * MINUTE), pod("new", on="node-1", age=0 * MINUTE)

    assert note_pod_event(known, PodEvent(None, old, NOON)) == Changes()
    assert note_pod_event(known, PodEvent(None, new, NOON)).claim is not None


@pytest.mark.parametrize(
    ("seconds", "last", "is_patient"), [(14, None, True), (15, None, False), (1, NOON, False)]
)
def test_the_first_pods_of_a_node_are_noted_when_there_is_time(
    seconds: int, last: datetime | None, *, is_patient: bool
) -> None:
    can = can_wait(replace(claim(), last_pod_event=last), NOON, NOON + timedelta(seconds=seconds))

    assert can is is_patient


def test_pods_that_must_move_are_counted() -> None:
    pods = [
        pod("runs", on="n"),
        pod("leaves", on="n", deleting=True),
        pod("ended", on="n", phase="Succeeded"),
        pod("db-0", on="n", deleting=True, owners=[owner(STATEFUL_SET)]),
        pod("static", on="n", owners=[owner(NODE)]),
        daemon_pod("daemon", on="n"),
    ]

    assert count_reschedulable(pods) == 2


@pytest.mark.parametrize(
    ("grace", "expected"),
    [(None, "graceful"), (MINUTE, "eventual"), (timedelta(), "forceful")],
)
def test_a_grace_period_says_how_a_node_ends(grace: timedelta | None, expected: str) -> None:
    assert termination_mode(grace) == expected
