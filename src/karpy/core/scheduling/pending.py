"""Chooses the pods to place, and their order; gives a reason for each pod left out."""

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from operator import attrgetter

from msgspec import Struct

from karpy.core.lifecycle.eviction import is_held
from karpy.core.scheduling.breaker import explain_pause, withheld
from karpy.core.scheduling.volumes import VolumeFacts, VolumeRefusal, volume_facts
from karpy.model.census import uncounted
from karpy.model.labels import CAPACITY_TYPE, CAPACITY_TYPES, NODE_POOL, is_restricted
from karpy.model.pods import DAEMON_SET, NODE, Pod, PodRules
from karpy.model.requirements import Operator, Requirement, collect
from karpy.model.resources import CPU, MEMORY, Resources
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Reason, Refusal

_OVER = frozenset({"Failed", "Succeeded"})
_MEMORY_BITS = 128
_VIRTUAL = 1 << 2 * _MEMORY_BITS
_created = attrgetter("created")
_uid = attrgetter("uid")


class Batch(Struct, frozen=True):
    """The pods to place, in order, with their volumes; and refusals of the pods left out."""

    pods: tuple[Pod, ...]
    volumes: dict[str, VolumeFacts]
    """By pod UID; pods without volumes are absent."""
    refusals: tuple[Refusal, ...]


def collect_batch(snapshot: Snapshot, moved: Collection[str] = ()) -> Batch:
    """
    Return the pods that a decision places: pending pods, and those of deleting nodes.

    `moved` are UIDs of pods on deleting nodes that are placed even if no drain may evict them.
    """
    collector = _Collector(snapshot)
    admitted_rules, by_requests = collector.admitted_rules, collector.by_requests
    deleting = {node.name for node in snapshot.nodes if node.is_deleting}
    pods = uncounted(snapshot.pods)
    if deleting and pods is not snapshot.pods:
        pods = [
            pod
            for pod in snapshot.pods
            if not pod.node_name or pod.is_expected or pod.node_name in deleting
        ]
    for pod in collector.not_withheld(pods) if snapshot.vain_launches else pods:
        if pod.node_name:
            if pod.is_expected:
                collector.leave_out(pod, Reason.ON_ITS_WAY, pod.node_name)
            elif pod.node_name in deleting and (
                _is_displaced(pod, snapshot) or (pod.uid in moved and pod.is_reschedulable)
            ):
                collector.admit(pod)
        elif pod.is_unschedulable and not (
            pod.owners
            or pod.is_deleting
            or pod.nominated_node
            or pod.is_virtual
            or pod.phase in _OVER
        ):
            if id(pod.rules) in admitted_rules:
                alike = by_requests.get(id(pod.requests))
                if alike is None:
                    alike = collector.list_for(pod.requests)
                alike.append(pod)
            else:
                collector.admit(pod)
        else:
            collector.consider(pod)
    return collector.batch()


class Eligibility:
    """Checks whether any node at all may take a pod, and resolves the volumes of pods that pass."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._storage = snapshot.storage
        self._well_known = snapshot.catalog.well_known
        self._ignores_devices = snapshot.settings.ignore_device_claims
        self._judged: dict[int, tuple[Reason, str] | None] = {}
        self.volumes: dict[str, VolumeFacts] = {}
        """By UID of each pod that passed and has volumes, where these allow it to run."""

    def why_not(self, pod: Pod) -> tuple[Reason, str] | None:
        """Return why no node may take a pod; None if some may."""
        rules = pod.rules
        if id(rules) not in self._judged:
            self._judged[id(rules)] = _why_not(
                rules, self._well_known, ignores_devices=self._ignores_devices
            )
        why = self._judged[id(rules)]
        if why is None and rules.volumes:
            facts = volume_facts(pod, self._storage)
            if isinstance(facts, VolumeRefusal):
                return facts.reason, facts.detail
            self.volumes[pod.uid] = facts
        return why


class _Collector:
    """Collects the pods to place by size, and the pods left out by reason."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._eligibility = Eligibility(snapshot)
        self._withheld = withheld(snapshot)
        self._left_out: dict[tuple[Reason, str], list[str]] = {}
        self._by_size: dict[int, list[Pod]] = {}
        self.admitted_rules: set[int] = set()
        """Identities of pod rules that were admitted and have no volumes: other pods pass, too."""
        self.by_requests: dict[int, list[Pod]] = {}
        """By the identity of the requests of an admitted pod, the list of the pods of its size."""

    def not_withheld(self, pods: Iterable[Pod]) -> Iterator[Pod]:
        """Leave out pods of groups that wait after a launch in vain; yield the others."""
        for pod in pods:
            vain = self._withheld.get(pod.group) if pod.is_provisionable else None
            if vain is None:
                yield pod
            else:
                self.leave_out(pod, Reason.LAUNCHED_IN_VAIN, explain_pause(vain))

    def consider(self, pod: Pod) -> None:
        """Admit a pod without a node, leave it out with a reason, or ignore it."""
        if _is_considered(pod):
            waits = _why_waiting(pod)
            if waits is None:
                self.admit(pod)
            else:
                self.leave_out(pod, waits)

    def leave_out(self, pod: Pod, reason: Reason, detail: str = "") -> None:
        """Note the reason why a pod is not placed."""
        self._left_out.setdefault((reason, detail), []).append(pod.key)

    def admit(self, pod: Pod) -> None:
        """Add a pod to the pods to place, or leave it out with a reason."""
        why = self._eligibility.why_not(pod)
        if why is not None:
            self.leave_out(pod, *why)
            return
        if not pod.rules.volumes:
            self.admitted_rules.add(id(pod.rules))
        if pod.is_virtual:
            # Differs: virtual pods of CapacityBuffers: Karpenter places large ones before smaller
            # pods that exist, so that a limit may be used up by empty room; Karpy places pods that
            # exist first.
            self._by_size.setdefault(_size(pod.requests) - _VIRTUAL, []).append(pod)
        else:
            self.list_for(pod.requests).append(pod)

    def list_for(self, requests: Resources) -> list[Pod]:
        """Return the list of all admitted pods with the size of some requests."""
        size = _size(requests)
        pods = self._by_size.get(size)
        if pods is None:
            pods = self._by_size[size] = []
        self.by_requests[id(requests)] = pods
        return pods

    def batch(self) -> Batch:
        chosen: list[Pod] = []
        for size in sorted(self._by_size, reverse=True):
            pods = self._by_size[size]
            if len(pods) > 1:
                # Two sorts by one field each are faster than one by two.
                pods.sort(key=_uid)
                pods.sort(key=_created)
            chosen += pods
        refusals = tuple(
            Refusal(reason, tuple(keys), detail)
            for (reason, detail), keys in self._left_out.items()
        )
        return Batch(tuple(chosen), self._eligibility.volumes, refusals)


def placing_order(pod: Pod) -> tuple[int, datetime, str]:
    """Return the sort key that puts pods in the order in which they are placed."""
    size = _size(pod.requests)
    return (_VIRTUAL - size if pod.is_virtual else -size, pod.created, pod.uid)


def _size(requests: Resources) -> int:
    """Return CPU and memory as one number, which is compared faster than two."""
    return requests.get(CPU, 0) << _MEMORY_BITS | requests.get(MEMORY, 0)


def _is_considered(pod: Pod) -> bool:
    if pod.phase and pod.is_terminal:
        return False
    if pod.is_deleting:
        return False
    return not pod.owners or not (pod.is_owned_by(DAEMON_SET) or pod.is_owned_by(NODE))


def _is_displaced(pod: Pod, snapshot: Snapshot) -> bool:
    return pod.is_reschedulable and not is_held(pod, snapshot.budgets, snapshot.now)


def _why_waiting(pod: Pod) -> Reason | None:
    if pod.is_expected:
        return Reason.PLACE_TAKEN
    if not pod.is_unschedulable:
        return Reason.NOT_YET_UNSCHEDULABLE
    if pod.nominated_node:
        return Reason.PREEMPTING
    return None


def _why_not(
    rules: PodRules, well_known: frozenset[str], *, ignores_devices: bool
) -> tuple[Reason, str] | None:
    if rules.unreadable:
        return Reason.UNREADABLE, rules.unreadable
    if rules.claims_devices and ignores_devices:
        return Reason.DEVICE_CLAIMS, ""
    if not (rules.node_selector or rules.required_node_terms or rules.preferred_node_terms):
        return None
    first = rules.required_node_terms[:1]
    heaviest = sorted(rules.preferred_node_terms, key=lambda each: -each.weight)[:1]
    asked = collect(
        (
            *rules.node_selector,
            *(each for term in first for each in term.expressions),
            *(each for weighted in heaviest for each in weighted.term.expressions),
        )
    )
    pool = asked.get(NODE_POOL)
    if pool is not None and pool.operator is Operator.DOES_NOT_EXIST:
        return Reason.OPTED_OUT, ""
    required = (
        *rules.node_selector,
        *(each for term in rules.required_node_terms for each in term.expressions),
    )
    for requirement in required:
        if is_restricted(requirement.key, well_known):
            return Reason.RESTRICTED_LABEL, requirement.key
    if any(term.has_match_fields for term in rules.required_node_terms):
        return Reason.MATCH_FIELDS, ""
    bad = next((each for each in required if _is_malformed(each)), None)
    return None if bad is None else (Reason.BAD_REQUIREMENT, str(bad))


def _is_malformed(requirement: Requirement) -> bool:
    """Say whether Karpenter would reject a requirement: unknown capacity types, negative bounds."""
    if requirement.key == CAPACITY_TYPE and requirement.operator is Operator.IN:
        return not requirement.values & CAPACITY_TYPES
    # `Lt 0` is well formed and leaves -1 as the largest value.
    is_below = requirement.lte is not None and requirement.lte < -1
    return is_below or (requirement.gte is not None and requirement.gte < 0)
