"""Random clusters whose nodes may be disrupted, for comparisons with the reference."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

from msgspec.structs import replace

from karpy.core.scheduling.decide import decide
from karpy.model.conditions import READY, TRUE, Condition, Conditions
from karpy.model.labels import CAPACITY_TYPE, INITIALIZED, ON_DEMAND, REGISTERED, SPOT
from karpy.model.nodes import Node
from karpy.model.pods import Pod, PodDisruption
from karpy.model.pools import Budget, ConsolidationPolicy, DisruptionPolicy, NodePool
from karpy.model.records import ClaimRecord, Identity, NodeRecord
from karpy.model.requirements import one_of
from karpy.model.settings import Settings
from karpy.model.snapshot import Snapshot
from tests.builders import NOON
from tests.core.disruption.scenes import HOUR, MINUTE, NodeFields, PodFields, cluster, node, pod
from tests.core.disruption.scenes import pool as any_pool
from tests.fuzz.clusters import random_snapshot
from tests.fuzz.dice import Dice

_DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
_SECOND: Final = timedelta(seconds=1)
_BUDGETS: Final = (0, 1, 2, 99)
_USUAL: Final = ConsolidationPolicy.WHEN_EMPTY_OR_UNDERUTILIZED
_DISRUPTIONS: Final = (
    *[PodDisruption()] * 12,
    PodDisruption(disruption_cost=str(-(2**28))),
    PodDisruption(priority=2**26),
    PodDisruption(do_not_disrupt="true"),
)


def constrained_cluster(seed: int) -> Snapshot:
    """Build a cluster rich in constraints, without pending pods."""
    made, dice = random_snapshot(seed), Dice(seed + 1_000_000)
    nodes = tuple(_disruptable(dice, each) if each.claim else each for each in made.nodes)
    staying = [each.name for each in nodes if not each.is_deleting]
    pods = (_bound(dice, each, staying) for each in made.pods)
    return replace(
        made,
        nodes=nodes,
        pods=tuple(each for each in pods if each.node_name in staying),
        pools=tuple(_with_policy(dice, each) for each in made.pools),
        settings=replace(made.settings, spot_to_spot_consolidation=dice.chance(0.5)),
    )


def waiting_cluster(seed: int) -> Snapshot:
    """Build a cluster rich in constraints, with pending and displaced pods that have room."""
    made, dice = random_snapshot(seed), Dice(seed + 1_000_000)
    nodes = tuple(_disruptable(dice, each) if each.claim else each for each in made.nodes)
    made = replace(made, nodes=nodes, pools=tuple(_with_policy(dice, each) for each in made.pools))
    staying = [each.name for each in nodes if not each.is_deleting]
    housed = {key for each in decide(made).nominations for key in each.pods}
    return replace(
        made,
        pods=tuple(
            each
            for each in made.pods
            if each.node_name in staying or (each.key in housed and not each.is_virtual)
        ),
    )


def roomy_cluster(seed: int) -> Snapshot:
    """Build a cluster of many nodes with few plain pods, so that several can go together."""
    dice = Dice(seed)
    names = [f"n{number}" for number in range(dice.number(2, 9))]
    bought = dice.one([[ON_DEMAND], [SPOT], [ON_DEMAND, SPOT]])
    pools = [
        any_pool(name, requirements=[one_of(CAPACITY_TYPE, *bought)], weight=dice.one([0, 0, 5]))
        for name in ("web", "batch")
    ]
    return cluster(
        *(node(name, **_node_fields(dice)) for name in names),
        pods=[
            pod(f"{name}-{number}", **_pod_fields(dice, name))
            for name in names
            for number in range(dice.number(0, 3))
        ],
        pools=[_with_policy(dice, each) for each in pools],
        settings=Settings(spot_to_spot_consolidation=dice.chance(0.5)),
    )


def nodes_allowed(snapshot: Snapshot) -> Mapping[str, int]:
    """Return how many nodes of each NodePool its one budget, a number, still allows."""
    going = Counter(
        each.pool
        for each in snapshot.nodes
        if each.claim and each.is_initialized and each.is_deleting
    )
    return {
        each.name: max(0, int(each.policy.budgets[0].nodes) - going[each.name])
        for each in snapshot.pools
    }


def _node_fields(dice: Dice) -> NodeFields:
    return NodeFields(
        type=dice.one(["small", "medium", "large"]),
        pool=dice.one(["web", "web", "batch"]),
        spot=dice.chance(0.4),
        true_conditions=["Consolidatable"] if dice.chance(0.9) else [],
        last_pod_event=dice.one([None, None, NOON - 10 * _SECOND]),
    )


def _pod_fields(dice: Dice, name: str) -> PodFields:
    disruption = dice.one(_DISRUPTIONS)
    fields = PodFields(
        on=name, cpu=dice.one(["100m", "500m", "1", "3"]), priority=disruption.priority
    )
    if disruption.disruption_cost is not None:
        fields["disruption_cost"] = disruption.disruption_cost
    if disruption.do_not_disrupt is not None:
        fields["do_not_disrupt"] = disruption.do_not_disrupt
    return fields


def _disruptable(dice: Dice, node: Node) -> Node:
    """Give a node its Node and its NodeClaim."""
    labels = {**node.labels, REGISTERED: TRUE.lower()}
    types = ["Consolidatable"] if dice.chance(0.85) else []
    if node.is_initialized:
        labels[INITIALIZED] = TRUE.lower()
        types.append("Initialized")
    notes = {_DO_NOT_DISRUPT: "true"} if dice.chance(0.05) else {}
    meta = Identity(node.name, labels=labels, created=NOON - HOUR, annotations=notes)
    claim = ClaimRecord(
        Identity(node.claim, labels=labels, created=NOON - HOUR),
        conditions=Conditions(tuple(Condition(each, TRUE, NOON - HOUR) for each in types)),
        last_pod_event=dice.one([None, NOON - 10 * _SECOND]),
    )
    return replace(
        node,
        labels=labels,
        node_record=NodeRecord(meta, conditions=(Condition(READY, TRUE, NOON - HOUR),)),
        claim_record=claim,
        nominated_until=NOON + 5 * _SECOND if dice.chance(0.03) else None,
    )


def _bound(dice: Dice, pod: Pod, nodes: Sequence[str]) -> Pod:
    """Bind most pending pods to some node; vary the disruption fields of every pod."""
    varied = replace(pod, disruption=dice.one(_DISRUPTIONS))
    is_waiting = not pod.node_name and pod.is_unschedulable and not pod.is_virtual
    if not (nodes and is_waiting and dice.chance(0.9)):
        return varied
    return replace(
        varied, node_name=dice.one(nodes), is_unschedulable=False, is_untried=False, phase="Running"
    )


def _with_policy(dice: Dice, pool: NodePool) -> NodePool:
    after = dice.one([timedelta(), timedelta(), MINUTE / 2, None])
    policy = dice.one([*ConsolidationPolicy, _USUAL])
    budget = Budget(str(dice.one(_BUDGETS)))
    return replace(pool, policy=DisruptionPolicy(after, policy, (budget,)))
