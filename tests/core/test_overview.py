from datetime import timedelta

import pytest
from msgspec.structs import replace

from karpy.core.overview import NodeState, NodeView, overview, total_of
from karpy.core.scheduling.decide import decide
from karpy.model.nodes import Node
from karpy.model.resources import CPU
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import NodeReason, Nomination, Verdict
from tests.builders import NOON
from tests.core.disruption.scenes import cluster, node, only_claim, only_node, pod, pod_budget

HOUR = timedelta(hours=1)


def view(each: Node) -> NodeView:
    (seen,) = overview(cluster(each), Verdict()).nodes
    return seen


@pytest.mark.parametrize(
    ("each", "state"),
    [
        (node("a"), NodeState.READY),
        (node("a", ready=False), NodeState.NOT_READY),
        (node("a", initialized=False), NodeState.STARTING),
        (only_claim("a", registered=False, initialized=False), NodeState.STARTING),
        (node("a", true_conditions=["DisruptionReason"]), NodeState.CHOSEN),
        (node("a", replaced=True), NodeState.CHOSEN),
        (node("a", true_conditions=["DisruptionReason"], deleting=True), NodeState.DELETING),
    ],
)
def test_a_node_has_the_first_state_that_applies(each: Node, state: NodeState) -> None:
    assert view(each).state is state


def test_a_deleting_node_has_a_reason_and_a_start() -> None:
    chosen = view(node("a", true_conditions=["DisruptionReason"]))
    deleting = view(node("a", true_conditions=["DisruptionReason"], deleting=True))

    assert (chosen.reason, chosen.since) == ("DisruptionReason", NOON - HOUR)
    assert (deleting.reason, deleting.since) == ("DisruptionReason", NOON)


def test_a_drifted_node_has_a_reason() -> None:
    drifted = view(node("a", true_conditions=["Drifted"]))

    assert (drifted.drifted, view(node("a")).drifted) == ("Drifted", "")


def test_a_node_is_empty_since_its_last_pod_event_though_daemons_stay() -> None:
    seen = cluster(
        node("a", last_pod_event=NOON - HOUR / 2), pods=[pod("log", on="a", cpu="1", daemon=True)]
    )

    (shown,) = overview(seen, Verdict()).nodes

    assert (shown.is_empty, shown.empty_since, shown.daemons) == (True, NOON - HOUR / 2, 1)
    assert shown.requests[CPU] == 1000


def test_a_node_has_the_blocker_of_its_disruption_or_drain() -> None:
    pods = [
        pod("web-0", on="a", labels={"app": "web"}),
        pod("web-1", on="b", labels={"app": "web"}),
    ]
    seen = cluster(node("a"), node("b", deleting=True), node("c"), pods=pods)
    guarded = _with_budget(seen)

    kept = {each.name: each.blocker for each in overview(guarded, Verdict()).nodes}

    assert kept["a"] is not None
    assert kept["b"] is not None
    assert (kept["a"].why, kept["b"].why) == (NodeReason.POD_BUDGET, NodeReason.POD_BUDGET)
    assert kept["c"] is None


def _with_budget(seen: Snapshot) -> Snapshot:
    return Snapshot(
        seen.now,
        pods=seen.pods,
        nodes=seen.nodes,
        pools=seen.pools,
        catalog=seen.catalog,
        budgets=(pod_budget("db"),),
    )


def test_nodes_of_node_groups_have_a_capacity_type() -> None:
    stranger = only_node(
        "a",
        labels={
            "karpenter.sh/capacity-type": "",
            "karpenter.sh/nodepool": "",
            "eks.amazonaws.com/capacityType": "SPOT",
        },
    )

    seen = view(stranger)

    assert (seen.capacity_type, seen.pool, seen.state) == ("spot", "", NodeState.READY)


def test_totals_count_nodes_whose_price_is_not_known() -> None:
    seen = overview(cluster(node("a"), node("b", type="strange")), Verdict())

    totals = total_of(seen.nodes)

    assert (totals.nodes, totals.unpriced) == (2, 1)
    assert totals.price == next(each.price for each in seen.nodes if each.name == "a")
    assert totals.by_capacity_type == (("on-demand", 2),)


def test_waiting_pods_have_their_decision_refused_pods_first() -> None:
    seen = cluster(node("a"), pods=[pod("little", cpu="100m"), pod("vast", cpu="9000")])

    waiting = overview(seen, decide(seen)).waiting

    assert [each.key for each in waiting] == ["shop/vast", "shop/little"]
    assert waiting[0].refusal is not None
    assert (waiting[1].node, waiting[1].refusal) == ("a", None)


def test_a_node_does_not_count_virtual_pods() -> None:
    room = replace(pod("capacity-buffer-spare-1", cpu="100m"), is_virtual=True)
    seen = cluster(node("a"), pods=[room])

    (shown,) = overview(seen, Verdict(nominations=(Nomination("a", (room.key,)),))).nodes

    assert (shown.nominated_pods, shown.buffer_pods) == (0, 0)


def test_a_node_counts_the_virtual_pods_that_it_keeps_room_for() -> None:
    seen = cluster(replace(node("a"), buffer_pods=2))

    (shown,) = overview(seen, Verdict()).nodes

    assert shown.buffer_pods == 2


def test_a_node_counts_its_nominated_pods() -> None:
    seen = cluster(node("a"), pods=[pod("web-0", cpu="100m")])

    (shown,) = overview(seen, Verdict(nominations=(Nomination("a", ("shop/web-0",)),))).nodes

    assert (shown.nominated_pods, shown.pods) == (1, ())
