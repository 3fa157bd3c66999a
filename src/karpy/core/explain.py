"""
What a verdict means for one pod: its node, or why it stays pending and what would help.

All of it is derived from the snapshot and the verdict; nothing is decided again.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.buffers import buffer_of
from karpy.model.constraints import NodeTerm
from karpy.model.nodes import Node
from karpy.model.pods import DAEMON_SET, NODE, Pod, PodRules
from karpy.model.resources import PODS, format_quantity
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import (
    Constraint,
    Exclusion,
    Launch,
    NearMiss,
    Nomination,
    PoolRefusal,
    Reason,
    Refusal,
    Verdict,
)

GROUPS_MAX: Final = 4


class PodOutcome(Enum):
    """What became of a pod."""

    NEW_NODE = "it gets a new node"
    EXISTING_NODE = "it goes to a node that is there or on its way"
    REFUSED = "it stays pending"
    RUNNING = "it is bound to a node already"
    NOT_CONSIDERED = "it takes no part in provisioning"


class PoolGroup(Struct, frozen=True, gc=False):
    """NodePools that refuse a pod for the same decisive constraint."""

    constraint: Constraint
    details: tuple[str, ...]
    pools: tuple[str, ...]
    ruled_out: int
    """Number of instance types that the constraint rules out on its own."""
    types: int
    is_single: bool
    """Whether lifting this constraint alone would be enough in each of the NodePools."""


class PoolNearMiss(Struct, frozen=True, gc=False):
    """The instance type that lacks least, over all NodePools."""

    pool: str
    miss: NearMiss


class Fix(Struct, frozen=True, gc=False):
    """A change that would help to place a pod."""

    text: str
    """What to change; starts with a verb."""
    pools: tuple[str, ...] = ()
    """The NodePools to which the change applies."""
    constraint: Constraint | None = None
    is_enough: bool = False
    """Whether the pod would be placed after this change alone."""


class Explanation(Struct, frozen=True, gc=False):
    """What a verdict means for one pod; fields that do not apply are empty."""

    pod: str
    outcome: PodOutcome
    sentence: str
    asks: tuple[str, ...]
    """The constraints of the pod: requests, selectors, spreads, volumes, ports."""
    launch: Launch | None = None
    nomination: Nomination | None = None
    node: Node | None = None
    refusal: Refusal | None = None
    groups: tuple[PoolGroup, ...] = ()
    """NodePools by decisive constraint, largest group first."""
    exclusions: tuple[Exclusion, ...] = ()
    """How many instance types each constraint rules out on its own in all NodePools, most first."""
    types: int = 0
    nearest: PoolNearMiss | None = None
    fixes: tuple[Fix, ...] = ()
    """Changes that would help, smallest first."""
    buffer: str = ""
    """The CapacityBuffer of a virtual pod."""

    @property
    def is_no(self) -> bool:
        return self.outcome is PodOutcome.REFUSED


def find_pods(snapshot: Snapshot, name: str) -> tuple[Pod, ...]:
    """List the pods meant by `namespace/name`, or by a bare name in any namespace."""
    if "/" in name:
        return tuple(pod for pod in snapshot.pods if pod.key == name)
    return tuple(sorted((pod for pod in snapshot.pods if pod.name == name), key=lambda p: p.key))


def explain_pod(snapshot: Snapshot, verdict: Verdict, key: str) -> Explanation:
    """Return what a verdict means for the pod `key`, which must be in the snapshot."""
    pod = next(pod for pod in snapshot.pods if pod.key == key)
    explained = _explain(pod, snapshot, verdict)
    return replace(explained, buffer=buffer_of(pod)) if pod.is_virtual else explained


def _explain(pod: Pod, snapshot: Snapshot, verdict: Verdict) -> Explanation:
    key = pod.key
    for launch in verdict.launches:
        if key in launch.pods:
            return _new_node(pod, launch)
    for nomination in verdict.nominations:
        if key in nomination.pods:
            return _existing_node(pod, nomination, _node_named(snapshot, nomination.node))
    for refusal in verdict.refusals:
        if key in refusal.pods:
            return _refused(pod, refusal)
    return _without_decision(pod, snapshot)


def group_pools(pools: Iterable[PoolRefusal], groups_max: int) -> tuple[PoolGroup, ...]:
    """
    Merge NodePools with the same decisive constraint, largest group first.

    If more than `groups_max` are left, groups that differ only in the detail are merged as well.
    """
    pools = tuple(pools)
    exact = _grouped(pools, lambda each: (each.decisive.constraint.name, each.decisive.detail))
    if len(exact) <= groups_max:
        return exact
    return _grouped(pools, lambda each: (each.decisive.constraint.name, ""))


def sum_exclusions(parts: Iterable[Exclusion]) -> tuple[Exclusion, ...]:
    """Sum the instance types that each constraint rules out, most first."""
    counts: dict[tuple[Constraint, str], int] = {}
    for part in parts:
        known = (part.constraint, part.detail)
        counts[known] = counts.get(known, 0) + part.count
    return tuple(
        Exclusion(constraint, detail, count)
        for (constraint, detail), count in sorted(
            counts.items(), key=lambda item: (-item[1], item[0][0].name, item[0][1])
        )
    )


def _refused(pod: Pod, refusal: Refusal) -> Explanation:
    reason = refusal.reason.value
    return Explanation(
        pod=pod.key,
        outcome=PodOutcome.REFUSED,
        sentence=f"stays pending: {reason}{f' ({refusal.detail})' if refusal.detail else ''}",
        asks=asks_of(pod),
        refusal=refusal,
        groups=group_pools(refusal.pools, GROUPS_MAX),
        exclusions=sum_exclusions(each for pool in refusal.pools for each in _exclusions(pool)),
        types=sum(pool.types for pool in refusal.pools),
        nearest=_nearest(refusal.pools),
        fixes=fixes_for(refusal),
    )


def _new_node(pod: Pod, launch: Launch) -> Explanation:
    return Explanation(
        pod=pod.key,
        outcome=PodOutcome.NEW_NODE,
        sentence=f"gets a new node: `{launch.name}` of NodePool `{launch.pool}`",
        asks=asks_of(pod),
        launch=launch,
    )


def _existing_node(pod: Pod, nomination: Nomination, node: Node | None) -> Explanation:
    on_its_way = node is not None and not node.is_initialized
    what = "a node that is on its way" if on_its_way else "a node that exists"
    return Explanation(
        pod=pod.key,
        outcome=PodOutcome.EXISTING_NODE,
        sentence=f"goes to {what}: `{nomination.node}`",
        asks=asks_of(pod),
        nomination=nomination,
        node=node,
    )


def _without_decision(pod: Pod, snapshot: Snapshot) -> Explanation:
    outcome = PodOutcome.NOT_CONSIDERED
    if pod.is_terminal:
        sentence = f"has ended ({pod.phase}) and needs no node"
    elif pod.is_deleting and not pod.node_name:
        sentence = "is being deleted and needs no node"
    elif pod.node_name:
        outcome = PodOutcome.RUNNING
        sentence = f"is bound to node `{pod.node_name}` already"
    elif pod.is_owned_by(DAEMON_SET):
        sentence = "belongs to a DaemonSet: it gets no node of its own, new nodes leave room for it"
    elif pod.is_owned_by(NODE):
        sentence = "is a static pod of its node and is never scheduled"
    else:
        sentence = "was not considered in this decision"
    node = _node_named(snapshot, pod.node_name)
    return Explanation(
        pod=pod.key, outcome=outcome, sentence=sentence, asks=asks_of(pod), node=node
    )


def asks_of(pod: Pod) -> tuple[str, ...]:
    """List the constraints of a pod in the words of its manifest, its requests first."""
    rules = pod.rules
    requests = ", ".join(
        f"{format_quantity(amount, name)} {name}"
        for name, amount in sorted(pod.requests.items())
        if name != PODS and amount
    )
    asks = [requests, *(str(each) for each in rules.node_selector)]
    asks.append(" or ".join(_term_text(term) for term in rules.required_node_terms))
    asks += [f"tolerates {each.key or 'any taint'}" for each in rules.tolerations]
    asks += _pod_constraints(rules)
    asks += [f"prefers {_term_text(each.term)}" for each in rules.preferred_node_terms]
    asks += [f"host port {port.port}/{port.protocol}" for port in rules.ports]
    asks += [f"volume {volume.claim_of(pod.name)}" for volume in rules.volumes]
    return tuple(ask for ask in asks if ask)


def _pod_constraints(rules: PodRules) -> list[str]:
    near, away = "near pods in the same {}", "away from pods by {}"
    asks = [
        f"{'prefers' if spread.is_soft else 'needs'} spread over {_short(spread.topology_key)}"
        f" (maxSkew {spread.max_skew})"
        for spread in rules.spreads
    ]
    asks += [near.format(_short(each.topology_key)) for each in rules.affinity]
    asks += [away.format(_short(each.topology_key)) for each in rules.anti_affinity]
    for text, terms in ((near, rules.preferred_affinity), (away, rules.preferred_anti_affinity)):
        asks += ["prefers " + text.format(_short(each.term.topology_key)) for each in terms]
    return asks


def _term_text(term: NodeTerm) -> str:
    return " and ".join(str(each) for each in term.expressions) or "anything"


def _short(key: str) -> str:
    return key.rpartition("/")[2]


def _exclusions(pool: PoolRefusal) -> tuple[Exclusion, ...]:
    return pool.exclusions or (pool.decisive,)


def _nearest(pools: Sequence[PoolRefusal]) -> PoolNearMiss | None:
    """Return the near miss that lacks least; among equals, that of the first NodePool."""
    misses = [PoolNearMiss(each.pool, each.nearest) for each in pools if each.nearest]
    return min(misses, key=lambda each: len(each.miss.lacks), default=None)


def _grouped(
    pools: Sequence[PoolRefusal], key: Callable[[PoolRefusal], tuple[str, str]]
) -> tuple[PoolGroup, ...]:
    members: dict[tuple[str, str], list[PoolRefusal]] = {}
    for pool in pools:
        members.setdefault(key(pool), []).append(pool)
    groups = [
        PoolGroup(
            constraint=same[0].decisive.constraint,
            details=tuple(dict.fromkeys(each.decisive.detail for each in same)),
            pools=tuple(each.pool for each in same),
            ruled_out=sum(each.decisive.count for each in same),
            types=sum(each.types for each in same),
            is_single=all(_is_single(each) for each in same),
        )
        for same in members.values()
    ]
    return tuple(sorted(groups, key=lambda group: -len(group.pools)))


def _node_named(snapshot: Snapshot, name: str) -> Node | None:
    return next((node for node in snapshot.nodes if node.name == name), None) if name else None


_POD_FIXES: Final = {
    Reason.NOT_YET_UNSCHEDULABLE: (
        "wait for kube-scheduler to look at it; it looks at no pod with scheduling gates"
    ),
    Reason.PREEMPTING: "wait until the preempted pods are gone",
    Reason.ON_ITS_WAY: "wait for kube-scheduler to bind it",
    Reason.PLACE_TAKEN: "wait until the nodes launched with its own are open, ten seconds at most",
    Reason.LAUNCHED_IN_VAIN: (
        "see why kube-scheduler leaves it out (`kubectl describe pod`): a taint, a quota or a"
        " plugin that Karpy cannot know of"
    ),
    Reason.OPTED_OUT: "drop `karpenter.sh/nodepool DoesNotExist` from its node affinity",
    Reason.RESTRICTED_LABEL: "drop the label from its node selector and affinity",
    Reason.MATCH_FIELDS: "select the node by labels instead of matchFields",
    Reason.UNREADABLE: "correct the field, or run a version of Karpy that knows its value",
    Reason.BAD_REQUIREMENT: "correct its node selector or affinity",
    Reason.DEVICE_CLAIMS: "ask for the device as an extended resource",
    Reason.VOLUME_CLAIM_MISSING: "create the PersistentVolumeClaim, or correct its name in the pod",
    Reason.VOLUME_CLAIM_DELETING: "wait until the claim is gone, then create it again",
    Reason.VOLUME_CLAIM_LOST: "restore the volume, or delete the claim and create it again",
    Reason.VOLUME_CLAIM_BINDING: "wait until the claim is bound",
    Reason.VOLUME_CLAIM_IMMEDIATE: (
        "wait until the claim is bound, or use a StorageClass with"
        " `volumeBindingMode: WaitForFirstConsumer`"
    ),
    Reason.VOLUME_MISSING: "restore the PersistentVolume, or delete the claim that names it",
    Reason.VOLUME_DELETING: "wait until the volume is gone, then create the claim again",
    Reason.STORAGE_CLASS_MISSING: "create the StorageClass, or name one that exists in the claim",
    Reason.NO_POOL: "create a NodePool, or see why none is ready (`kubectl describe nodepool`)",
    Reason.NO_HOST: "create a NodePool that suits it",
    Reason.WAITS_FOR_RESERVATION: "wait for the reservation, or allow spot or on-demand in the pod",
    Reason.MIN_VALUES_TRUNCATED: "lower minValues of the NodePool, or narrow its requirements",
    Reason.UNDECIDED: "allow more time (`--timeout`)",
    Reason.TOO_COMPLEX: "give it fewer preferences, terms and tolerations",
    Reason.DECISION_FAILED: "report it, with the manifest of the pod",
}

_POOL_FIXES: Final = {
    Constraint.LIMIT: "raise the {topic} limit of {pools}",
    Constraint.NODE_LIMIT: "raise `limits.nodes` of {pools}",
    Constraint.RESERVATION: "wait for the reservation, or allow other capacity types in {pools}",
    Constraint.MIN_VALUES: "lower minValues of {topic} in {pools}",
    Constraint.HOST_PORT: "give the pod another host port: {detail}",
    Constraint.SPREAD: "loosen the spread in the pod, or let {pools} reach more domains",
    Constraint.ANTI_AFFINITY: (
        "loosen the anti-affinity in the pod, or let {pools} reach more domains"
    ),
    Constraint.AFFINITY: "start the pods it must be near to, or let {pools} reach their domain",
    Constraint.VOLUME_LIMIT: "mount fewer volumes in the pod, or allow types that attach more",
    Constraint.TAINT: "add a toleration for `{detail}` to the pod, if it may run on {pools}",
    Constraint.OFFERING: "allow another zone or capacity type in the pod or in {pools}: {detail}",
    Constraint.UNDEFINED_LABEL: (
        "define the label in the template of {pools}, or drop it from the pod: {detail}"
    ),
    Constraint.REQUIREMENT: "drop it from the pod, or allow it in {pools}: {detail}",
    Constraint.RESOURCE: (
        "lower the pod's {topic} request, or allow larger instance types in {pools}"
    ),
    Constraint.VOLUME_TOPOLOGY: "let {pools} make nodes where the volumes are: {detail}",
    Constraint.POOL_EMPTY: "loosen the requirements of {pools} that leave no type: {detail}",
    Constraint.POOL_STATIC: "add a NodePool without `replicas`, or raise those of {pools}",
    Constraint.POOL_NOT_READY: "mend what keeps {pools} from being ready: {detail}",
    Constraint.POOL_DELETING: "create a NodePool that takes the place of {pools}",
}
"""
The fix for each constraint, smallest change first.

A full limit is a smaller obstacle than a taint, and a taint is a smaller one than a pod that
requires another kind of machine.
"""

_UNTRIED: Final = frozenset(
    {
        Constraint.POOL_EMPTY,
        Constraint.POOL_STATIC,
        Constraint.POOL_NOT_READY,
        Constraint.POOL_DELETING,
    }
)
"""Constraints of NodePools that were not tried: other constraints may also exclude the pod."""

_RANKS: Final = {constraint: rank for rank, constraint in enumerate(_POOL_FIXES)}


def fixes_for(refusal: Refusal) -> tuple[Fix, ...]:
    """List the changes that would help a refused pod, smallest first; there is always one."""
    if not refusal.pools:
        return (Fix(_POD_FIXES[refusal.reason]),)
    members: dict[tuple[Constraint, str, bool], list[PoolRefusal]] = {}
    for pool in refusal.pools:
        key = (pool.decisive.constraint, pool.decisive.detail, _is_single(pool))
        members.setdefault(key, []).append(pool)
    ranked = sorted(members.items(), key=lambda item: _smallest_first(item[1]))
    return tuple(_fix(same) for _, same in ranked)


def _smallest_first(same: list[PoolRefusal]) -> tuple[bool, int, int, str]:
    lacks = min(len(each.nearest.lacks) if each.nearest else 1 for each in same)
    first = same[0]
    return (not _is_single(first), lacks, _RANKS[first.decisive.constraint], first.decisive.detail)


def _fix(same: list[PoolRefusal]) -> Fix:
    first = same[0]
    pools = tuple(each.pool for each in same)
    named = f"NodePool `{pools[0]}`" if len(pools) == 1 else f"one of {len(pools)} NodePools"
    detail = first.decisive.detail
    form = _POOL_FIXES[first.decisive.constraint]
    if first.decisive.constraint is Constraint.RESOURCE and ", 0 is the most" in detail:
        form = "drop the pod's {topic} request, or give {pools} instance types that leave some"
    text = form.format(
        pools=named, detail=detail or "see the NodePool", topic=_topic(first.decisive)
    )
    return Fix(text, pools, first.decisive.constraint, _is_single(first))


def _topic(decisive: Exclusion) -> str:
    """Return the subject of a constraint: a resource, or the label keys with minValues."""
    if decisive.constraint is not Constraint.MIN_VALUES:
        return decisive.detail.partition(":")[0]
    return " and ".join(each.partition(":")[0] for each in decisive.detail.split(", "))


def _is_single(pool: PoolRefusal) -> bool:
    return pool.is_single and pool.decisive.constraint not in _UNTRIED
