"""Strategies for small clusters and the questions about their nodes."""

from datetime import timedelta
from typing import Final

from hypothesis import strategies as st
from msgspec.structs import replace

from karpy.core.disruption.decide import METHODS, decide_disruption
from karpy.core.disruption.progress import VALIDATION_DELAY
from karpy.model.commands import CommandNode
from karpy.model.conditions import Condition
from karpy.model.nodes import Node, RepairAction, RepairPolicy, RepairRules, join_node
from karpy.model.pods import Pod
from karpy.model.pools import Budget, ConsolidationPolicy, DisruptionPolicy
from karpy.model.settings import Settings
from karpy.model.snapshot import (
    ConfirmationQuestion,
    DisruptionQuestion,
    LegacyRepairQuestion,
    NodeQuestion,
    Snapshot,
    ValidationQuestion,
)
from tests.builders.pods import NOON
from tests.core.disruption.scenes import (
    ALL,
    BALANCED,
    DISRUPTED,
    HOUR,
    MINUTE,
    NEVER,
    NodeFields,
    PodFields,
    budgets,
    cluster,
    node,
    pod,
    pod_budget,
    pool,
)

REPAIRS: Final = (
    RepairPolicy("Ready", "False", 10 * MINUTE),
    RepairPolicy("Slow", "True", MINUTE, ".*", RepairAction.REBOOT, 7, 5 * MINUTE),
)
_READY: Final = Condition("Ready", "True", NOON - HOUR)
_FAULTS: Final = (
    Condition("Ready", "False", NOON - HOUR, "KubeletNotReady", "it is silent"),
    Condition("Slow", "True", NOON - HOUR, "Swapping"),
)
_USUAL: Final = (
    PodFields(cpu="1", labels={"app": "web"}),
    PodFields(cpu="3"),
)
_PODS: Final = (
    PodFields(cpu="2", stateful=True, priority=7, more={"a.b/c": "1"}),
    PodFields(do_not_disrupt="true"),
    PodFields(unreadable="`spec` is odd"),
    PodFields(do_not_disrupt="90m", age=HOUR),
    PodFields(daemon=True, claims=["data"], deleted=NOON),
    PodFields(cpu="300"),
    PodFields(replica_set="web-5d8f", expected=True),
)
_POLICIES: Final = (
    ALL,
    ALL,
    BALANCED,
    NEVER,
    budgets("0"),
    budgets("1"),
    budgets("40%"),
    DisruptionPolicy(
        HOUR,
        ConsolidationPolicy.WHEN_EMPTY,
        (Budget("1", ("Empty",), "0 9 * * *", 4 * HOUR), Budget("2", ())),
    ),
)


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    """Draw a node: in half of the cases a plain one, perhaps drifted or broken."""
    fields = NodeFields(
        type=draw(st.sampled_from(["small", "small", "large", "unheard-of"])),
        pool=draw(st.sampled_from(["web", "web", "batch"])),
        spot=draw(st.booleans()),
        true_conditions=draw(
            st.sampled_from([["Consolidatable"], ["Consolidatable"], ["Drifted"], []])
        ),
        grace_period=draw(st.sampled_from([None, MINUTE])),
        conditions=[draw(st.sampled_from([_READY, _READY, _READY, *_FAULTS]))],
    )
    if draw(st.booleans()):
        return node(name, **fields)
    return draw(odd_nodes(name, fields))


@st.composite
def odd_nodes(draw: st.DrawFn, name: str, fields: NodeFields) -> Node:
    """Draw a node that has one or more reasons to be kept."""
    odd = NodeFields(
        pool=draw(st.sampled_from(["web", "web", "gone", ""])),
        annotations=draw(st.sampled_from([{}, {}, {"karpenter.sh/do-not-disrupt": "true"}])),
        taints=draw(st.sampled_from([(), (DISRUPTED,)])),
        true_conditions=draw(
            st.sampled_from([["Consolidatable"], ["DisruptionReason"], ["Rebooting"]])
        ),
        initialized=draw(st.sampled_from([True, True, False])),
        deleting=draw(st.sampled_from([False, False, True])),
        replaced=draw(st.sampled_from([False, False, True])),
        expire_after=draw(st.sampled_from([None, timedelta(days=30, microseconds=1)])),
        last_pod_event=draw(st.sampled_from([None, NOON - MINUTE])),
        nominated_for=draw(st.sampled_from([-MINUTE, -MINUTE, MINUTE])),
        buffer_pods=draw(st.sampled_from([0, 0, 2])),
        unreadable=draw(st.sampled_from(["", "", "`spec` is odd"])),
        foreign=draw(st.sampled_from([False, False, True])),
    )
    merged: NodeFields = {**fields, **odd}
    made = node(name, **merged)
    return draw(st.sampled_from([made, made, made, join_node(made.node_record, None)]))


@st.composite
def clusters(draw: st.DrawFn) -> Snapshot:
    """Draw a few nodes with pods and NodePools."""
    some = [draw(nodes(f"node-{number}")) for number in range(draw(st.integers(2, 7)))]
    pods = [each for node in some for each in draw(pods_on(node))]
    made = cluster(
        *some,
        pods=pods,
        pools=[
            pool(policy=draw(st.sampled_from(_POLICIES))),
            pool("batch", replicas=draw(st.sampled_from([None, 0, 3])), limits={"nodes": "4"}),
        ],
        budgets=draw(st.sampled_from([(), (pod_budget("guard"),)])),
        settings=draw(settings()),
        repair=RepairRules(
            draw(st.sampled_from([(), REPAIRS])),
            {"uid-node-1-claim": (NOON - MINUTE, NOON - HOUR)},
        ),
    )
    return replace(
        made, in_command=draw(st.sampled_from([frozenset(), frozenset({"node-0-claim"})]))
    )


@st.composite
def pods_on(draw: st.DrawFn, node: Node) -> list[Pod]:
    """Draw up to two pods on a node."""
    known = st.sampled_from(_USUAL) | st.sampled_from(_USUAL) | st.sampled_from(_PODS)
    chosen = draw(st.lists(known, max_size=2))
    placed: list[PodFields] = [{"on": node.name, **fields} for fields in chosen]
    return [pod(f"pod-{number}-on-{node.name}", **fields) for number, fields in enumerate(placed)]


@st.composite
def settings(draw: st.DrawFn) -> Settings:
    """Draw settings, each feature gate open or not."""
    return Settings(
        spot_to_spot_consolidation=draw(st.booleans()),
        terminate_first_drift=draw(st.booleans()),
        terminate_first_repair=draw(st.booleans()),
        manages_deletion_cost=draw(st.booleans()),
    )


@st.composite
def questions(draw: st.DrawFn) -> NodeQuestion:
    """Draw a question of each kind: disruption, validation, confirmation, legacy repair."""
    snapshot = draw(clusters())
    kind = draw(st.sampled_from(["disruption", "validation", "confirmation", "legacy"]))
    if kind == "validation":
        before = DisruptionQuestion(snapshot, draw(st.sampled_from(_SETTLED)))
        commands = decide_disruption(before).commands
        if commands:
            again = draw(st.sampled_from([snapshot, snapshot, draw(clusters())]))
            later = replace(again, now=again.now + VALIDATION_DELAY, in_command=frozenset())
            return ValidationQuestion(later, draw(st.sampled_from(commands)))
    if kind == "confirmation":
        chosen = draw(st.lists(st.sampled_from(_CHOSEN), unique=True))
        return ConfirmationQuestion(
            snapshot, draw(st.sampled_from(METHODS)).name, tuple(chosen), draw(st.booleans())
        )
    if kind == "legacy":
        return LegacyRepairQuestion(snapshot, draw(st.sampled_from(_CHOSEN)).claim)
    return DisruptionQuestion(snapshot, draw(st.sampled_from(_SETTLED)))


_SETTLED: Final = tuple(
    frozenset(each.name for each in METHODS[:number]) for number in range(len(METHODS))
)
"""Methods to skip, so that each method is once the first to be asked."""
_CHOSEN: Final = tuple(
    CommandNode(f"node-{number}", f"node-{number}-claim", "web", 1_500_000) for number in range(7)
)
"""Nodes of a command; some of them may not exist."""
