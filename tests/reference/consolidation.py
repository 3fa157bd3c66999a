"""
Consolidation and emptiness: which nodes to delete or replace to save cost.

The reference solver places pods. Prices are micro-dollars, costs and scores are fractions. Two
things differ from Karpenter on purpose: a command must save more than zero, and there is neither a
time limit nor, unless the caller sets one, a limit of candidates.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction

from msgspec.structs import replace

from karpy.model.instances import InstanceType, Offering
from karpy.model.labels import (
    CAPACITY_TYPE,
    DO_NOT_DISRUPT,
    INITIALIZED,
    INSTANCE_TYPE,
    NODE_POOL,
    ON_DEMAND,
    RESERVED,
    SPOT,
    ZONE,
)
from karpy.model.nodes import Node
from karpy.model.pods import DAEMON_SET, NODE, STATEFUL_SET, Pod
from karpy.model.pools import ConsolidationPolicy, DisruptionReason, NodePool
from karpy.model.requirements import Requirements, merge, one_of, why_incompatible
from karpy.model.settings import ReservedMode, Settings
from karpy.model.snapshot import Snapshot
from tests.reference.batch import is_protected
from tests.reference.launches import PlannedLaunch
from tests.reference.overlays import types_by_pool
from tests.reference.solver import solve
from tests.reference.templates import lacking

DELETION_COST_UNIT = 2**27
PRIORITY_UNIT = 2**25
COST_MAX = Fraction(10)
INT32 = range(-(2**31), 2**31)
SPOT_TYPES_MIN = 15
"""A spot node is replaced by a spot node only with at least this many cheaper types."""
APPROVED_FROM = Fraction(1, 2)
"""The score that a command must reach in a Balanced NodePool: 1/k, where k is 2."""
CONSOLIDATABLE = "Consolidatable"


# --- the cost of moving pods (section 5.3) ---------------------------------------------------


def eviction_cost(pod: Pod, *, reads_deletion_cost: bool = True) -> Fraction:
    """Return the cost of moving one pod, between -10 and 10: 1 by default."""
    said = pod.disruption
    written = said.disruption_cost
    if written is None and reads_deletion_cost:
        written = said.deletion_cost
    cost = 1 + Fraction(_int32(written), DELETION_COST_UNIT)
    cost += Fraction(said.priority, PRIORITY_UNIT)
    return max(-COST_MAX, min(cost, COST_MAX))


def _int32(text: str | None) -> int:
    """Read a base-10 int32; 0 for any other text."""
    digits = (text or "").removeprefix("-").removeprefix("+")
    is_signed_once = text is not None and len(text) - len(digits) <= 1
    if not (is_signed_once and digits.isascii() and digits.isdecimal()):
        return 0
    number = int(text or "0")
    return number if number in INT32 else 0


def moving_cost(pods: Iterable[Pod], *, reads_deletion_cost: bool = True) -> Fraction:
    """Return the cost of moving the reschedulable pods of a node; at least 1."""
    costs = [
        eviction_cost(pod, reads_deletion_cost=reads_deletion_cost)
        for pod in pods
        if is_reschedulable(pod)
    ]
    return 1 + sum((max(Fraction(0), cost) for cost in costs), Fraction(0))


def is_reschedulable(pod: Pod) -> bool:
    """Say whether a pod needs another node when its own is deleted."""
    if pod.is_owned_by(DAEMON_SET) or pod.is_owned_by(NODE):
        return False
    return pod.is_active or (pod.is_deleting and pod.is_owned_by(STATEFUL_SET))


# --- candidates (sections 5.2, 5.6, 5.9) -----------------------------------------------------


@dataclass(frozen=True)
class Candidate:
    """A node that may be disrupted, with its pods."""

    node: Node
    pool: NodePool
    pods: tuple[Pod, ...]
    price: int
    """Micro-dollars per hour; 0 if it is not known."""
    cost: Fraction
    """The cost of moving its pods."""

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def is_empty(self) -> bool:
        return self.cost <= 1

    @property
    def is_spot(self) -> bool:
        return self.node.labels.get(CAPACITY_TYPE) == SPOT


def find_candidates(snapshot: Snapshot) -> list[Candidate]:
    """Return the nodes whose disruption neither they nor their pods forbid, by name."""
    nodes = sorted(snapshot.nodes, key=_name)
    pools = {pool.name: pool for pool in snapshot.pools}
    return [
        _candidate(node, pools[node.pool], snapshot)
        for node in nodes
        if why_not_node(node, snapshot) is None and why_not_pods(node, snapshot) is None
    ]


def _name(node: Node) -> str:
    return node.name


def _candidate(node: Node, pool: NodePool, snapshot: Snapshot) -> Candidate:
    pods = tuple(_pods_on(node, snapshot))
    kind, offering = _type_of(node, snapshot), None
    if kind is not None:
        offering = _sold_at(kind, node.labels.get(ZONE), node.labels.get(CAPACITY_TYPE))
    price = 0 if offering is None else offering.price
    return Candidate(node, pool, pods, price, moving_cost(pods))


def _pods_on(node: Node, snapshot: Snapshot) -> list[Pod]:
    return [pod for pod in snapshot.pods if pod.node_name == node.name]


def _type_of(node: Node, snapshot: Snapshot) -> InstanceType | None:
    name = node.labels.get(INSTANCE_TYPE)
    types = types_by_pool(snapshot).get(node.pool, ())
    return next((each for each in types if each.name == name), None)


def _sold_at(kind: InstanceType, zone: str | None, capacity_type: str | None) -> Offering | None:
    """Return the first offering in a zone and capacity type, available or not."""
    place = (zone, capacity_type)
    return next((each for each in kind.offerings if (each.zone, each.capacity_type) == place), None)


def why_not_node(node: Node, snapshot: Snapshot) -> str | None:
    """Return why a node itself forbids its disruption; None if it does not."""
    pool = next((each for each in snapshot.pools if each.name == node.pool), None)
    is_initialized = node.is_initialized and node.labels.get(INITIALIZED) == "true"
    checks = {
        "it is not managed": not node.claim,
        "it cannot be read": bool(node.unreadable),
        "it is rebooting": node.is_rebooting,
        "it is being deleted": node.is_deleting,
        "it is not initialized": not is_initialized,
        "pending pods are expected there": node.is_nominated(snapshot.now),
        "its annotation forbids it": node.annotations.get(DO_NOT_DISRUPT) == "true",
        "it has no NodePool": NODE_POOL not in node.labels,
        "its NodePool is not there": pool is None,
        "its NodePool has no instance types": not types_by_pool(snapshot).get(node.pool, ()),
    }
    return next((why for why, holds in checks.items() if holds), None)


def why_not_pods(node: Node, snapshot: Snapshot) -> str | None:
    """Return why the pods of a node, or their budgets, forbid its disruption; None if not."""
    pods = _pods_on(node, snapshot)
    for pod in pods:
        # Pods of DaemonSets and static pods count, too.
        if pod.is_active and is_protected(pod, snapshot.now):
            return "a pod's annotation forbids it"
        if pod.unreadable and is_reschedulable(pod):
            return "a pod cannot be read"
    for pod in pods:
        if _is_evictable(pod, snapshot.now):
            budgets = [each for each in snapshot.budgets if each.covers(pod)]
            if len(budgets) > 1:
                return "several budgets cover a pod"
            for budget in budgets:
                is_spared = budget.allows_unready and pod.is_unready
                if not is_spared and not budget.disruptions_allowed:
                    return "a budget lets no pod go"
    return None


def _is_evictable(pod: Pod, now: datetime) -> bool:
    if not pod.is_active or pod.is_owned_by(NODE) or pod.tolerates_disruption:
        return False
    return not is_protected(pod, now)


def may_be_emptied(candidate: Candidate) -> bool:
    """Say whether a candidate qualifies for emptiness."""
    if candidate.pool.is_static or candidate.pool.policy.consolidate_after is None:
        return False
    if candidate.node.buffer_pods or not candidate.is_empty:
        return False
    return _is_consolidatable(candidate)


def may_be_consolidated(candidate: Candidate, snapshot: Snapshot) -> bool:
    """Say whether a candidate qualifies for the consolidation of nodes in use."""
    pool, labels = candidate.pool, candidate.node.labels
    if pool.is_static or _type_of(candidate.node, snapshot) is None:
        return False
    if not {CAPACITY_TYPE, ZONE} <= labels.keys():
        return False
    if pool.policy.consolidate_after is None or candidate.is_empty:
        return False
    if pool.policy.consolidation is ConsolidationPolicy.WHEN_EMPTY:
        return False
    return _is_consolidatable(candidate)


def _is_consolidatable(candidate: Candidate) -> bool:
    claim = candidate.node.claim_record
    return claim is not None and claim.conditions.is_true(CONSOLIDATABLE)


# --- orders ----------------------------------------------------------------------------------


def best_first(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Sort by price divided by the cost of moving the pods, highest first; then by name."""
    return sorted(candidates, key=lambda each: (-each.price / each.cost, each.name))


def by_turns(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the best candidate of each NodePool, then the second of each; NodePools by name."""
    by_pool: dict[str, list[Candidate]] = {}
    for each in best_first(candidates):
        by_pool.setdefault(each.pool.name, []).append(each)
    turns = [(turn, name, each) for name, some in by_pool.items() for turn, each in enumerate(some)]
    return [each for _, _, each in sorted(turns, key=lambda turn: turn[:2])]


# --- the simulation (section 5.5) ------------------------------------------------------------


@dataclass(frozen=True)
class Simulated:
    """The placements of pods without some nodes."""

    launches: tuple[PlannedLaunch, ...]
    is_possible: bool
    """
    Whether every pod that has to move finds a place on a node that is ready for it, and every other
    pod that has room on a node today still finds a place.
    """


def simulate(snapshot: Snapshot, candidates: Sequence[Candidate]) -> Simulated:
    """Place pending pods and the pods of candidates and of deleting nodes without those nodes."""
    going = {each.name for each in candidates}
    nodes = tuple(
        replace(node, is_deleting=True) if node.name in going else node for node in snapshot.nodes
    )
    settings = replace(snapshot.settings, reserved_mode=ReservedMode.FALLBACK)
    moved = {pod.key for each in candidates for pod in each.pods}
    busy = {node.name for node in snapshot.nodes if _is_under_consolidate_after(node, snapshot)}
    placed = solve(replace(snapshot, nodes=nodes, settings=settings), moved, busy)
    booting = {node.name for node in nodes if not node.is_initialized}
    unsafe = {key for node, keys in placed.nominations.items() if node in booting for key in keys}
    # Differs: for Karpenter all pods of deleting nodes must find a place, too, and the new nodes of
    # all pending pods count as replacements.
    needing = moved | _housed_today(snapshot, settings)
    is_possible = needing.isdisjoint(placed.refused) and moved.isdisjoint(unsafe)
    launches = tuple(each for each in placed.launches if needing.intersection(each.pods))
    return Simulated(launches, is_possible)


def _housed_today(snapshot: Snapshot, settings: Settings) -> set[str]:
    """Return the pending pods and those of deleting nodes that have room on a node as it is."""
    placed = solve(replace(snapshot, settings=settings))
    return {key for keys in placed.nominations.values() for key in keys}


def _is_under_consolidate_after(node: Node, snapshot: Snapshot) -> bool:
    """Say whether the pods of a node changed within consolidateAfter: no pods move there."""
    pool = next((each for each in snapshot.pools if each.name == node.pool), None)
    claim = node.claim_record
    after = None if pool is None else pool.policy.consolidate_after
    if after is None or after <= timedelta() or claim is None:
        return False
    initialized = claim.conditions.get("Initialized")
    if initialized is None or not initialized.is_true:
        return False
    return snapshot.now - (claim.last_pod_event or initialized.changed) < after


# --- one command (sections 5.10, 5.15) -------------------------------------------------------


@dataclass(frozen=True)
class Command:
    """Nodes to delete together, and the types of the one node that replaces them, if any."""

    reason: DisruptionReason
    nodes: tuple[str, ...]
    pool: str = ""
    """The NodePool of the replacement."""
    requirements: Requirements = field(default_factory=dict)
    types: tuple[str, ...] = ()
    """Cheapest first; none if nothing replaces the nodes."""
    savings: int = 0
    """Micro-dollars per hour, with the cheapest type."""


def consolidate(snapshot: Snapshot, candidates: Sequence[Candidate]) -> Command | None:
    """Delete candidates, or replace them by one cheaper node; None if neither is possible."""
    simulated = simulate(snapshot, candidates)
    if not simulated.is_possible or len(simulated.launches) > 1:
        return None
    price, names = sum(each.price for each in candidates), tuple(each.name for each in candidates)
    if not simulated.launches:
        return Command(DisruptionReason.UNDERUTILIZED, names, savings=price)
    (launch,) = simulated.launches
    if all(each.is_spot for each in candidates) and _allows(launch.requirements, SPOT):
        replacement = _spot_replacement(snapshot, candidates, launch, price)
        replacement = replacement if snapshot.settings.spot_to_spot_consolidation else None
    else:
        replacement = _replacement(snapshot, launch, price)
    if replacement is None:
        return None
    types, requirements = replacement
    savings = price - _cheapest(types[0], requirements, snapshot)
    kinds = tuple(each.name for each in types)
    reason = DisruptionReason.UNDERUTILIZED
    return Command(reason, names, launch.pool, requirements, kinds, savings)


def _replacement(
    snapshot: Snapshot, launch: PlannedLaunch, price: int
) -> tuple[list[InstanceType], Requirements] | None:
    """Return the types cheaper than the candidates, cheapest first, and their requirements."""
    requirements = launch.requirements
    types = _types_of(launch, snapshot)
    if not (_allows(requirements, SPOT) and _allows(requirements, ON_DEMAND)):
        cheaper = _cheaper_than(price, types, requirements, snapshot)
        return (cheaper, requirements) if cheaper else None
    # Compare with spot prices if the type has a spot offering.
    for capacity_type in (SPOT, ON_DEMAND):
        held = merge(requirements, {CAPACITY_TYPE: one_of(CAPACITY_TYPE, capacity_type)})
        cheaper = _cheaper_than(price, types, held, snapshot)
        if cheaper:
            return cheaper, held
    return None


def _spot_replacement(
    snapshot: Snapshot, candidates: Sequence[Candidate], launch: PlannedLaunch, price: int
) -> tuple[list[InstanceType], Requirements] | None:
    """Return the cheaper types to replace spot nodes by a spot node."""
    spot = {CAPACITY_TYPE: one_of(CAPACITY_TYPE, SPOT)}
    requirements = merge(launch.requirements, spot)
    cheaper = _cheaper_than(price, _types_of(launch, snapshot), requirements, snapshot)
    if not cheaper:
        return None
    if len(candidates) > 1:
        return cheaper, requirements
    if len(cheaper) < SPOT_TYPES_MIN:
        return None
    most = SPOT_TYPES_MIN
    while lacking(cheaper[:most], requirements) and most < len(cheaper):
        most += 1
    return cheaper[:most], requirements


def _allows(requirements: Requirements, capacity_type: str) -> bool:
    allowed = requirements.get(CAPACITY_TYPE)
    return allowed is None or capacity_type in allowed


def _types_of(launch: PlannedLaunch, snapshot: Snapshot) -> list[InstanceType]:
    known = {each.name: each for each in types_by_pool(snapshot)[launch.pool]}
    return [known[option.instance_type] for option in launch.options]


def _cheaper_than(
    price: int, types: list[InstanceType], requirements: Requirements, snapshot: Snapshot
) -> list[InstanceType]:
    """Return the types whose worst price is lower; none if they do not satisfy minValues."""
    worst = {each.name: worst_price(each, requirements, snapshot) for each in types}
    cheaper = [each for each in types if _is_below(worst[each.name], price)]
    # minValues must hold here, also under the policy BestEffort.
    if lacking(cheaper, requirements):
        return []
    return sorted(cheaper, key=lambda each: (_cheapest(each, requirements, snapshot), each.name))


def _is_below(price: int | None, limit: int) -> bool:
    return price is not None and price < limit


def worst_price(kind: InstanceType, requirements: Requirements, snapshot: Snapshot) -> int | None:
    """Return the highest price of the capacity type that would be launched, or None."""
    for capacity_type in (RESERVED, SPOT, ON_DEMAND):
        known = merge(requirements, {CAPACITY_TYPE: one_of(CAPACITY_TYPE, capacity_type)})
        if _allows(requirements, capacity_type):
            prices = [each.price for each in _launchable(kind, known, snapshot)]
            if prices:
                return max(prices)
    return None


def _launchable(
    kind: InstanceType, requirements: Requirements, snapshot: Snapshot
) -> list[Offering]:
    well_known = snapshot.catalog.well_known
    return [
        each
        for each in kind.offerings
        if each.is_launchable
        and why_incompatible(requirements, each.requirements, well_known) is None
    ]


def _cheapest(kind: InstanceType, requirements: Requirements, snapshot: Snapshot) -> int:
    return min(each.price for each in _launchable(kind, requirements, snapshot))


# --- Balanced NodePools (section 5.15) -------------------------------------------------------


def score(
    savings: Fraction, cost: Fraction, total_price: Fraction, total_cost: Fraction
) -> Fraction:
    """Return the saved share of the price divided by the share of the total moving cost."""
    if savings <= 0 or not total_price or not total_cost:
        return Fraction(0)
    return (savings / total_price) / (cost / total_cost)


def is_approved(snapshot: Snapshot, candidates: Sequence[Candidate], savings: int) -> bool:
    """Say whether a command reaches the score of every Balanced NodePool of its candidates."""
    price = sum(each.price for each in candidates)
    for name in sorted({each.pool.name for each in candidates}):
        own = [each for each in candidates if each.pool.name == name]
        pool = own[0].pool
        if pool.policy.consolidation is not ConsolidationPolicy.BALANCED:
            continue
        share = Fraction(sum(each.price for each in own), price) if price else Fraction(0)
        nodes = [each for each in snapshot.nodes if each.pool == name and each.claim]
        everything = [_candidate(each, pool, snapshot) for each in nodes]
        found = score(
            savings * share,
            sum((each.cost for each in own), Fraction(0)),
            Fraction(sum(each.price for each in everything)),
            sum((each.cost for each in everything), Fraction(0)),
        )
        if found < APPROVED_FROM:
            return False
    return True


# --- the three methods (sections 5.6, 5.11, 5.13) --------------------------------------------


def empty_nodes(snapshot: Snapshot, allowed: dict[str, int]) -> Command | None:
    """Delete empty nodes; `allowed` is how many nodes of each NodePool may be disrupted."""
    eligible = [each for each in find_candidates(snapshot) if may_be_emptied(each)]
    chosen = _within(allowed, best_first(eligible))
    if not chosen:
        return None
    savings = sum(each.price for each in chosen)
    names = tuple(each.name for each in chosen)
    return Command(DisruptionReason.EMPTY, names, savings=savings)


def several_nodes(
    snapshot: Snapshot,
    allowed: dict[str, int],
    *,
    most: int | None = None,
) -> Command | None:
    """Replace as many nodes as possible, best first, by one or none; None if fewer than two can."""
    candidates = _consolidatable(snapshot)
    chosen = _within(allowed, best_first(candidates))[:most]
    best, least, largest = None, 2, len(chosen)
    while least <= largest:
        middle = (least + largest) // 2
        command = command_for(snapshot, chosen[:middle])
        if command is None:
            largest = middle - 1
        else:
            best, least = command, middle + 1
    return best


def command_for(snapshot: Snapshot, candidates: Sequence[Candidate]) -> Command | None:
    """Return the command for candidates if it is possible and every Balanced NodePool approves."""
    command = consolidate(snapshot, candidates)
    if command is not None and command.types and len(candidates) > 1:
        command = _without_same_type(snapshot, candidates, command)
    if command is None or not is_approved(snapshot, candidates, command.savings):
        return None
    return command


def _without_same_type(
    snapshot: Snapshot, candidates: Sequence[Candidate], command: Command
) -> Command | None:
    """Drop replacement types that cost no less than a candidate of the same type."""
    same = [each for each in candidates if each.node.labels.get(INSTANCE_TYPE) in command.types]
    if not same:
        return command
    limit = min(each.price for each in same)
    known = {each.name: each for each in types_by_pool(snapshot)[command.pool]}
    types = [known[name] for name in command.types]
    left = _cheaper_than(limit, types, command.requirements, snapshot)
    if not left:
        return None
    savings = sum(each.price for each in candidates)
    savings -= _cheapest(left[0], command.requirements, snapshot)
    kinds = tuple(each.name for each in left)
    return Command(
        command.reason, command.nodes, command.pool, command.requirements, kinds, savings
    )


def single_node(snapshot: Snapshot, allowed: dict[str, int]) -> Command | None:
    """Delete or replace the first possible node, NodePools by turns."""
    for each in by_turns(_consolidatable(snapshot)):
        if not allowed.get(each.pool.name, 0) or not is_approved(snapshot, [each], each.price):
            continue
        command = command_for(snapshot, [each])
        if command is not None:
            return command
    return None


def _consolidatable(snapshot: Snapshot) -> list[Candidate]:
    found = find_candidates(snapshot)
    return [each for each in found if may_be_consolidated(each, snapshot)]


def _within(allowed: dict[str, int], candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return candidates in order, within the budget of each NodePool."""
    left, chosen = dict(allowed), []
    for each in candidates:
        if left.get(each.pool.name, 0):
            left[each.pool.name] -= 1
            chosen.append(each)
    return chosen
