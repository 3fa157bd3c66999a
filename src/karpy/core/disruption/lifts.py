"""Each reason to leave a node alone: the change that removes it, and the cluster after that."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.disruption.budgets import (
    WEEK,
    Allowance,
    find_allowances,
    find_next,
    find_spans,
    short_duration,
)
from karpy.core.disruption.evaluation import Evaluation
from karpy.core.disruption.rollouts import ROLLOUT_TIME
from karpy.core.lifecycle.conditions import (
    CONSOLIDATABLE,
    INITIALIZED,
    LAUNCHED,
    REGISTERED,
    with_true,
)
from karpy.core.lifecycle.eviction import protection_of
from karpy.model.labels import DO_NOT_DISRUPT, DO_NOT_REPAIR, INSTANCE_TYPE
from karpy.model.nodes import Node
from karpy.model.pods import DisruptionBudget, Pod, PodDisruption
from karpy.model.pools import Budget, ConsolidationPolicy, DisruptionPolicy, DisruptionReason
from karpy.model.settings import PreferencePolicy
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import NodeReason, NodeRefusal

_PODS_NAMED: Final = 3


class ClusterChange(Struct, frozen=True, gc=False):
    """A change of the cluster that removes a reason to leave a node alone."""

    text: str
    """The change as an instruction that starts with a verb."""
    why: NodeReason
    is_wait: bool = False
    """Whether the change happens by itself."""
    until: datetime | None = None
    """When the change happens by itself, if that is known."""


class Lifted(Struct, frozen=True, gc=False):
    """A cluster after a change."""

    change: ClusterChange
    snapshot: Snapshot


class RefusedNode(Struct, frozen=True, gc=False):
    """A node that a method leaves alone, with the reason, in a snapshot."""

    snapshot: Snapshot
    node: Node
    refusal: NodeRefusal
    reason: DisruptionReason
    """The disruption reason of the method."""

    @property
    def pods(self) -> Sequence[Pod]:
        """The pods on the node."""
        return [each for each in self.snapshot.pods if each.node_name == self.node.name]

    @property
    def policy(self) -> DisruptionPolicy:
        """The disruption policy of its NodePool."""
        pools = (each for each in self.snapshot.pools if each.name == self.node.pool)
        return next(pools).policy


Lift = Callable[[RefusedNode], Lifted]


def lift(refused: RefusedNode) -> Lifted | None:
    """Remove the reason why a node is left alone; None if no change of the cluster does that."""
    found = _LIFTS.get(refused.refusal.why)
    return None if found is None else found(refused)


def advice_on(refused: RefusedNode) -> str:
    """Return advice on a reason that no single change removes; it starts with a verb."""
    refusal, node = refused.refusal, refused.node
    if refusal.why is NodeReason.UNMANAGED and node.claim_record is None and node.pool:
        return "look for its NodeClaim (`kubectl get nodeclaims`): none was seen"
    words = {
        "detail": refusal.detail,
        "pool": node.pool,
        "claim": node.claim,
        "node": node.name,
        "type": node.labels.get(INSTANCE_TYPE, "none"),
        "pods": named(refusal.pods),
        "state": _state_of(node),
    }
    return ADVICE[refusal.why].format(**words)


def named(keys: Sequence[str]) -> str:
    """List the first few names."""
    if len(keys) <= _PODS_NAMED:
        return ", ".join(keys)
    return f"{', '.join(keys[:_PODS_NAMED])} and {len(keys) - _PODS_NAMED} more"


def _state_of(node: Node) -> str:
    """Return the message of the first NodeClaim condition that is not True, in parentheses."""
    if node.claim_record is None:
        return ""
    found = map(node.claim_record.conditions.get, (LAUNCHED, REGISTERED, INITIALIZED))
    waits = (each.message or each.reason for each in found if each and not each.is_true)
    return next((f" ({each})" for each in waits), "")


def _lift_annotation(refused: RefusedNode) -> Lifted:
    key = DO_NOT_REPAIR if refused.refusal.why is NodeReason.DO_NOT_REPAIR else DO_NOT_DISRUPT
    record = refused.node.node_record
    assert record is not None
    rest = {name: value for name, value in record.meta.annotations.items() if name != key}
    bare = replace(record, meta=replace(record.meta, annotations=rest))
    change = ClusterChange(
        f"remove the annotation `{key}` from Node `{record.name}`", refused.refusal.why
    )
    return Lifted(change, _with_node(refused, replace(refused.node, node_record=bare)))


def _lift_protection(refused: RefusedNode) -> Lifted:
    now, until = refused.snapshot.now, refused.refusal.until
    protected = sorted(each.key for each in refused.pods if protection_of(each, now).is_active)
    bare = {
        each.key: replace(each, disruption=replace(each.disruption, do_not_disrupt=None))
        for each in refused.pods
        if each.disruption != PodDisruption()
    }
    text = f"remove the annotation `{DO_NOT_DISRUPT}` from {named(protected)}"
    if until is not None:
        text = f"wait until the annotation `{DO_NOT_DISRUPT}` protects {named(protected)} no more"
    change = ClusterChange(text, refused.refusal.why, is_wait=until is not None, until=until)
    return Lifted(change, _with_pods(refused.snapshot, bare))


def _lift_pod_budgets(refused: RefusedNode) -> Lifted:
    """Remove the PodDisruptionBudgets that the refusal names."""
    names = frozenset(refused.refusal.detail.split())
    held = [each for each in refused.snapshot.budgets if each.key in names]
    rest = tuple(each for each in refused.snapshot.budgets if each.key not in names)
    if refused.refusal.why is NodeReason.POD_BUDGETS:
        text = f"have one PodDisruptionBudget alone cover {named(refused.refusal.pods)}:"
        text += f" {named(sorted(names))} do"
    else:
        text = "; ".join(_easing(each) for each in held)
    return Lifted(ClusterChange(text, refused.refusal.why), replace(refused.snapshot, budgets=rest))


def _easing(budget: DisruptionBudget) -> str:
    """Say how to make a PodDisruptionBudget allow an eviction."""
    name = f"PodDisruptionBudget {budget.key}"
    if budget.disruptions_allowed is None:
        return f"look at the status of {name}, which is not known"
    if budget.forbids_all:
        setting = "minAvailable: 100%" if budget.max_unavailable is None else "maxUnavailable: 0"
        return f"let {name} allow a disruption: with `{setting}` it never does"
    setting = f"minAvailable: {budget.min_available}"
    if budget.max_unavailable is not None:
        setting = f"maxUnavailable: {budget.max_unavailable}"
    return f"add a replica, see that all are ready, or ease {name} (`{setting}`), which allows none"


def _lift_budget(refused: RefusedNode) -> Lifted:
    snapshot, policy = refused.snapshot, refused.policy
    allowance = find_allowances(Evaluation(snapshot), refused.reason).by_pool[refused.node.pool]
    change = _change_of_budget(refused, allowance)
    return Lifted(change, _with_policy(refused, replace(policy, budgets=())))


def _change_of_budget(refused: RefusedNode, allowance: Allowance) -> ClusterChange:
    policy, now, why = refused.policy, refused.snapshot.now, refused.refusal.why
    spans = find_spans(policy, refused.reason, allowance.nodes, now, now + WEEK)
    budgets = named([_budget_text(each, policy.budgets[each]) for each in spans[0].budgets])
    pool = f"NodePool {refused.node.pool}"
    if allowance.faults:
        return ClusterChange(f"correct the budgets of {pool}: {allowance.faults[0]}", why)
    if allowance.remaining:
        text = f"wait for other nodes of {pool}, which take what its budgets allow now"
        return ClusterChange(text, why, is_wait=True)
    until = find_next(
        policy, refused.reason, allowance.nodes, more_than=allowance.consumed, since=now
    )
    if allowance.allowed:
        taken = f"{allowance.consumed} nodes of {pool} that are being deleted or not ready"
        if allowance.consumed == 1:
            taken = f"1 node of {pool} that is being deleted or not ready"
        text = f"wait for {taken}: {budgets} allows {allowance.allowed}"
        return ClusterChange(text, why, is_wait=True, until=until)
    if until is not None:
        text = f"wait until {budgets} of {pool} allows more than none"
        return ClusterChange(text, why, is_wait=True, until=until)
    return ClusterChange(f"raise {budgets} of {pool}, which allows none", why)


def _budget_text(place: int, budget: Budget) -> str:
    text = f"budget {place + 1} (`nodes: {budget.nodes}`"
    if budget.schedule is not None and budget.duration is not None:
        text += f", `{budget.schedule}` UTC for {short_duration(budget.duration)}"
    return f"{text})"


def _lift_consolidate_after(refused: RefusedNode) -> Lifted:
    policy = replace(refused.policy, consolidate_after=timedelta())
    text = f"set `consolidateAfter` of NodePool {refused.node.pool} to a duration: it is `Never`"
    return Lifted(ClusterChange(text, refused.refusal.why), _with_policy(refused, policy))


def _lift_policy(refused: RefusedNode) -> Lifted:
    other = ConsolidationPolicy.WHEN_EMPTY_OR_UNDERUTILIZED
    text = f"set `consolidationPolicy` of NodePool {refused.node.pool} to `{other.value}`"
    text += f": it is `{refused.policy.consolidation.value}`"
    policy = replace(refused.policy, consolidation=other)
    return Lifted(ClusterChange(text, refused.refusal.why), _with_policy(refused, policy))


def _lift_pod_events(refused: RefusedNode) -> Lifted:
    claim = refused.node.claim_record
    assert claim is not None
    quiet = with_true(claim, CONSOLIDATABLE, refused.snapshot.now)
    text = "wait until no pod has come or gone for `consolidateAfter`"
    until = refused.refusal.until
    if until is not None and until <= refused.snapshot.now:
        until, text = None, "wait until its NodeClaim has the condition Consolidatable"
    change = ClusterChange(text, refused.refusal.why, is_wait=True, until=until)
    return Lifted(change, _with_node(refused, replace(refused.node, claim_record=quiet)))


def _lift_nomination(refused: RefusedNode) -> Lifted:
    text = "wait for the pending pod that is nominated to it"
    change = ClusterChange(text, refused.refusal.why, is_wait=True, until=refused.refusal.until)
    return Lifted(change, _with_node(refused, replace(refused.node, nominated_until=None)))


def _lift_backoff(refused: RefusedNode) -> Lifted:
    text = "wait until the pause after a command that failed is over"
    change = ClusterChange(text, refused.refusal.why, is_wait=True, until=refused.refusal.until)
    rest = {
        claim: until
        for claim, until in refused.snapshot.command_backoffs.items()
        if claim != refused.node.claim
    }
    return Lifted(change, replace(refused.snapshot, command_backoffs=rest))


def _lift_buffer(refused: RefusedNode) -> Lifted:
    text = f"shrink the CapacityBuffer that keeps room there for {refused.refusal.detail}"
    change = ClusterChange(text, refused.refusal.why)
    return Lifted(change, _with_node(refused, replace(refused.node, buffer_pods=0)))


def _lift_young_pods(refused: RefusedNode) -> Lifted:
    """Wait for a scale-out or rollout: make all pods older than any rollout to wait for."""
    text = "wait until the nodes for pending pods are initialized"
    if refused.refusal.why is NodeReason.ROLLOUT:
        text = f"wait until the rollout that replaces {refused.refusal.detail} is over"
    old = refused.snapshot.now - ROLLOUT_TIME
    young = {
        each.key: replace(each, created=old) for each in refused.snapshot.pods if each.created > old
    }
    change = ClusterChange(text, refused.refusal.why, is_wait=True)
    return Lifted(change, _with_pods(refused.snapshot, young))


def _lift_feature_gate(refused: RefusedNode) -> Lifted:
    settings = replace(refused.snapshot.settings, spot_to_spot_consolidation=True)
    change = ClusterChange("open the feature gate `SpotToSpotConsolidation`", refused.refusal.why)
    return Lifted(change, replace(refused.snapshot, settings=settings))


def lift_unsettled_nodes(refused: RefusedNode) -> Lifted | None:
    """Let pods move to nodes within their `consolidateAfter`; None if there are no such nodes."""
    evaluation = Evaluation(refused.snapshot)
    closed = evaluation.unsettled - {refused.node.name}
    if not closed:
        return None
    times = [
        evaluation.consolidatable_at(each) for each in refused.snapshot.nodes if each.name in closed
    ]
    until = max((each for each in times if each is not None), default=None)
    nodes = tuple(
        _settled(each, evaluation.now) if each.name in closed else each
        for each in refused.snapshot.nodes
    )
    text = f"wait until no pod comes or goes on {named(sorted(closed))} for `consolidateAfter`"
    change = ClusterChange(text, refused.refusal.why, is_wait=True, until=until)
    return Lifted(change, replace(refused.snapshot, nodes=nodes))


def lift_preferences(refused: RefusedNode) -> Lifted | None:
    """Remove the preferences from the pods of the node; None if they have none."""
    if refused.snapshot.settings.preference_policy is PreferencePolicy.IGNORE:
        return None
    bare = {
        pod.key: replace(pod, rules=rules)
        for pod in refused.pods
        if pod.is_reschedulable and (rules := pod.rules.without_preferences()) != pod.rules
    }
    if not bare:
        return None
    text = f"remove the preferences (preferred terms, `ScheduleAnyway`) of {named(sorted(bare))}"
    return Lifted(ClusterChange(text, refused.refusal.why), _with_pods(refused.snapshot, bare))


def without_pods(refused: RefusedNode, keys: Sequence[str]) -> Lifted:
    """Remove pods from the cluster."""
    gone = frozenset(keys)
    rest = tuple(each for each in refused.snapshot.pods if each.key not in gone)
    them, others = ("it", "the others") if len(keys) == 1 else ("them", "the rest")
    ends = f"end {named(keys)}, or make room for {them} elsewhere: {others} have a place then"
    return Lifted(ClusterChange(ends, refused.refusal.why), replace(refused.snapshot, pods=rest))


def _settled(node: Node, now: datetime) -> Node:
    assert node.claim_record is not None
    long_ago = now - timedelta(days=365)
    return replace(node, claim_record=replace(node.claim_record, last_pod_event=long_ago))


def _with_node(refused: RefusedNode, node: Node) -> Snapshot:
    nodes = tuple(node if each.name == node.name else each for each in refused.snapshot.nodes)
    return replace(refused.snapshot, nodes=nodes)


def _with_policy(refused: RefusedNode, policy: DisruptionPolicy) -> Snapshot:
    pools = tuple(
        replace(each, policy=policy) if each.name == refused.node.pool else each
        for each in refused.snapshot.pools
    )
    return replace(refused.snapshot, pools=pools)


def _with_pods(snapshot: Snapshot, changed: Mapping[str, Pod]) -> Snapshot:
    pods: Iterable[Pod] = (changed.get(each.key, each) for each in snapshot.pods)
    return replace(snapshot, pods=tuple(pods))


_LIFTS: Final[Mapping[NodeReason, Lift]] = {
    NodeReason.DO_NOT_DISRUPT: _lift_annotation,
    NodeReason.DO_NOT_REPAIR: _lift_annotation,
    NodeReason.POD_DO_NOT_DISRUPT: _lift_protection,
    NodeReason.POD_BUDGETS: _lift_pod_budgets,
    NodeReason.POD_BUDGET: _lift_pod_budgets,
    NodeReason.BUDGET_SPENT: _lift_budget,
    NodeReason.CONSOLIDATION_DISABLED: _lift_consolidate_after,
    NodeReason.WHEN_EMPTY_ONLY: _lift_policy,
    NodeReason.SCORE_TOO_LOW: _lift_policy,
    NodeReason.NOT_QUIET: _lift_pod_events,
    NodeReason.NOMINATED: _lift_nomination,
    NodeReason.BACKING_OFF: _lift_backoff,
    NodeReason.BUFFER_PODS: _lift_buffer,
    NodeReason.SCALING_OUT: _lift_young_pods,
    NodeReason.ROLLOUT: _lift_young_pods,
    NodeReason.SPOT_TO_SPOT_DISABLED: _lift_feature_gate,
}
"""Reasons that one change of the cluster removes, or that end by themselves."""

ADVICE: Final[Mapping[NodeReason, str]] = {
    NodeReason.GONE: "look again: it does not exist any more",
    NodeReason.IN_COMMAND: "wait: a command is about it already",
    NodeReason.UNMANAGED: "delete it as it was made: no NodeClaim is behind it, no NodePool rules",
    NodeReason.NO_NODE: "see why no Node has come: `kubectl describe nodeclaim {claim}`",
    NodeReason.UNREADABLE: "correct the object that cannot be read: {detail}",
    NodeReason.REBOOTING: "wait until it has rebooted",
    NodeReason.DELETING: "wait until it is drained",
    NodeReason.UNREGISTERED: (
        "see why it does not register{state}: `kubectl describe nodeclaim {claim}`"
    ),
    NodeReason.UNINITIALIZED: (
        "see why it is not initialized{state}: `kubectl describe nodeclaim {claim}`"
    ),
    NodeReason.NO_POOL_LABEL: "put its label `karpenter.sh/nodepool` back",
    NodeReason.POOL_MISSING: (
        "create NodePool {detail}, or delete the NodeClaim: `kubectl delete nodeclaim {claim}`"
    ),
    NodeReason.POD_UNREADABLE: "correct or delete pod {detail}",
    NodeReason.POOL_STATIC: "lower `replicas` of NodePool {pool}",
    NodeReason.NOT_EMPTY: "end its pods",
    NodeReason.EMPTY: "wait for emptiness",
    NodeReason.TYPE_UNKNOWN: "name a catalog that has its instance type: {type}",
    NodeReason.LABEL_MISSING: "put its label `{detail}` back",
    NodeReason.PODS_UNPLACED: "make room for {pods} elsewhere, or end them",
    NodeReason.NEEDS_MORE_NODES: "end some of its pods: without them one new node has to be enough",
    NodeReason.NOT_CHEAPER: (
        "end or shrink some of its pods, or allow cheaper instance types in NodePool {pool}"
    ),
    NodeReason.SPOT_TO_SPOT_TYPES: (
        "allow more instance types in NodePool {pool}: 15 cheaper ones are asked for, {detail} are"
        " left"
    ),
    NodeReason.NOT_CONSIDERED: "wait: another command comes first",
    NodeReason.OUT_OF_TIME: "look for pods with very many constraints: they take the time",
    NodeReason.PINNED: "give the pod {detail} a ReplicaSet, Job or DaemonSet, or end it",
    NodeReason.NOT_DRIFTED: "change NodePool {pool}: what it makes differs from the node then",
    NodeReason.REPAIR_NEEDS_POOL: "delete it: `kubectl delete nodeclaim {claim}`",
    NodeReason.REPAIR_NEEDS_GRACE: (
        "end the pods that forbid disruption, or delete it: `kubectl delete nodeclaim {claim}`"
    ),
    NodeReason.MOSTLY_UNHEALTHY: "mend the other unhealthy nodes of NodePool {pool} first",
    NodeReason.POOL_SHRINKING: "wait until NodePool {pool} has as many nodes as it should",
    NodeReason.POOL_SIZE: "lower `replicas` of NodePool {pool}",
    NodeReason.NO_REPLACEMENT: "raise `limits.nodes` of NodePool {pool}, or lower `replicas`",
    NodeReason.CHANGED: "wait for the next pass",
}
"""Advice on all other reasons."""
