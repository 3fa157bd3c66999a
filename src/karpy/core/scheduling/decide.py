"""Pending pods in, launches, nominations and reasons out."""

from msgspec.structs import replace

from karpy.core.scheduling.costly import WORK_MAX, part, refuse_costly
from karpy.core.scheduling.defaults import with_default_spreads
from karpy.core.scheduling.effort import Effort, KeepGoing, OutOfTime
from karpy.core.scheduling.existing import BoundPods, ExistingNodes
from karpy.core.scheduling.fleet import Fleet
from karpy.core.scheduling.greedy import Outcome, Packer
from karpy.core.scheduling.groups import Site
from karpy.core.scheduling.launches import Launcher
from karpy.core.scheduling.limits import Limits
from karpy.core.scheduling.overlays import apply_overlays
from karpy.core.scheduling.pending import Batch, collect_batch
from karpy.core.scheduling.planner import Planner
from karpy.core.scheduling.portfolio import Draft, better, is_worth_another_look, other_orders
from karpy.core.scheduling.refuse import Refuser
from karpy.core.scheduling.reservations import Reservations
from karpy.core.scheduling.rows import Rows
from karpy.core.scheduling.signatures import Signatures
from karpy.core.scheduling.steps import PodClass
from karpy.core.scheduling.templates import (
    PoolDomains,
    Template,
    assign_daemons,
    build_template,
    has_soft_taint,
    labels_asked_for,
    usable_pools,
)
from karpy.core.scheduling.topology import Topology
from karpy.core.scheduling.typetable import TypeTable
from karpy.core.scheduling.volumes import attachments_of
from karpy.errors import LimitPassed
from karpy.model.labels import HOSTNAME
from karpy.model.pods import Pod
from karpy.model.refusals import Exclusion, Reason, Refusal
from karpy.model.requirements import from_labels
from karpy.model.settings import MinValuesPolicy, Packing, PreferencePolicy
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Launch, Nomination, PoolNotice, Verdict

_PODS_BETWEEN_LOOKS_AT_THE_CLOCK = 16

Entry = tuple[Pod, PodClass]


def decide(snapshot: Snapshot, *, keep_going: KeepGoing | None = None) -> Verdict:
    """
    Decide where pending pods go: onto existing nodes, or onto which new ones.

    The same snapshot gives the same verdict. With `keep_going` the decision ends early when that
    says False, with what is decided so far.
    """
    batch = collect_batch(snapshot)
    if snapshot.settings.default_spreads:
        batch = replace(batch, pods=tuple(with_default_spreads(batch.pods, snapshot)))
    usual, costly, left_out = part(batch.pods)
    draft = _decide_best(snapshot, replace(batch, pods=usual), keep_going)
    verdict, undecided = draft.verdict, costly
    if costly and verdict.is_complete:
        # The others are decided about twice, so that these hold up none of them.
        whole = replace(batch, pods=(*draft.pods, *costly))
        most = 2 * draft.work + WORK_MAX
        with_all = _Decision(snapshot, whole, keep_going, most).run().verdict
        late = _undecided(with_all)
        if late.isdisjoint(pod.key for pod in usual):
            verdict = _without_undecided(with_all)
            undecided = tuple(pod for pod in costly if pod.key in late)
        verdict = replace(verdict, is_complete=with_all.is_complete)
    more = refuse_costly((*undecided, *left_out))
    return replace(verdict, refusals=(*verdict.refusals, *more)) if more else verdict


def _decide_best(snapshot: Snapshot, batch: Batch, keep_going: KeepGoing | None) -> Draft:
    """Decide; try other orders if the settings say so, as long as there is time."""
    if not batch.pods:
        notices = tuple(usable_pools(snapshot.pools)[1])
        return Draft(Verdict(refusals=batch.refusals, pools=notices))
    draft = _Decision(snapshot, batch, keep_going).run()
    if snapshot.settings.packing is Packing.CHEAPEST and is_worth_another_look(draft):
        for other in other_orders(batch, snapshot.catalog.well_known):
            if keep_going is not None and not keep_going():
                break
            draft = better(draft, _Decision(snapshot, other, keep_going).run(), batch)
    return draft


def _undecided(verdict: Verdict) -> frozenset[str]:
    return frozenset(
        key for each in verdict.refusals if each.reason is Reason.UNDECIDED for key in each.pods
    )


def _without_undecided(verdict: Verdict) -> Verdict:
    refusals = tuple(each for each in verdict.refusals if each.reason is not Reason.UNDECIDED)
    return replace(verdict, refusals=refusals)


class _Decision:
    """The scratch state of one decision, from the batch to the verdict."""

    def __init__(
        self,
        snapshot: Snapshot,
        batch: Batch,
        keep_going: KeepGoing | None,
        most_work: int | None = None,
    ) -> None:
        self.snapshot = snapshot
        self.batch = batch
        self.keep_going = keep_going
        self.effort = Effort(keep_going, most_work)
        settings = snapshot.settings
        catalog = snapshot.catalog
        if settings.node_overlay:
            catalog = apply_overlays(catalog, snapshot.pools, snapshot.overlays)
        pools, notices = usable_pools(snapshot.pools)
        self.pools = pools
        self.notices: list[PoolNotice] = notices
        types_of = {pool.name: catalog.types_for(pool.name) for pool in pools}
        distinct = {id(types): types for types in types_of.values()}
        table = TypeTable(
            (each for types in distinct.values() for each in types),
            catalog.well_known,
            waits_for_reserved=settings.reserved_capacity,
        )
        self.signatures = Signatures(table)
        self.templates: list[Template] = []
        for pool in pools:
            made = build_template(
                pool, types_of[pool.name], self.signatures, settings.min_values_policy
            )
            if isinstance(made, Exclusion):
                self.notices.append(PoolNotice(pool.name, made))
                continue
            made.index = len(self.templates)
            assign_daemons(made, snapshot.daemons, self.signatures)
            self.templates.append(made)
        self.existing = ExistingNodes(snapshot.nodes)
        self.fleet = Fleet(self.existing, self.signatures)
        self.topology = Topology(
            self.signatures,
            snapshot.namespaces,
            PoolDomains(pools, types_of),
            self.fleet.site,
            self.effort,
        )
        self.topology.know_nodes(self.existing)
        self.packer = Packer(
            self.fleet,
            Limits(self.templates, snapshot.nodes, table, len(batch.pods)),
            Reservations(table, settings.reserved_mode, is_enabled=settings.reserved_capacity),
            catalog,
            self.effort,
        )
        self.packer.fitter.use(
            pools,
            relaxes_variety=settings.min_values_policy is MinValuesPolicy.BEST_EFFORT,
        )

    def run(self) -> Draft:
        try:
            queue = self._prepare()
            if self.keep_going is not None:
                queue = self._hopeless_last(queue)
        except OutOfTime:
            return Draft(self._verdict_without_time(), pods=self.batch.pods)
        verdict = self._verdict(self._pack(queue))
        return Draft(verdict, self.packer.steps_down, self.batch.pods, self.effort.spent)

    def _verdict_without_time(self) -> Verdict:
        keys = tuple(pod.key for pod in self.batch.pods)
        refusals = (*self.batch.refusals, Refusal(Reason.UNDECIDED, keys))
        return Verdict(refusals=refusals, pools=tuple(self.notices), is_complete=False)

    def _prepare(self) -> list[Entry]:
        """Count what is there, make groups and classes; return the queue."""
        snapshot, batch = self.snapshot, self.batch
        bound = self._settle_existing()
        planner = Planner(
            self.signatures, self.topology, self.existing, self.templates, self.effort
        )
        planner.register(
            batch,
            respects_preferences=snapshot.settings.preference_policy is PreferencePolicy.RESPECT,
            can_tolerate=has_soft_taint(self.pools),
        )
        self.topology.count_bound(bound, planner.waiting_labels)
        self._count_leaving()
        self.fleet.tables = list(self.topology.tables.values())
        self.fleet.avoided = self.topology.avoided
        self.signatures.watched = labels_asked_for(snapshot.daemons) | self.topology.avoided.keys()
        return planner.classes()

    def _settle_existing(self) -> BoundPods:
        """Work out what is left on existing nodes; return the pods bound there."""
        if not self.existing.count:
            return BoundPods()
        bound = self.existing.settle(self.snapshot.pods, self.snapshot.daemons)
        for pod, node in bound.demanding:
            rules = pod.rules
            if rules.ports:
                self.fleet.take_ports(node, pod)
            if rules.volumes:
                self.fleet.attach(node, attachments_of(pod, self.snapshot.storage))
        return bound

    def _count_leaving(self) -> None:
        """Count pods that are left to go down with their node."""
        leaving = {node.name: node for node in self.snapshot.nodes if node.is_deleting}
        if not leaving:
            return
        placed_again = {pod.uid for pod in self.batch.pods if pod.node_name}
        for pod in self.snapshot.pods:
            node = leaving.get(pod.node_name)
            if node is not None and pod.is_active and pod.uid not in placed_again:
                labels = {**node.labels, HOSTNAME: node.hostname}
                self.topology.count_leaving(pod, Site(from_labels(labels), node.taints), labels)

    def _hopeless_last(self, queue: list[Entry]) -> list[Entry]:
        known: dict[int, bool] = {}
        for _, each in queue:
            if id(each) not in known:
                known[id(each)] = not self.packer.has_host(each)
        return sorted(queue, key=lambda entry: known[id(entry[1])])

    def _pack(self, queue: list[Entry]) -> "_Leftover":
        """Place what can be placed."""
        is_first_round = True
        hopeless: list[Entry] = []
        waiting: set[str] = set()
        # Each round but the last places a pod, so that there are never more rounds than this.
        for _ in range(len(queue) + 1):
            left = _Leftover(hopeless)
            tried = self._go_round(queue, left)
            if tried < len(queue):
                rest = queue[tried:]
                left.waiting |= waiting.intersection(pod.uid for pod, _ in rest)
                (left.undecided if is_first_round else left.again).extend(rest)
                left.is_complete = False
                return left
            if len(left.again) == len(queue) or not any(
                each.may_succeed() for _, each in left.again
            ):
                return left
            queue, waiting = left.again, left.waiting
            is_first_round = False
        raise LimitPassed(what=f"still packing after {len(self.batch.pods) + 1} rounds")

    def _go_round(self, queue: list[Entry], left: "_Leftover") -> int:
        """Try each pod once; return how many had their turn before time was up."""
        packer, rows, keep_going = self.packer, Rows(self.packer), self.keep_going
        turn, looked = 0, 0 if keep_going else len(queue)
        while turn < len(queue):
            if turn >= looked and keep_going is not None:
                looked = min(turn + _PODS_BETWEEN_LOOKS_AT_THE_CLOCK, len(queue))
                if not keep_going():
                    return turn
            pod, pod_class = entry = queue[turn]
            if pod_class.is_hopeless:
                left.hopeless.append(entry)
            elif placed := rows.place(queue, turn, looked):
                turn += placed
                continue
            else:
                try:
                    outcome = packer.place(pod_class, pod)
                except OutOfTime:
                    return turn
                if outcome is not Outcome.PLACED:
                    left.add(entry, outcome)
            turn += 1
        return turn

    def _verdict(self, left: "_Leftover") -> Verdict:
        launches, dropped = self._launches()
        existing, pods = self.existing, self.fleet.pods
        nominations = tuple(
            Nomination(existing.nodes[node].name, tuple(pod.key for pod in pods[node]))
            for node in range(existing.count)
            if pods[node]
        )
        refusals = list(self.batch.refusals)
        if dropped:
            refusals.append(Refusal(Reason.MIN_VALUES_TRUNCATED, tuple(dropped)))
        if left.hopeless or left.again:
            why = Reason.NO_HOST if self.pools else Reason.NO_POOL
            refuser = Refuser(self.packer, self.templates, self.notices, why)
            refusals += refuser.refuse((*left.hopeless, *left.again), left.waiting)
        if left.undecided:
            refusals.append(Refusal(Reason.UNDECIDED, tuple(pod.key for pod, _ in left.undecided)))
        return Verdict(
            tuple(launches), nominations, tuple(refusals), tuple(self.notices), left.is_complete
        )

    def _launches(self) -> tuple[list[Launch], list[str]]:
        """Turn claims into launches; return also the pods of claims that had to be dropped."""
        launcher = Launcher(self.fleet, self.signatures, self.snapshot.catalog.reservation_label)
        is_strict = self.snapshot.settings.min_values_policy is MinValuesPolicy.STRICT
        launches: list[Launch] = []
        dropped: list[str] = []
        for node in range(self.existing.count, self.fleet.size):
            launch = launcher.launch(node, is_strict=is_strict)
            if launch is None:
                dropped += [pod.key for pod in self.fleet.pods[node]]
            else:
                launches.append(launch)
        return launches, dropped


class _Leftover:
    """Pods without a place: refused after a try, or never tried for want of time."""

    def __init__(self, hopeless: list[Entry]) -> None:
        self.hopeless = hopeless
        self.again: list[Entry] = []
        self.undecided: list[Entry] = []
        self.waiting: set[str] = set()
        self.is_complete = True

    def add(self, entry: Entry, outcome: Outcome) -> None:
        """Take a pod that was tried and not placed."""
        pod, pod_class = entry
        (self.hopeless if pod_class.is_hopeless else self.again).append(entry)
        if outcome is Outcome.WAITS:
            self.waiting.add(pod.uid)
