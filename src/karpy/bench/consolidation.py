"""Consolidation on workload files of kind `consolidate`: decide, check, apply."""

import time
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from math import fsum
from typing import Final

from msgspec import UNSET, Struct, UnsetType, field
from msgspec.structs import replace

from karpy.codec.fields import Fields
from karpy.codec.karpbench import read_workload_node
from karpy.core.check.plan import check_plan
from karpy.core.disruption.cost import Prices
from karpy.core.disruption.evaluation import Evaluation
from karpy.core.disruption.method import DisruptionMethod
from karpy.core.disruption.methods.emptiness import Emptiness
from karpy.core.disruption.methods.multinode import MultiNodeConsolidation
from karpy.core.disruption.methods.singlenode import SingleNodeConsolidation
from karpy.core.scheduling.decide import decide
from karpy.model.commands import Command
from karpy.model.instances import MICROS_PER_DOLLAR, Catalog, InstanceType, Offering
from karpy.model.nodes import Node
from karpy.model.pods import Pod
from karpy.model.requirements import why_incompatible
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Launch, Verdict


class Method(Enum):
    """The consolidation methods; the values are those of the result line."""

    EMPTY = "empty"
    MULTI = "multi"
    SINGLE = "single"


_METHODS: Final[Mapping[Method, DisruptionMethod]] = {
    Method.EMPTY: Emptiness(),
    Method.MULTI: MultiNodeConsolidation(),
    Method.SINGLE: SingleNodeConsolidation(),
}


def consolidate_once(snapshot: Snapshot, method: Method) -> Command | None:
    """Return the command of one method on a fresh snapshot, None if it has none."""
    proposal = _METHODS[method].propose(Evaluation(snapshot))
    return proposal.commands[0] if proposal.commands else None


# --- the result line ----------------------------------------------------------------------------


class PlannedReplacement(Struct, frozen=True):
    """The node that a command launches, at its cheapest option."""

    instance_type: str = field(name="type")
    zone: str
    capacity_type: str
    price: float


class Decision(Struct, frozen=True):
    """One decision; field names are those of the karpbench/v1 result line."""

    method: str
    decision: str
    """`no-op`, `delete` or `replace`."""
    candidates: int
    """Initialized nodes with a NodeClaim: for `empty` the empty ones, otherwise those in use."""
    decision_s: float
    removed: tuple[str, ...]
    pods_moved: int
    replacement: PlannedReplacement | None
    savings: float
    hit_timeout: bool = False
    """Always False: decisions have no time limit."""
    nodes_after: int | UnsetType = UNSET
    cost_after: float | UnsetType = UNSET
    elapsed_s: float | UnsetType = UNSET
    """Seconds of all decisions up to this command, if commands are carried out."""


class Consolidated(Struct, frozen=True):
    """One run on a workload file of kind `consolidate`."""

    harness: str
    workload: str
    run: int
    instance_types: int
    nodes: int
    pods: int
    cost: float
    """Dollars per hour, as `cost_after`."""
    converge: bool
    wall_s: float
    setup_s: float
    nodes_after: int
    cost_after: float
    decisions: tuple[Decision, ...]
    peak_rss_mb: float | UnsetType = UNSET
    breaches: int | UnsetType = UNSET
    """The number of rules that the commands break; absent if the checker did not run."""


class ConsolidationRun:
    """One run: one decision per method, or commands until no method has one."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.start = self.snapshot = snapshot
        self.decisions: list[Decision] = []
        self.problems: list[str] = []
        self._prices = Prices(snapshot.catalog)

    @property
    def seconds(self) -> float:
        return fsum(each.decision_s for each in self.decisions)

    def decide_once(self) -> None:
        """Decide by each method on the same cluster, and carry out the first command."""
        applied: Snapshot | None = None
        for method in Method:
            self.snapshot = self.start
            after = self._decide(method)
            applied = applied or after
        self.snapshot = applied or self.start

    def converge(self) -> None:
        """Carry out command after command until no method has one."""
        while True:
            for method in Method:
                after = self._decide(method)
                if after is not None:
                    self.snapshot = after
                    self.decisions[-1] = replace(
                        self.decisions[-1],
                        nodes_after=len(after.nodes),
                        cost_after=self.cost(after),
                        elapsed_s=self.seconds,
                    )
                    break
            else:
                return

    def cost(self, snapshot: Snapshot) -> float:
        """Return the dollars per hour of all nodes."""
        return self._prices.total(snapshot.nodes) / MICROS_PER_DOLLAR

    def _decide(self, method: Method) -> Snapshot | None:
        """Time one decision; return the cluster after its command, None if there is none."""
        began = time.perf_counter()
        command = consolidate_once(self.snapshot, method)
        seconds = time.perf_counter() - began
        names = set[str]() if command is None else {each.node for each in command.nodes}
        self.decisions.append(
            Decision(
                method=method.value,
                decision="no-op" if command is None else command.decision,
                candidates=_count_candidates(self.snapshot, method),
                decision_s=seconds,
                removed=tuple(sorted(names)),
                pods_moved=sum(1 for _ in moving_pods(self.snapshot, names)),
                replacement=_replacement(command),
                savings=0.0 if command is None else command.savings / MICROS_PER_DOLLAR,
            )
        )
        if command is None:
            return None
        applied = carry_out(self.snapshot, command)
        self.problems += [f"{method.value}: {each}" for each in applied.problems]
        return applied.snapshot


def _count_candidates(snapshot: Snapshot, method: Method) -> int:
    used = {pod.node_name for pod in snapshot.pods if pod.node_name and pod.is_reschedulable}
    return sum(
        (each.name in used) != (method is Method.EMPTY)
        for each in snapshot.nodes
        if each.claim and each.is_initialized and not each.is_deleting
    )


def _replacement(command: Command | None) -> PlannedReplacement | None:
    if command is None or not command.replacements:
        return None
    best = command.replacements[0].launch.options[0]
    price = best.price / MICROS_PER_DOLLAR
    return PlannedReplacement(best.instance_type, best.zone, best.capacity_type, price)


# --- carrying a command out ---------------------------------------------------------------------


class Applied(Struct, frozen=True):
    """A cluster after a command, and the rules that the command breaks."""

    snapshot: Snapshot
    problems: tuple[str, ...] = ()


def carry_out(snapshot: Snapshot, command: Command) -> Applied:
    """
    Move the pods of a command's nodes as a full decision places them, and check the result.

    Every moved pod needs a place on a remaining node or on the replacement of the command, and the
    price of the cluster must fall by the savings of the command.
    """
    names = {each.node for each in command.nodes}
    launches = [each.launch for each in command.replacements]
    rest = without(snapshot, names)
    offered = replace(rest, catalog=_only_launches(snapshot.catalog, launches))
    plan = decide(offered)
    problems = [str(breach) for breach in check_plan(offered, plan)]
    unplaced = {pod.key for pod in moving_pods(snapshot, names)} - placed_by(plan)
    problems += [f"UNPLACED {key}" for key in sorted(unplaced)]
    after = _moved(snapshot, plan, names)
    prices = Prices(snapshot.catalog)
    fell = prices.total(snapshot.nodes) - prices.total(after.nodes)
    claimed = command.savings
    if fell != claimed:
        problems.append(f"PRICE falls by {fell} micro-dollars, and {claimed} are claimed")
    if fell <= 0 and launches:
        problems.append(f"PRICE falls by {fell} micro-dollars, which is no saving")
    return Applied(after, tuple(problems))


def without(snapshot: Snapshot, names: set[str]) -> Snapshot:
    """Return a snapshot with nodes deleting: they take no pods, and their pods must move."""
    nodes = tuple(
        replace(each, is_deleting=True) if each.name in names else each for each in snapshot.nodes
    )
    return replace(snapshot, nodes=nodes)


def moving_pods(snapshot: Snapshot, names: set[str]) -> Iterator[Pod]:
    """Yield the pods that need another node if some nodes are deleted."""
    return (pod for pod in snapshot.pods if pod.node_name in names and pod.is_reschedulable)


def placed_by(plan: Verdict) -> set[str]:
    """Return the pods that a plan places."""
    launched = {key for each in plan.launches for key in each.pods}
    return launched | {key for each in plan.nominations for key in each.pods}


def _only_launches(catalog: Catalog, launches: Sequence[Launch]) -> Catalog:
    """Return the catalog reduced to the options of the launches of a command."""

    def kept(types: Sequence[InstanceType]) -> tuple[InstanceType, ...]:
        return tuple(
            replace(each, offerings=tuple(_suiting(each, launch, catalog)))
            for launch in launches
            for each in types
            if each.name in {option.instance_type for option in launch.options}
        )

    by_pool = {pool: kept(types) for pool, types in catalog.by_pool.items()}
    return replace(catalog, types=kept(catalog.types), by_pool=by_pool)


def _suiting(kind: InstanceType, launch: Launch, catalog: Catalog) -> Iterator[Offering]:
    for each in kind.offerings:
        if why_incompatible(launch.requirements, each.requirements, catalog.well_known) is None:
            yield each


def _moved(snapshot: Snapshot, plan: Verdict, names: set[str]) -> Snapshot:
    """Return the cluster without the nodes, with their replacement and the pods moved."""
    known = {each.name for each in snapshot.nodes}
    places = {key: each.node for each in plan.nominations for key in each.pods}
    nodes = [each for each in snapshot.nodes if each.name not in names]
    for launch in plan.launches:
        number = len(known)
        while (name := f"replacement-{number:05d}") in known:
            number += 1
        known.add(name)
        nodes.append(_launched(launch, name, snapshot))
        places |= dict.fromkeys(launch.pods, name)
    pods = tuple(
        replace(pod, node_name=places[pod.key], is_unschedulable=False)
        if pod.key in places
        else pod
        for pod in snapshot.pods
        if pod.node_name not in names or pod.key in places
    )
    return replace(snapshot, nodes=tuple(nodes), pods=pods)


def _launched(launch: Launch, name: str, snapshot: Snapshot) -> Node:
    best = launch.options[0]
    entry = {
        "name": name,
        "nodePool": launch.pool,
        "instanceType": best.instance_type,
        "zone": best.zone,
        "capacityType": best.capacity_type,
        "created": snapshot.now.isoformat(),
    }
    pools = {each.name: each for each in snapshot.pools}
    types = {each.name: each for each in snapshot.catalog.types_for(launch.pool)}
    return read_workload_node(Fields(entry), pools, types)
