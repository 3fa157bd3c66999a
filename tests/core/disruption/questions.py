"""Small clusters at random, and what is asked about their nodes."""

from datetime import timedelta
from typing import Final

from hypothesis import strategies as st
from msgspec.structs import replace

from karpy.model.conditions import Condition
from karpy.model.disruption import Budget, ConsolidationPolicy, DisruptionPolicy
from karpy.model.questions import (
    BrokenNodesQuestion,
    DisruptionQuestion,
    EmptyConfirmationQuestion,
    EmptyNodesQuestion,
    LegacyRepairQuestion,
    ProposedNode,
    RepairConfirmationQuestion,
    SecondLookQuestion,
    TreatmentQuestion,
)
from karpy.model.repairs import RepairAction, RepairPolicy
from karpy.model.snapshot import Snapshot
from karpy.model.surroundings import NodeState, Surroundings
from tests.builders import node, pod, snapshot
from tests.builders import pool as node_pool
from tests.builders.pods import NOON
from tests.core.disruption.scenes import (
    ALL,
    DISRUPTED,
    HOUR,
    around,
    budgets,
    pod_budget,
    pool,
    state,
    tenant,
)

_KINDS: Final = (
    EmptyNodesQuestion,
    SecondLookQuestion,
    EmptyConfirmationQuestion,
    RepairConfirmationQuestion,
    LegacyRepairQuestion,
    BrokenNodesQuestion,
    TreatmentQuestion,
)
MINUTE: Final = timedelta(minutes=1)
REPAIRS: Final = (
    RepairPolicy("Ready", "False", 10 * MINUTE),
    RepairPolicy("Slow", "True", MINUTE, ".*", RepairAction.REBOOT, 7, 5 * MINUTE),
)
_FAULTS: Final = (
    Condition("Ready", "True", NOON - HOUR),
    Condition("Ready", "False", NOON - HOUR, "KubeletNotReady", "it is silent"),
    Condition("Slow", "True", NOON - HOUR, "Swapping"),
)
_TENANTS: Final = (
    tenant("web", labels={"app": "web"}),
    tenant("db", is_stateful=True, priority=7, annotations={"a": "b"}),
    tenant("guard", do_not_disrupt="true"),
    tenant("strange", unreadable="`spec` is odd"),
    tenant("late", do_not_disrupt="90m"),
    tenant("log", is_daemon=True, volume_claims=("data",), deleted=NOON),
)
_POLICIES: Final = (
    ALL,
    budgets("0"),
    budgets("1"),
    budgets("40%"),
    DisruptionPolicy(consolidate_after=None),
    DisruptionPolicy(
        HOUR,
        ConsolidationPolicy.WHEN_EMPTY,
        (Budget("1", ("Empty",), "0 9 * * *", 4 * HOUR), Budget("2", ())),
    ),
)


@st.composite
def nodes(draw: st.DrawFn, name: str) -> NodeState:
    """Give a node: every other one is ready and empty, if perhaps broken."""
    type_ = draw(st.sampled_from(["small", "large", "unheard-of"]))
    pool_name = draw(st.sampled_from(["web", "batch"]))
    made = draw(st.one_of(st.just(state(name, type=type_, pool=pool_name)), odd_nodes(name)))
    assert made.node is not None
    fault = draw(st.sampled_from(_FAULTS))
    return replace(made, node=replace(made.node, conditions=(fault,)))


@st.composite
def odd_nodes(draw: st.DrawFn, name: str) -> NodeState:
    """Give a node that has one reason to stay, or many."""
    made = state(
        name,
        pool=draw(st.sampled_from(["web", "web", "batch", "gone", ""])),
        tenants=draw(st.lists(st.sampled_from(_TENANTS), max_size=2, unique_by=id)),
        annotations=draw(st.sampled_from([{}, {}, {"karpenter.sh/do-not-disrupt": "true"}])),
        taints=draw(st.sampled_from([(), (DISRUPTED,)])),
        said=draw(st.sampled_from([["Consolidatable"], ["Consolidatable"], [], ["Rebooting"]])),
        initialized=draw(st.sampled_from([True, True, False])),
        deleting=draw(st.sampled_from([False, False, True])),
        grace_period=draw(st.sampled_from([None, MINUTE])),
        expire_after=draw(st.sampled_from([None, timedelta(days=30, microseconds=1)])),
        nominated_for=draw(st.sampled_from([-MINUTE, -MINUTE, MINUTE])),
        buffer_pods=draw(st.sampled_from([0, 0, 2])),
    )
    return draw(st.sampled_from([made, made, made, replace(made, claim=None)]))


@st.composite
def clusters(draw: st.DrawFn) -> Surroundings:
    """Give a few nodes, and what their pools say."""
    some = [draw(nodes(f"node-{number}")) for number in range(draw(st.integers(0, 8)))]
    return around(
        *some,
        pools={"web": pool(), "batch": pool("batch", replicas=draw(st.sampled_from([None, 3])))},
        policies={"web": draw(st.sampled_from(_POLICIES)), "batch": ALL},
        pod_budgets=draw(st.sampled_from([(), (pod_budget("guard"),)])),
        busy=draw(st.sampled_from([frozenset[str](), frozenset({"node-0-claim"})])),
        reads_deletion_cost=draw(st.booleans()),
    )


@st.composite
def questions(draw: st.DrawFn) -> DisruptionQuestion:
    """Ask about nodes that are empty, or broken, or were proposed to go."""
    surroundings = draw(clusters())
    kind = draw(st.sampled_from(_KINDS))
    if kind is EmptyNodesQuestion:
        return EmptyNodesQuestion(surroundings)
    if kind in {SecondLookQuestion, EmptyConfirmationQuestion, RepairConfirmationQuestion}:
        return kind(surroundings, draw(proposals()))
    if kind is LegacyRepairQuestion:
        return LegacyRepairQuestion(surroundings, draw(nodes("broken")), REPAIRS)
    rebooted = draw(st.sampled_from([(), (NOON - MINUTE, NOON - HOUR)]))
    reboots = {"uid-node-1-claim": rebooted}
    if kind is BrokenNodesQuestion:
        return BrokenNodesQuestion(surroundings, REPAIRS, reboots)
    return TreatmentQuestion(
        surroundings,
        draw(workloads(surroundings)),
        REPAIRS,
        reboots,
        may_go_first=draw(st.booleans()),
        tried=draw(st.sampled_from([frozenset[str](), frozenset({"node-2-claim"})])),
    )


@st.composite
def workloads(draw: st.DrawFn, surroundings: Surroundings) -> Snapshot:
    """Give the same nodes with pods: some fit elsewhere, some on new nodes only, some nowhere."""
    names = [each.node.name for each in surroundings.nodes if each.node is not None]
    sizes = [draw(st.sampled_from(["100m", "2", "300"])) for _ in names]
    return snapshot(
        nodes=[node(name, pool="web") for name in names],
        pods=[pod(f"on-{name}", on=name, cpu=cpu) for name, cpu in zip(names, sizes, strict=True)],
        pools=[node_pool("web"), node_pool("batch", static=True)],
    )


def proposals() -> st.SearchStrategy[tuple[ProposedNode, ...]]:
    """Give nodes that were proposed to go; some of them may be gone by now."""
    some = [ProposedNode(f"node-{number}-claim", f"node-{number}") for number in range(9)]
    return st.lists(st.sampled_from(some), unique=True).map(tuple)
