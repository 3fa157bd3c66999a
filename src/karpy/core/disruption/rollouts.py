"""Pods that consolidation should not move: nodes boot for them, or a rollout replaces them."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from karpy.core.lifecycle.conditions import INITIALIZED
from karpy.model.census import uncounted
from karpy.model.nodes import Node
from karpy.model.pods import Pod
from karpy.model.snapshot import Snapshot

BOOTING_TIME: Final = timedelta(minutes=5)
"""Longest time for which consolidation waits until a node is initialized."""
SCALE_OUT_TIME: Final = timedelta(minutes=10)
"""Longest time for which consolidation waits while nodes boot one after the other."""
PAUSE: Final = timedelta(seconds=30)
"""Longest pause within one scale-out; in a longer pause a command can be validated."""
STEP_TIME: Final = timedelta(minutes=10)
"""A rollout without a new pod for this time is stuck: `progressDeadlineSeconds` by default."""
ROLLOUT_TIME: Final = timedelta(hours=1)
"""Longest time for which consolidation waits for a rollout."""
REPLICA_SET: Final = ("apps/v1", "ReplicaSet")
_TEMPLATE_HASH: Final = "pod-template-hash"


class ReplicaSet(NamedTuple):
    """A ReplicaSet of a Deployment."""

    namespace: str
    deployment: str
    digest: str
    """The end of its name: the hash of its pod template."""


# --- scale-out -----------------------------------------------------------------------------------


# Differs: consolidation while nodes for pending pods are being launched: Karpenter moves pods of
# other nodes and moves them again once the new nodes are ready; Karpy waits for the new nodes.
def is_scaling_out(snapshot: Snapshot) -> bool:
    """Say whether nodes are being launched for pending pods, for no longer than SCALE_OUT_TIME."""
    booting = {each.name for each in snapshot.nodes if _is_booting(each, snapshot)}
    if not any(pod.is_expected and pod.node_name in booting for pod in uncounted(snapshot.pods)):
        return False
    return snapshot.now - _began(snapshot) < SCALE_OUT_TIME


def _is_booting(node: Node, snapshot: Snapshot) -> bool:
    claim = node.claim_record
    if claim is None or node.is_deleting or claim.name in snapshot.in_command:
        return False
    is_new = _is_within(claim.meta.created, BOOTING_TIME, snapshot.now)
    return is_new and not claim.conditions.is_true(INITIALIZED)


def _began(snapshot: Snapshot) -> datetime:
    """Return since when nodes have been booting without a `PAUSE` until now."""
    began = snapshot.now
    boots = []
    for node in snapshot.nodes:
        claim = node.claim_record
        if claim is not None and claim.meta.created is not None:
            state = claim.conditions.get(INITIALIZED)
            booted = state.changed if state is not None and state.is_true else snapshot.now
            boots.append((min(booted, claim.meta.created + BOOTING_TIME), claim.meta.created))
    for booted, created in sorted(boots, reverse=True):
        if booted + PAUSE >= began:
            began = min(began, created)
    return began


# --- rollouts of Deployments ---------------------------------------------------------------------


# Differs: consolidation of nodes whose pods a Deployment is about to replace: Karpenter evicts
# these pods, although the rollout deletes them anyway; Karpy waits for the end of the rollout.
def find_rollouts(pods: Iterable[Pod], now: datetime) -> frozenset[ReplicaSet]:
    """Return the ReplicaSets of Deployments that have pods of several, with one created lately."""
    known: dict[tuple[int, str, str], ReplicaSet | None] = {}
    created: dict[tuple[str, str], dict[ReplicaSet, list[datetime]]] = {}
    for pod in pods:
        if not pod.owners or not pod.is_active:
            continue
        key = id(pod.owners), pod.namespace, pod.labels.get(_TEMPLATE_HASH, "")
        if key not in known:
            known[key] = replica_set_of(pod)
        found = known[key]
        if found is not None:
            sets = created.setdefault(found[:2], {})
            sets.setdefault(found, []).append(pod.created)
    return frozenset(found for sets in created.values() if _is_rollout(sets, now) for found in sets)


def replica_set_uid(pod: Pod) -> str:
    """Return the UID of the ReplicaSet that controls a pod; empty if there is none."""
    return next(
        (
            owner.uid
            for owner in pod.owners
            if owner.is_controller and (owner.api_version, owner.kind) == REPLICA_SET
        ),
        "",
    )


def replica_set_of(pod: Pod) -> ReplicaSet | None:
    """Return the ReplicaSet of a Deployment that controls a pod; None if there is none."""
    digest = pod.labels.get(_TEMPLATE_HASH, "")
    for owner in pod.owners:
        is_set = owner.is_controller and (owner.api_version, owner.kind) == REPLICA_SET
        if is_set and digest and owner.name.endswith(f"-{digest}"):
            return ReplicaSet(pod.namespace, owner.name.removesuffix(f"-{digest}"), digest)
    return None


def _is_rollout(sets: Mapping[ReplicaSet, list[datetime]], now: datetime) -> bool:
    if len(sets) == 1:
        return False
    began = max(min(created) for created in sets.values())
    latest = max(max(created) for created in sets.values())
    return _is_within(began, ROLLOUT_TIME, now) and _is_within(latest, STEP_TIME, now)


def _is_within(since: datetime | None, span: timedelta, now: datetime) -> bool:
    return since is not None and now - since < span
