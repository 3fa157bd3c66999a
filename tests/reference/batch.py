"""Which pods are placed, in which order, and why other pods are not (section 1)."""

from collections.abc import Callable, Collection, Iterator
from datetime import datetime, timedelta
from fractions import Fraction

from msgspec.structs import replace

from karpy.model.constraints import LabelSelector
from karpy.model.labels import (
    CAPACITY_TYPE,
    CAPACITY_TYPES,
    HOSTNAME,
    NODE_POOL,
    is_restricted,
)
from karpy.model.pods import DAEMON_SET, NODE, STATEFUL_SET, Pod, PodController, PodRules
from karpy.model.requirements import Operator, Requirement, one_of
from karpy.model.resources import CPU, MEMORY
from karpy.model.settings import PreferencePolicy
from karpy.model.snapshot import Snapshot
from karpy.model.times import parse_duration
from karpy.model.verdicts import Reason
from tests.reference.ladder import full
from tests.reference.volumes import why_unusable

REPLICATION_CONTROLLER = ("v1", "ReplicationController")
REPLICA_SET = ("apps/v1", "ReplicaSet")
CONSTRAINTS_MAX = 500
"""A pod with more constraints is placed after all others."""


def select(snapshot: Snapshot) -> tuple[list[Pod], dict[str, Reason]]:
    """Return the pods to place, in order, and the reasons of pods that are refused."""
    deleting = {node.name for node in snapshot.nodes if node.is_deleting}
    batch: list[Pod] = []
    refused: dict[str, Reason] = {}
    for pod in snapshot.pods:
        if pod.is_expected and pod.node_name:
            refused[pod.key] = Reason.ON_ITS_WAY
            continue
        if pod.is_owned_by(DAEMON_SET) or pod.is_owned_by(NODE):
            continue
        if not (_is_unbound(pod) or _is_displaced(pod, deleting, snapshot)):
            continue
        prepared = with_wishes(pod, snapshot)
        why = _why_waiting(pod) or _why_withheld(pod, snapshot) or why_refused(pod, snapshot)
        if why is None:
            batch.append(prepared)
        else:
            refused[pod.key] = why
    batch.sort(key=_largest_first)
    return sorted(batch, key=lambda pod: _count_constraints(pod.rules) > CONSTRAINTS_MAX), refused


def _count_constraints(rules: PodRules) -> int:
    """Count selectors, terms with their expressions, tolerations, spreads, ports and volumes."""
    terms = [*rules.required_node_terms, *(each.term for each in rules.preferred_node_terms)]
    asked_of_nodes = [*rules.node_selector, *terms, *rules.tolerations]
    asked_of_nodes += [expression for term in terms for expression in term.expressions]
    near = [*rules.affinity, *rules.preferred_affinity]
    apart = [*rules.anti_affinity, *rules.preferred_anti_affinity, *rules.spreads]
    return len([*asked_of_nodes, *near, *apart, *rules.ports, *rules.volumes])


def _is_unbound(pod: Pod) -> bool:
    return not pod.node_name and pod.is_active


def _is_displaced(pod: Pod, deleting: set[str], snapshot: Snapshot) -> bool:
    if pod.node_name not in deleting:
        return False
    if not pod.is_active:
        return pod.is_deleting and pod.is_owned_by(STATEFUL_SET)
    if is_protected(pod, snapshot.now):
        return False
    forbidding = [each for each in snapshot.budgets if each.forbids_all and each.covers(pod)]
    return all(each.allows_unready and pod.is_unready for each in forbidding)


def is_protected(pod: Pod, now: datetime) -> bool:
    """Say whether `karpenter.sh/do-not-disrupt` holds: `true`, or a time that begins with it."""
    written = pod.disruption.do_not_disrupt
    if written is None or written == "true":
        return written is not None
    duration = parse_duration(written)
    if duration is None or duration <= timedelta():
        return False
    return pod.started is None or now - pod.started < duration


def _why_waiting(pod: Pod) -> Reason | None:
    if pod.node_name:
        return None
    if pod.is_expected:
        return Reason.PLACE_TAKEN
    if not pod.is_unschedulable:
        return Reason.NOT_YET_UNSCHEDULABLE
    return Reason.PREEMPTING if pod.nominated_node else None


def _why_withheld(pod: Pod, snapshot: Snapshot) -> Reason | None:
    vain = [each for each in snapshot.vain_launches if each.group == pod.group]
    is_withheld = not pod.node_name and any(snapshot.now < each.retry_at for each in vain)
    return Reason.LAUNCHED_IN_VAIN if is_withheld else None


def moved_later(batch: list[Pod], moved: Collection[str]) -> list[Pod]:
    """Sort pods that move voluntarily, given by their keys, after pending pods."""

    def turn(pod: Pod) -> tuple[bool, bool, bool]:
        is_costly = _count_constraints(pod.rules) > CONSTRAINTS_MAX
        return is_costly, pod.is_virtual, pod.key in moved

    return sorted(batch, key=turn) if moved else batch


def _largest_first(pod: Pod) -> tuple[bool, int, int, object, str]:
    cpu, memory = pod.requests.get(CPU, 0), pod.requests.get(MEMORY, 0)
    return pod.is_virtual, -cpu, -memory, pod.created, pod.uid


def other_orders(batch: list[Pod], well_known: frozenset[str]) -> Iterator[list[Pod]]:
    """Yield the orders of section 11: by two shares of size, pods with anti-affinity first."""
    near_or_away = [term for pod in batch for term in pod.rules.affinity + pod.rules.anti_affinity]
    if {term.topology_key for term in near_or_away} - well_known - {HOSTNAME}:
        return
    cpu = sum(pod.requests.get(CPU, 0) for pod in batch)
    memory = sum(pod.requests.get(MEMORY, 0) for pod in batch)

    def shares(pod: Pod) -> tuple[Fraction, Fraction]:
        return (
            Fraction(pod.requests.get(CPU, 0), cpu or 1),
            Fraction(pod.requests.get(MEMORY, 0), memory or 1),
        )

    def together(pod: Pod) -> Fraction:
        return sum(shares(pod), Fraction())

    def apart(pod: Pod) -> Fraction:
        one, other = shares(pod)
        return abs(one - other)

    def loners_first(pod: Pod) -> Fraction:
        # Each share is at most 1, so that 3 exceeds any sum of two shares.
        return together(pod) + (3 if _keeps_away(pod) else 0)

    yield _in_order(batch, loners_first)
    yield _in_order(batch, together)
    yield _in_order(batch, apart)


def _keeps_away(pod: Pod) -> bool:
    hard = [each.topology_key for each in pod.rules.spreads if not each.is_soft]
    hard += [each.topology_key for each in pod.rules.anti_affinity]
    return HOSTNAME in hard


def _in_order(batch: list[Pod], size: Callable[[Pod], Fraction]) -> list[Pod]:
    """Sort pods by size; pods with required affinity keep their positions."""
    free = [pod for pod in batch if not pod.rules.affinity]
    free.sort(key=lambda pod: (pod.is_virtual, -size(pod), _largest_first(pod)))
    turns = [turn for turn, pod in enumerate(batch) if not pod.rules.affinity]
    order = dict(enumerate(batch)) | dict(zip(turns, free, strict=True))
    return [order[turn] for turn in range(len(batch))]


def why_refused(pod: Pod, snapshot: Snapshot) -> Reason | None:
    """
    Return why a pod can be placed on no node at all; reasons in the order of the page.

    Unsupported preferences count too, even if preferences are ignored.
    """
    rules = pod.rules
    if rules.unreadable:
        return Reason.UNREADABLE
    if rules.claims_devices and snapshot.settings.ignore_device_claims:
        return Reason.DEVICE_CLAIMS
    pools = full(rules).get(NODE_POOL)
    if pools is not None and pools.is_empty:
        return Reason.OPTED_OUT
    well_known = snapshot.catalog.well_known
    if any(is_restricted(each.key, well_known) for each in _required(rules)):
        return Reason.RESTRICTED_LABEL
    if any(term.has_match_fields for term in rules.required_node_terms):
        return Reason.MATCH_FIELDS
    if any(_is_malformed(each) for each in _required(rules)):
        return Reason.BAD_REQUIREMENT
    return why_unusable(pod, snapshot.storage)


def _required(rules: PodRules) -> Iterator[Requirement]:
    yield from rules.node_selector
    for term in rules.required_node_terms:
        yield from term.expressions


def _is_malformed(requirement: Requirement) -> bool:
    if requirement.key == CAPACITY_TYPE and requirement.operator is Operator.IN:
        return requirement.values.isdisjoint(CAPACITY_TYPES)
    # `Lt 0` is valid and means "at most -1"; a lower bound is only possible from a negative value.
    below = requirement.lte is not None and requirement.lte < -1
    return below or (requirement.gte is not None and requirement.gte < 0)


# --- preferences and default spreads ---------------------------------------------------------


def with_wishes(pod: Pod, snapshot: Snapshot) -> Pod:
    """Return a pod with default spreads, and without preferences if they are ignored."""
    rules = pod.rules
    if not rules.spreads and (selector := deduced_selector(pod, snapshot)):
        defaults = snapshot.settings.default_spreads
        rules = replace(rules, spreads=tuple(replace(each, selector=selector) for each in defaults))
    if snapshot.settings.preference_policy is PreferencePolicy.IGNORE:
        rules = replace(
            rules,
            preferred_node_terms=(),
            preferred_affinity=(),
            preferred_anti_affinity=(),
            spreads=tuple(each for each in rules.spreads if not each.is_soft),
        )
    return replace(pod, rules=rules)


def deduced_selector(pod: Pod, snapshot: Snapshot) -> LabelSelector | None:
    """Return the selector of default spreads: from the Services and the controller of a pod."""
    labels: dict[str, str] = {}
    for service in snapshot.services:
        if service.namespace == pod.namespace and service.selector is not None:
            wanted = service.selector.items()
            labels |= dict(wanted) if wanted <= pod.labels.items() else {}
    more: tuple[Requirement, ...] = ()
    controller = _controller(pod, snapshot)
    if controller is not None:
        kind = (controller.api_version, controller.kind)
        if kind == REPLICATION_CONTROLLER:
            labels.update({each.key: min(each.values) for each in controller.selector})
        elif kind in {REPLICA_SET, STATEFUL_SET}:
            more = controller.selector
    expressions = tuple(one_of(key, value) for key, value in labels.items()) + more
    return LabelSelector(expressions) if expressions else None


def _controller(pod: Pod, snapshot: Snapshot) -> PodController | None:
    for owner in pod.owners:
        if not owner.is_controller:
            continue
        for each in snapshot.controllers:
            mine = (owner.api_version, owner.kind, owner.name, pod.namespace)
            if (each.api_version, each.kind, each.name, each.namespace) == mine:
                return each
    return None
