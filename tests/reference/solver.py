"""The solver: the order of pods and of attempts (sections 3 and 11)."""

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction

from karpy.model.constraints import PREFER_NO_SCHEDULE
from karpy.model.instances import InstanceType
from karpy.model.pods import Pod
from karpy.model.resources import NODES, add, largest
from karpy.model.settings import Packing
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Reason
from tests.reference.attempt import Attempt, make_attempt
from tests.reference.batch import moved_later, other_orders, select
from tests.reference.claims import Claims, Fit, No, new_claim
from tests.reference.existing import existing_nodes
from tests.reference.ladder import alternatives, steps
from tests.reference.launches import PlannedLaunch, plan_launch
from tests.reference.overlays import types_by_pool
from tests.reference.templates import Template, make_templates, pools_in_use
from tests.reference.topology import Topology


@dataclass(frozen=True)
class Shut:
    """Pods that move voluntarily, and nodes that take none of these pods."""

    moved: frozenset[str] = frozenset()
    closed: frozenset[str] = frozenset()

    def holds(self, pod: str, node: str) -> bool:
        return pod in self.moved and node in self.closed


@dataclass(frozen=True)
class Placements:
    """The places of the pods of a batch, and the reasons of unplaced pods."""

    launches: tuple[PlannedLaunch, ...]
    """Launches in the order in which their claims were created."""
    nominations: dict[str, tuple[str, ...]]
    refused: dict[str, Reason]
    steps_down: int = 0
    """How many steps of their ladders the placed pods went down."""

    @property
    def price(self) -> int:
        return sum(launch.options[0].price for launch in self.launches)

    @property
    def relaxed(self) -> int:
        return len([launch for launch in self.launches if launch.is_min_values_relaxed])


def solve(
    snapshot: Snapshot, moved: Collection[str] = (), closed: Collection[str] = ()
) -> Placements:
    """
    Place the pods of a snapshot by the rules of docs/concepts/provisioning.md.

    Nodes that are `closed` take no pod that is `moved`; pending pods are placed before moved ones.
    """
    batch, refused = select(snapshot)
    batch = moved_later(batch, moved)
    shut = Shut(frozenset(moved), frozenset(closed))
    best = _place_in_order(snapshot, batch, refused, shut)
    if snapshot.settings.packing is Packing.CHEAPEST and len(best.launches) > 1:
        virtual = {pod.key for pod in batch if pod.is_virtual}
        for order in other_orders(batch, snapshot.catalog.well_known):
            other = _place_in_order(snapshot, order, refused, shut)
            best = other if _is_better(other, best, virtual) else best
    return best


def _is_better(one: Placements, other: Placements, virtual: set[str]) -> bool:
    ours, theirs = one.refused.keys(), other.refused.keys()
    if len(ours - virtual) != len(theirs - virtual):
        return len(ours - virtual) < len(theirs - virtual)
    if len(ours) != len(theirs):
        return len(ours) < len(theirs)
    is_as_good = one.steps_down <= other.steps_down and one.relaxed <= other.relaxed
    is_cheaper = one.price < other.price and one.price <= other.price * Fraction(99, 100)
    return ours == theirs and is_as_good and is_cheaper


def _place_in_order(
    snapshot: Snapshot, batch: list[Pod], left_alone: dict[str, Reason], shut: Shut
) -> Placements:
    solver = _Solver(snapshot, batch, shut)
    refused = left_alone | solver.place_all(batch)
    launches = []
    for claim in solver.claims.made:
        launch = plan_launch(claim, snapshot)
        if launch is None:
            refused |= {pod.key: Reason.MIN_VALUES_TRUNCATED for pod in claim.pods}
        else:
            launches.append(launch)
    nominations = {
        each.node.name: tuple(pod.key for pod in each.placed)
        for each in solver.nodes
        if each.placed
    }
    return Placements(tuple(launches), nominations, refused, solver.steps_down)


class _Solver:
    def __init__(self, snapshot: Snapshot, batch: list[Pod], shut: Shut) -> None:
        types = types_by_pool(snapshot)
        pools = pools_in_use(snapshot)
        self.snapshot = snapshot
        self.shut = shut
        self.steps_down = 0
        self.has_pools = bool(pools)
        self.has_soft_taints = any(
            taint.effect == PREFER_NO_SCHEDULE for pool in pools for taint in pool.taints
        )
        self.templates = make_templates(snapshot, types)
        self.topology = Topology(snapshot, types, {pod.key for pod in batch})
        self.nodes = existing_nodes(snapshot, types)
        sold = [kind for pool in pools for kind in types[pool.name]]
        labels_sold = {key for kind in sold for key in kind.requirements}
        self.claims = Claims(
            topology=self.topology,
            settings=snapshot.settings,
            well_known=snapshot.catalog.well_known,
            capacity=_reservations(sold),
            withheld=frozenset(self._labels_watched(batch) - labels_sold),
        )

    def _labels_watched(self, batch: list[Pod]) -> set[str]:
        """Return the labels of DaemonSets' node rules, and of terms that exclude labels."""
        daemons = [each.pod.rules for each in self.snapshot.daemons]
        asked = {key for rules in daemons for wanted in alternatives(rules) for key in wanted}
        apart = {term.topology_key for pod in batch for term in pod.rules.anti_affinity}
        wished = {
            each.term.topology_key for pod in batch for each in pod.rules.preferred_anti_affinity
        }
        return asked | apart | wished | {group.key for group in self.topology.inverse}

    def place_all(self, batch: list[Pod]) -> dict[str, Reason]:
        """Place pods in rounds until a round places none; return the unplaced pods with reasons."""
        queue = batch
        while True:
            answers = {pod.key: self._place(pod) for pod in queue}
            left = [pod for pod in queue if answers[pod.key] is not None]
            if len(left) == len(queue):
                return {key: why for key, why in answers.items() if why is not None}
            queue = left

    def _place(self, pod: Pod) -> Reason | None:
        ladder = steps(pod.rules, has_soft_taints=self.has_soft_taints)
        for step, rules in enumerate(ladder):
            attempt = make_attempt(pod, rules, self.snapshot.storage)
            is_placed = self._place_on_node(attempt) or self._place_on_claim(attempt)
            answer = None if is_placed else self._place_on_new_claim(attempt)
            if answer is None:
                self.steps_down += step
                return None
            if answer is No.RESERVATION:
                return Reason.WAITS_FOR_RESERVATION
        return Reason.NO_HOST if self.has_pools else Reason.NO_POOL

    def _place_on_node(self, attempt: Attempt) -> bool:
        for node in self.nodes:
            if self.shut.holds(attempt.pod.key, node.node.name):
                continue
            if node.accepts(attempt, self.topology):
                node.add(attempt, self.topology)
                return True
        return False

    def _place_on_claim(self, attempt: Attempt) -> bool:
        for claim in self.claims.in_order():
            fit = self.claims.try_add(claim, attempt)
            if isinstance(fit, Fit):
                self.claims.add(claim, attempt, fit)
                return True
        return False

    def _place_on_new_claim(self, attempt: Attempt) -> No | None:
        for template in self.templates:
            types = self._types_within_limits(template)
            claim = new_claim(template, len(self.claims.made), types)
            fit = self.claims.try_add(claim, attempt)
            if isinstance(fit, Fit):
                self.claims.add(claim, attempt, fit)
                return None
            if fit is No.RESERVATION:
                return fit
        return No.ORDINARY

    def _types_within_limits(self, template: Template) -> list[InstanceType]:
        pool = template.pool
        used = add(
            *(
                node.capacity
                for node in self.snapshot.nodes
                if node.pool == pool.name and not node.is_deleting
            ),
            *(
                {**largest(_most(kind) for kind in claim.first_types), NODES: 1}
                for claim in self.claims.made
                if claim.template is template
            ),
        )
        left = {name: limit - used.get(name, 0) for name, limit in pool.limits.items()}
        if left.pop(NODES, 1) <= 0:
            return []
        return [
            kind
            for kind in template.types
            if all(_most(kind).get(name, 0) <= amount for name, amount in left.items())
        ]


def _most(kind: InstanceType) -> dict[str, int]:
    return largest([kind.capacity, *(each.capacity_override for each in kind.offerings)])


def _reservations(types: list[InstanceType]) -> dict[str, int]:
    capacity: dict[str, int] = {}
    for kind in types:
        for offering in kind.offerings:
            if offering.is_reserved:
                known = capacity.get(offering.reservation_id, offering.reservation_capacity)
                capacity[offering.reservation_id] = min(known, offering.reservation_capacity)
    return capacity
