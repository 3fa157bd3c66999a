"""Deletion costs: a scale-in first deletes pods on nodes that are disrupted next."""

from typing import Unpack

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from karpy.core.disruption.deletioncost import (
    LEAST,
    NODES_MAX,
    DeletionGroup,
    PodCost,
    find_deletion_costs,
    is_managed,
)
from karpy.model.nodes import Node
from karpy.model.pods import DAEMON_SET, Owner, Pod
from karpy.model.pools import NodePool
from karpy.model.settings import Settings
from karpy.model.snapshot import Snapshot
from tests.core.disruption.scenes import (
    ALL,
    DISRUPTED,
    MINUTE,
    NEVER,
    PodFields,
    budgets,
    cluster,
    node,
    pod,
    pod_budget,
    pool,
)

GATE = Settings(manages_deletion_cost=True)
APP = "app-1"


def used(name: str, count: int = 1, **fields: Unpack[PodFields]) -> list[Pod]:
    """Build some pods of a ReplicaSet on a node."""
    merged: PodFields = {"on": name, "replica_set": APP}
    merged.update(fields)
    return [pod(f"{name}-{number}", **merged) for number in range(count)]


def scene(*nodes: Node, pods: list[Pod], pools: list[NodePool] | None = None) -> Snapshot:
    return cluster(*nodes, pods=pods, pools=pools, settings=GATE)


def costs(snapshot: Snapshot) -> dict[str, tuple[str, int | None]]:
    """Return the group and the cost of each node."""
    return {each.node: (each.group.name, each.cost) for each in find_deletion_costs(snapshot).nodes}


def kept(snapshot: Snapshot) -> dict[str, tuple[str, str]]:
    """Return the reason and the detail for which nodes are kept."""
    return {
        each.node: (each.refusal.why.name, each.refusal.detail)
        for each in find_deletion_costs(snapshot).nodes
        if each.refusal is not None
    }


def written(snapshot: Snapshot) -> dict[str, int | None]:
    """Return the pods to write, with their costs."""
    return {each.name: each.cost for each in find_deletion_costs(snapshot).writes()}


# --- order ---------------------------------------------------------------------------------------


def test_nodes_are_ranked_by_what_they_save_for_the_pods_that_move() -> None:
    snapshot = scene(
        node("dear", type="large"),
        node("cheap"),
        node("busy", type="large"),
        pods=[*used("dear"), *used("cheap"), *used("busy", 9)],
    )

    assert costs(snapshot) == {
        "dear": ("CONSOLIDATED", -3),
        "cheap": ("CONSOLIDATED", -2),
        "busy": ("CONSOLIDATED", -1),
    }
    assert written(snapshot)["dear-0"] == -3


def test_names_decide_between_nodes_that_save_the_same() -> None:
    snapshot = scene(node("b"), node("a"), pods=[*used("b"), *used("a")])

    assert costs(snapshot) == {"a": ("CONSOLIDATED", -2), "b": ("CONSOLIDATED", -1)}


def test_a_node_that_goes_leaves_the_costs_of_the_others_as_they_are() -> None:
    nodes = [node(name) for name in ("a", "b", "c")]
    pods = [*used("a"), *used("b"), *used("c")]

    before, after = costs(scene(*nodes, pods=pods)), costs(scene(*nodes[1:], pods=pods))

    assert {name: before[name] for name in after} == after


def test_drifted_nodes_come_before_all_others() -> None:
    snapshot = scene(
        node("dear", type="large"),
        node("drifted", true_conditions=["Drifted"]),
        pods=[*used("dear"), *used("drifted")],
    )

    assert costs(snapshot) == {"drifted": ("DRIFTED", -2), "dear": ("CONSOLIDATED", -1)}


def test_a_drifted_node_of_a_static_pool_ranks_with_the_others() -> None:
    snapshot = scene(
        node("a"),
        node("drifted", true_conditions=["Drifted"]),
        pods=[*used("a"), *used("drifted")],
        pools=[pool(replicas=2)],
    )

    assert costs(snapshot) == {"a": ("CONSOLIDATED", -2), "drifted": ("CONSOLIDATED", -1)}


@pytest.mark.parametrize(
    "gone",
    [
        node("gone", deleting=True),
        node("gone", replaced=True),
        node("gone", taints=[DISRUPTED]),
    ],
    ids=["deleting", "of a command", "tainted"],
)
def test_pods_whose_node_goes_away_cost_least(gone: Node) -> None:
    snapshot = scene(gone, node("stays"), pods=[*used("gone"), *used("stays")])

    assert costs(snapshot)["gone"] == ("TERMINATING", LEAST)
    assert written(snapshot) == {"gone-0": -2147483648, "stays-0": -1}


def test_nodes_of_a_command_that_is_only_proposed_keep_their_place() -> None:
    snapshot = scene(node("a"), node("b"), pods=[*used("a"), *used("b")])

    proposed = replace(snapshot, in_command=frozenset({"a-claim"}))

    assert find_deletion_costs(proposed) == find_deletion_costs(snapshot)


# --- nodes that stay -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("blocked", "reason"),
    [
        (node("n", annotations={"karpenter.sh/do-not-disrupt": "true"}), "DO_NOT_DISRUPT"),
        (node("n", nominated_for=MINUTE), "NOMINATED"),
        (node("n", initialized=False), "UNINITIALIZED"),
        (node("n", unreadable="broken"), "UNREADABLE"),
        (node("n", pool="gone"), "POOL_MISSING"),
        (node("n", type="unheard-of"), "TYPE_UNKNOWN"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_node_that_may_not_be_disrupted_is_kept(blocked: Node, reason: str) -> None:
    snapshot = scene(blocked, pods=used("n", deletion_cost="-7"))

    assert costs(snapshot) == {"n": ("KEPT", None)}
    assert kept(snapshot)["n"][0] == reason
    assert written(snapshot) == {"n-0": None}


def test_a_protected_pod_keeps_its_node() -> None:
    snapshot = scene(node("n"), pods=[*used("n"), *used("n", do_not_disrupt="true")])

    assert kept(snapshot)["n"][0] == "POD_DO_NOT_DISRUPT"


def test_a_budget_of_pods_keeps_their_node() -> None:
    snapshot = scene(node("n"), pods=used("n", labels={"app": "web"}))
    guarded = replace(snapshot, budgets=(pod_budget("none"),))

    assert kept(guarded) == {"n": ("POD_BUDGET", "shop/none")}


@pytest.mark.parametrize(
    "pinning",
    [
        pod("db-0", on="n", stateful=True),
        pod("alone", on="n"),
        pod("odd", on="n", owners=[Owner("example.com/v1", "Shard", "s", "u", is_controller=True)]),
    ],
    ids=lambda each: each.name,
)
def test_a_pod_that_no_scale_in_takes_away_keeps_its_node(pinning: Pod) -> None:
    snapshot = scene(node("n"), pods=[*used("n"), pinning])

    assert kept(snapshot) == {"n": ("PINNED", pinning.key)}


@pytest.mark.parametrize(
    "other",
    [
        pod("dns", on="n", namespace="kube-system", stateful=True),
        pod("agent", on="n", owners=[Owner(*DAEMON_SET, "agent", "u", is_controller=True)]),
        pod("job", on="n", owners=[Owner("batch/v1", "Job", "job", "u", is_controller=True)]),
        pod("proxy", on="n", static=True),
        pod("over", on="n", phase="Succeeded"),
    ],
    ids=lambda each: each.name,
)
def test_other_pods_keep_no_node(other: Pod) -> None:
    assert costs(scene(node("n"), pods=[*used("n"), other])) == {"n": ("CONSOLIDATED", -1)}


def test_a_pool_that_never_consolidates_keeps_its_nodes_unless_they_are_drifted() -> None:
    snapshot = scene(
        node("a"),
        node("drifted", true_conditions=["Drifted"]),
        pods=[*used("a"), *used("drifted")],
        pools=[pool(policy=NEVER)],
    )

    assert costs(snapshot) == {"drifted": ("DRIFTED", -1), "a": ("KEPT", None)}
    assert kept(snapshot) == {"a": ("CONSOLIDATION_DISABLED", "")}


def test_a_budget_leaves_the_nodes_that_save_less() -> None:
    nodes = [node(name) for name in ("a", "b", "c")]
    snapshot = scene(
        *nodes,
        pods=[*used("a", 2), *used("b"), *used("c", 3)],
        pools=[pool(policy=budgets("2"))],
    )

    assert costs(snapshot) == {
        "b": ("CONSOLIDATED", -2),
        "a": ("CONSOLIDATED", -1),
        "c": ("KEPT", None),
    }
    assert kept(snapshot) == {"c": ("BUDGET_SPENT", "2 of 3 nodes allowed, 0 taken")}


def test_each_reason_has_a_budget_of_its_own() -> None:
    only_drift = replace(budgets("0").budgets[0], reasons=("Underutilized",))
    snapshot = scene(
        node("a"),
        node("drifted", true_conditions=["Drifted"]),
        pods=[*used("a"), *used("drifted")],
        pools=[pool(policy=replace(ALL, budgets=(only_drift,)))],
    )

    assert costs(snapshot) == {"drifted": ("DRIFTED", -1), "a": ("KEPT", None)}


def test_nodes_that_are_not_ours_have_no_costs() -> None:
    foreign = node("foreign", foreign=True)

    assert costs(scene(foreign, pods=used("foreign"))) == {}


# --- pods ----------------------------------------------------------------------------------------


def test_only_pods_of_replica_sets_are_written() -> None:
    job = pod("job", on="n", owners=[Owner("batch/v1", "Job", "job", "u", is_controller=True)])
    unreadable = pod("odd", on="n", replica_set=APP, namespace="kube-system", phase="Failed")

    assert written(scene(node("n"), pods=[*used("n"), job, unreadable])) == {"n-0": -1}


def test_a_pod_with_the_right_cost_is_not_written() -> None:
    snapshot = scene(node("n"), pods=used("n", deletion_cost="-1"))

    assert costs(snapshot) == {"n": ("CONSOLIDATED", -1)}
    assert written(snapshot) == {}


@pytest.mark.parametrize("text", ["0", "17", "2147483647", "much", "1.5", "-2147483649", ""])
@pytest.mark.parametrize("on", [node("n"), node("n", deleting=True), node("n", initialized=False)])
def test_a_value_that_only_a_user_can_have_written_stays(text: str, on: Node) -> None:
    """Karpenter overwrites the annotation, and removes it on nodes that are kept."""
    snapshot = scene(
        on,
        pods=[*used("n", deletion_cost=text), pod("other", on="n", replica_set=APP)],
    )

    assert not is_managed(text)
    assert "n-0" not in written(snapshot)


def test_a_pod_says_which_value_it_is_to_have() -> None:
    (write,) = find_deletion_costs(scene(node("n"), pods=used("n"))).writes()

    assert write == PodCost("n-0", "shop", used("n")[0].uid, -1)
    assert write.text == "-1"
    assert replace(write, cost=None).text is None


def test_deletion_costs_do_not_change_the_order_that_they_say() -> None:
    """Otherwise the costs written in one cycle would change the order in the next."""
    nodes = [node("a", type="large"), node("b")]
    before = scene(*nodes, pods=[*used("a"), *used("b")])
    after = scene(
        *nodes, pods=[*used("a", deletion_cost="-2"), *used("b", deletion_cost="-1000000000")]
    )

    assert costs(before) == costs(after)


# --- cycles --------------------------------------------------------------------------------------


def many(count: int, *, deleting: bool = False) -> tuple[list[Node], list[Pod]]:
    nodes = [node(f"n{number:03d}", deleting=deleting) for number in range(count)]
    return nodes, [each for made in nodes for each in used(made.name)]


def test_a_cycle_writes_the_pods_of_so_many_nodes() -> None:
    nodes, pods = many(NODES_MAX + 3)

    found = find_deletion_costs(scene(*nodes, pods=pods))

    assert len(list(found.writes())) == NODES_MAX
    assert found.postponed == 3
    assert found.pending() == {"web": NODES_MAX + 3}
    assert [each.node for each in found.nodes if each.is_postponed] == ["n050", "n051", "n052"]


def test_nodes_that_go_away_are_written_however_many_they_are() -> None:
    gone, pods = many(NODES_MAX + 3, deleting=True)

    found = find_deletion_costs(scene(*gone, node("z"), pods=[*pods, *used("z")]))

    assert len(list(found.writes())) == NODES_MAX + 4
    assert found.postponed == 0


def test_nodes_whose_pods_have_their_costs_do_not_count() -> None:
    nodes, pods = many(NODES_MAX + 3)
    first = find_deletion_costs(scene(*nodes, pods=pods))
    texts = {each.uid: each.text for each in first.writes()}
    later = [
        replace(each, disruption=replace(each.disruption, deletion_cost=texts.get(each.uid)))
        for each in pods
    ]

    second = find_deletion_costs(scene(*nodes, pods=later))

    assert [each.name for each in second.writes()] == ["n050-0", "n051-0", "n052-0"]
    assert second.postponed == 0


def test_kept_nodes_get_what_the_others_leave() -> None:
    nodes, pods = many(NODES_MAX - 1)
    stale = [node(f"stale{number}", initialized=False) for number in range(2)]
    old = [each for made in stale for each in used(made.name, deletion_cost="-9")]

    found = find_deletion_costs(scene(*stale, *nodes, pods=[*old, *pods]))

    assert [each.name for each in found.writes()][-1] == "stale0-0"
    assert [each.node for each in found.nodes if each.is_postponed] == ["stale1"]


@given(
    st.lists(st.sampled_from(["small", "medium", "large"]), min_size=1, max_size=8),
    st.data(),
)
def test_writing_all_that_is_asked_for_leaves_nothing_to_write(
    types: list[str], data: st.DataObject
) -> None:
    annotations = st.sampled_from([None, "-3", "-2147483648", "5", "no number"])
    nodes = [
        node(
            f"n{number}",
            type=each,
            deleting=data.draw(st.booleans()),
            true_conditions=data.draw(st.sampled_from([(), ("Drifted",)])),
        )
        for number, each in enumerate(types)
    ]
    pods = [each for made in nodes for each in used(made.name, data.draw(st.integers(0, 3)))]
    pods = [
        replace(each, disruption=replace(each.disruption, deletion_cost=data.draw(annotations)))
        for each in pods
    ]
    share = data.draw(st.sampled_from(["0", "1", "50%"]))
    before = scene(*nodes, pods=pods, pools=[pool(policy=budgets(share))])

    found = find_deletion_costs(before)
    texts = {each.uid: each.text for each in found.writes()}
    after = [
        replace(each, disruption=replace(each.disruption, deletion_cost=texts[each.uid]))
        if each.uid in texts
        else each
        for each in pods
    ]
    again = find_deletion_costs(replace(before, pods=tuple(after)))

    assert list(again.writes()) == []
    assert [(each.node, each.group, each.cost) for each in again.nodes] == [
        (each.node, each.group, each.cost) for each in found.nodes
    ]
    ranked = [each.cost for each in found.nodes if each.cost not in {None, LEAST}]
    assert ranked == list(range(-len(ranked), 0))
    assert {each.node for each in found.nodes} == {each.name for each in nodes}
    assert all(
        (each.group is DeletionGroup.KEPT) == (each.refusal is not None) for each in found.nodes
    )
