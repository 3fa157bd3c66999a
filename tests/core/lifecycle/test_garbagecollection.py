from datetime import timedelta

import pytest

from karpy.codec.fields import JsonObject
from karpy.codec.unreadable import claim_record
from karpy.core.lifecycle.changes import (
    Changes,
    Count,
    Remark,
)
from karpy.core.lifecycle.garbagecollection import (
    CloudMachine,
    collect_claim,
    find_live_machines,
    find_orphans,
)
from karpy.model.records import ClaimRecord, NodeRecord
from tests.builders.pods import NOON
from tests.core.lifecycle.scenes import PROVIDER_ID, claim, node

MINUTE = timedelta(minutes=1)
REGISTERED = claim(said={"Registered": MINUTE})


@pytest.mark.parametrize(
    "nodes", [(), (node(is_ready=False),), (node(), node(name="n2"))], ids=["no", "dead", "two"]
)
def test_a_claim_whose_machine_is_gone_is_deleted(nodes: tuple[NodeRecord, ...]) -> None:
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


def machine(name: str, age: int = 31, *, is_terminating: bool = False) -> CloudMachine:
    created = NOON - timedelta(seconds=age)
    return CloudMachine(f"kwok://{name}", name, created, is_terminating)


@pytest.mark.parametrize(
    ("machine", "claims", "is_orphan"),
    [
        (machine("web-1"), [], True),
        (machine("web-1"), [claim(provider_id="kwok://other")], True),
        (machine("web-1"), [claim()], False),
        (machine("web-1"), [claim(provider_id="")], False),
        (machine("web-1", 30), [], False),
        (machine("web-1", is_terminating=True), [], False),
    ],
    ids=["without a claim", "replaced", "claimed", "not claimed yet", "young", "ending"],
)
def test_a_machine_without_a_claim_is_an_orphan(
    machine: CloudMachine, claims: list[ClaimRecord], *, is_orphan: bool
) -> None:
    orphans = find_orphans([machine], claims, NOON)

    assert (machine in orphans) is is_orphan


@pytest.mark.parametrize("status", [{}, {"providerID": "kwok://web-1"}])
def test_the_machine_of_a_claim_that_cannot_be_read_is_no_orphan(status: JsonObject) -> None:
    odd = claim_record({"metadata": {"name": "web-1", "finalizers": 3}, "status": status})

    assert find_orphans([machine("web-1")], [odd], NOON) == ()


def test_orphans_come_in_the_order_of_their_names() -> None:
    orphans = find_orphans([machine("b"), machine("a")], [], NOON)

    assert [each.claim for each in orphans] == ["a", "b"]


def test_a_machine_that_ends_does_not_run() -> None:
    assert find_live_machines([machine("a"), machine("b", is_terminating=True)]) == {"kwok://a"}
