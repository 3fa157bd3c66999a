"""Metrics of scheduling: refused pods by reason, pending pods by zone, waiting times of pods."""

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import chain
from typing import Final, TypeAlias

from msgspec import Struct

from karpy.core.lifecycle.changes import Count
from karpy.core.scheduling.relaxation import Ladder, NodeRules
from karpy.core.scheduling.templates import PoolDomains
from karpy.core.scheduling.volumes import VolumeFacts, volume_facts
from karpy.model.constraints import (
    AffinityTerm,
    LabelSelector,
    SpreadConstraint,
    resolve_label_keys,
)
from karpy.model.labels import ZONE
from karpy.model.pods import Pod
from karpy.model.requirements import Requirement
from karpy.model.settings import PreferencePolicy
from karpy.model.snapshot import Snapshot
from karpy.model.times import write_moment
from karpy.model.verdicts import Reason, Verdict

CONTROLLER: Final = "provisioner"
REFUSED: Final = "karpy_refused_pods"
ZONE_COUNT: Final = "scheduler_pending_pods_by_effective_zone_count"
QUEUE_DEPTH: Final = "scheduler_queue_depth"
UNFINISHED: Final = "scheduler_unfinished_work_seconds"
_NOT_CONSIDERED: Final = frozenset(
    {Reason.NOT_YET_UNSCHEDULABLE, Reason.PREEMPTING, Reason.ON_ITS_WAY, Reason.PLACE_TAKEN}
)
"""Reasons of pods that kube-scheduler has yet to try or to bind."""
_PUT_OFF: Final = frozenset(
    {
        Reason.WAITS_FOR_RESERVATION,
        Reason.UNDECIDED,
        Reason.TOO_COMPLEX,
        Reason.DECISION_FAILED,
    }
)
NO_DECISION: Final = _NOT_CONSIDERED | _PUT_OFF - {Reason.WAITS_FOR_RESERVATION}
_WITHOUT_PLACE: Final = frozenset(
    {Reason.DEVICE_CLAIMS, Reason.NO_POOL, Reason.NO_HOST, Reason.MIN_VALUES_TRUNCATED}
)
_IGNORED: Final = frozenset(Reason) - _NOT_CONSIDERED - _WITHOUT_PLACE - _PUT_OFF
_WAITING: Final = frozenset({"", "Pending"})
FLEXIBLE: Final = "flexible"
NOWHERE: Final = "none"

_Zones: TypeAlias = frozenset[str]
_Tally: TypeAlias = Mapping[str, int]

PENDING: Final = "Pending"


def verdict_counts(snapshot: Snapshot, verdict: Verdict) -> tuple[Count, ...]:
    """
    Return the gauges of the last decision about pending pods.

    Series of zones and decisions that are not among them no longer exist.
    """
    refused = Counter[Reason]()
    for each in verdict.refusals:
        refused[each.reason] += len(each.pods)
    by = {"controller": CONTROLLER}
    return (
        Count(
            "scheduler_unschedulable_pods_count",
            by,
            float(sum(refused[each] for each in _WITHOUT_PLACE)),
        ),
        Count("scheduler_ignored_pods_count", {}, float(sum(refused[each] for each in _IGNORED))),
        Count(QUEUE_DEPTH, decision_labels(snapshot), float(refused[Reason.UNDECIDED])),
        *(Count(REFUSED, {"reason": reason.name}, float(refused[reason])) for reason in Reason),
        *(
            Count(ZONE_COUNT, {**by, "zone": zone}, float(count))
            for zone, count in sorted(_pods_by_zone(snapshot, verdict).items())
        ),
    )


def decision_labels(snapshot: Snapshot) -> dict[str, str]:
    """Return the labels that identify one decision about pending pods."""
    return {"controller": CONTROLLER, "scheduling_id": write_moment(snapshot.now)}


def _pods_by_zone(snapshot: Snapshot, verdict: Verdict) -> Counter[str]:
    ignored = {key for each in verdict.refusals if each.reason in _IGNORED for key in each.pods}
    zones = Zones(snapshot)
    return Counter(
        zones.of(pod)
        for pod in snapshot.pods
        if pod.is_provisionable and pod.phase in _WAITING and pod.key not in ignored
    )


class Zones:
    """Finds the zone that each pod of a snapshot is confined to, once per set of equal pods."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._respects = snapshot.settings.preference_policy is PreferencePolicy.RESPECT
        self._answers: dict[tuple[int, int, str], str] = {}
        self._bound_pods: dict[tuple[str, int], tuple[Mapping[str, str], dict[str, int]]] | None = (
            None
        )
        self._all: _Zones | None = None

    def of(self, pod: Pod) -> str:
        """Return the only zone that a pod can be in; else `flexible` or `none`."""
        if pod.rules.volumes:
            return self._find(pod)
        alike = (id(pod.rules), id(pod.labels), pod.namespace)
        answer = self._answers.get(alike)
        if answer is None:
            answer = self._answers[alike] = self._find(pod)
        return answer

    def _find(self, pod: Pod) -> str:
        ladder = Ladder(pod.rules, respects_preferences=self._respects, can_tolerate=False)
        node_rules = ladder[0].node_rules
        by_pods = self._by_pod_constraints(pod, ladder, node_rules)
        if by_pods is not None and not by_pods:
            return NOWHERE
        required = node_rules.strict.get(ZONE)
        by_volumes = self._by_volumes(pod)
        listed = None if required is None or required.complement else required.values
        candidates = next(
            (each for each in (listed, by_volumes, by_pods) if each is not None), None
        )
        if candidates is None:
            return FLEXIBLE
        left = [
            zone
            for zone in candidates
            if (required is None or zone in required)
            and (by_volumes is None or zone in by_volumes)
            and (by_pods is None or zone in by_pods)
        ]
        return NOWHERE if not left else left[0] if len(left) == 1 else FLEXIBLE

    def _by_volumes(self, pod: Pod) -> _Zones | None:
        """Return the zones from which a pod can use its volumes; None if that is any zone."""
        facts = volume_facts(pod, self._snapshot.storage)
        if not isinstance(facts, VolumeFacts):
            return None
        zones: set[str] = set()
        for alternative in facts.alternatives:
            required = [each for each in alternative if each.key == ZONE and not each.complement]
            if not required:
                return None
            zones.update(required[0].values)
        return frozenset(zones)

    def _by_pod_constraints(self, pod: Pod, ladder: Ladder, node_rules: NodeRules) -> _Zones | None:
        """Return the zones allowed by spread and pod affinity; None without such constraints."""
        allowed: _Zones | None = None
        for each in self._each_allowed(pod, ladder, node_rules):
            allowed = each if allowed is None else allowed & each
            if not each:
                break
        return allowed

    def _each_allowed(self, pod: Pod, ladder: Ladder, node_rules: NodeRules) -> Iterator[_Zones]:
        required = node_rules.full.get(ZONE)
        for spread in ladder.spreads:
            if spread.topology_key == ZONE:
                yield self._by_spread(pod, spread, required)
        for term in ladder.affinity:
            if term.topology_key == ZONE:
                yield self._by_affinity(pod, term, required)
        for term in ladder.anti_affinity:
            if term.topology_key == ZONE:
                counts = self._tally_of_term(pod, term)
                yield frozenset(zone for zone in self._zones() if not counts.get(zone))

    def _by_spread(
        self, pod: Pod, spread: SpreadConstraint, required: Requirement | None
    ) -> _Zones:
        selector = resolve_label_keys(spread.selector, pod.labels, spread.match_label_keys)
        counts = self._tally(frozenset({pod.namespace}), selector)
        reachable = [zone for zone in self._zones() if required is None or zone in required]
        least = min((counts.get(zone, 0) for zone in reachable), default=0)
        if len(reachable) < (spread.min_domains or 0):
            least = 0
        more = int(selector is not None and selector.selects(pod.labels))
        most = spread.max_skew + least - more
        return frozenset(zone for zone in self._zones() if counts.get(zone, 0) <= most)

    def _by_affinity(self, pod: Pod, term: AffinityTerm, required: Requirement | None) -> _Zones:
        counts = self._tally_of_term(pod, term)
        reachable = [zone for zone in self._zones() if required is None or zone in required]
        if counts:
            return frozenset(zone for zone in reachable if counts.get(zone))
        selector = _resolved(term, pod)
        is_first = selector is not None and selector.selects(pod.labels)
        return frozenset(reachable) if is_first else frozenset()

    def _tally_of_term(self, pod: Pod, term: AffinityTerm) -> _Tally:
        return self._tally(self._namespaces(term, pod.namespace), _resolved(term, pod))

    def _namespaces(self, term: AffinityTerm, own: str) -> frozenset[str]:
        selector = term.namespace_selector
        if selector is None:
            return frozenset(term.namespaces or (own,))
        spaces = self._snapshot.namespaces.items()
        chosen = (name for name, labels in spaces if selector.selects(labels))
        return frozenset(chain(chosen, term.namespaces))

    def _tally(self, spaces: frozenset[str], selector: LabelSelector | None) -> _Tally:
        """Count the pods that a selector selects, by zone."""
        totals: dict[str, int] = {}
        if selector is None:
            return totals
        if self._bound_pods is None:
            self._bound_pods = self._count_bound_pods()
        for (namespace, _), (labels, zones) in self._bound_pods.items():
            if namespace in spaces and selector.selects(labels):
                for zone, count in zones.items():
                    totals[zone] = totals.get(zone, 0) + count
        return totals

    def _count_bound_pods(self) -> dict[tuple[str, int], tuple[Mapping[str, str], dict[str, int]]]:
        """Count bound pods by zone, for each namespace and set of labels."""
        zone_of = {node.name: node.labels.get(ZONE, "") for node in self._snapshot.nodes}
        counted: dict[tuple[str, int], tuple[Mapping[str, str], dict[str, int]]] = {}
        for pod in self._snapshot.pods:
            zone = zone_of.get(pod.node_name) if pod.node_name else None
            if zone and pod.is_active:
                alike = (pod.namespace, id(pod.labels))
                _, zones = counted.setdefault(alike, (pod.labels, {}))
                zones[zone] = zones.get(zone, 0) + 1
        return counted

    def _zones(self) -> _Zones:
        """Return all zones that NodePools offer or nodes are in."""
        if self._all is None:
            snapshot = self._snapshot
            types_of = {pool.name: snapshot.catalog.types_for(pool.name) for pool in snapshot.pools}
            offered = PoolDomains(snapshot.pools, types_of).of(ZONE)
            existing = (node.labels[ZONE] for node in snapshot.nodes if ZONE in node.labels)
            self._all = frozenset(chain(offered, existing))
        return self._all


def _resolved(term: AffinityTerm, pod: Pod) -> LabelSelector | None:
    return resolve_label_keys(
        term.selector, pod.labels, term.match_label_keys, term.mismatch_label_keys
    )


class PodTiming(Struct, frozen=True, gc=False):
    """When Karpy saw a pod, decided about it, and found a node for it."""

    acked: datetime | None = None
    """When Karpy first saw the pod as unschedulable."""
    decided: datetime | None = None
    """When the first decision about the pod was made, a refusal included."""
    schedulable: datetime | None = None
    """Since when a node is planned for the pod; None if the last decision refused it."""


UNKNOWN: Final = PodTiming()


class Waits(Struct, frozen=True, gc=False):
    """Since when a pod has been waiting for each step; None is a step that is done."""

    unstarted: datetime | None = None
    unbound: datetime | None = None
    provisioning_unstarted: datetime | None = None
    provisioning_unbound: datetime | None = None
    undecided: datetime | None = None


NO_WAITS: Final = Waits()


def find_waits(pod: Pod, timing: PodTiming, *, is_starting: bool) -> Waits:
    """Return what a pod waits for; `is_starting`: it was seen pending and is not ready yet."""
    # Differs: the metric of the time a pod is unbound: Karpenter counts a pod until it runs; Karpy
    # counts it until it is bound, as the name of the metric says.
    is_unbound = is_starting and not pod.node_name and pod.phase == PENDING
    is_undecided = timing.decided is None and not pod.node_name and not pod.is_terminal
    if not (is_starting or (is_undecided and timing.acked)):
        return NO_WAITS
    return Waits(
        unstarted=pod.created if is_starting else None,
        unbound=pod.created if is_unbound else None,
        provisioning_unstarted=timing.schedulable if is_starting else None,
        provisioning_unbound=timing.schedulable if is_unbound else None,
        undecided=timing.acked if is_undecided else None,
    )


def bound_counts(pod: Pod, timing: PodTiming) -> tuple[Count, ...]:
    """Measure how long a pod waited until it was bound."""
    if pod.bound is None:
        return ()
    labels = {"dynamic_resources": has_dynamic_resources(pod)}
    counts = [Count("pods_bound_duration_seconds", labels, _seconds(pod.created, pod.bound))]
    if timing.schedulable is not None:
        waited = _seconds(timing.schedulable, pod.bound)
        counts.append(Count("pods_provisioning_bound_duration_seconds", labels, waited))
    return tuple(counts)


def startup_counts(pod: Pod, timing: PodTiming) -> tuple[Count, ...]:
    """Measure how long a pod waited until it was ready."""
    if pod.ready is None:
        return ()
    counts = [Count("pods_startup_duration_seconds", {}, _seconds(pod.created, pod.ready))]
    if timing.schedulable is not None:
        waited = _seconds(timing.schedulable, pod.ready)
        counts.append(Count("pods_provisioning_startup_duration_seconds", {}, waited))
    return tuple(counts)


def decision_counts(timing: PodTiming) -> tuple[Count, ...]:
    """Measure how long a pod waited for its first decision."""
    if timing.acked is None or timing.decided is None:
        return ()
    waited = _seconds(timing.acked, timing.decided)
    return (Count("pods_scheduling_decision_duration_seconds", {}, waited),)


def has_dynamic_resources(pod: Pod) -> str:
    """Return `true` or `false` for a metric label: whether a pod has ResourceClaims."""
    return "true" if pod.rules.claims_devices else "false"


def owner_link(pod: Pod) -> str:
    """Return the first owner of a pod as a path in the form of a selfLink."""
    if not pod.owners:
        return ""
    owner = pod.owners[0]
    kind = owner.kind.lower()
    return f"/apis/{owner.api_version}/namespaces/{pod.namespace}/{kind}s/{owner.name}"


def _seconds(since: datetime, until: datetime) -> float:
    # Kubernetes timestamps have whole seconds, so that a short span may come out negative.
    return max(0.0, (until - since).total_seconds())
