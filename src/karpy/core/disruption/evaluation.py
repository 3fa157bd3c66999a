"""One snapshot with everything that methods of disruption derive from it, each part once."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from karpy.core.disruption.cost import Costs, Prices
from karpy.core.disruption.rollouts import (
    ReplicaSet,
    find_rollouts,
    is_scaling_out,
    replica_set_of,
)
from karpy.core.lifecycle.conditions import INITIALIZED, changed
from karpy.core.lifecycle.eviction import is_evictable
from karpy.core.scheduling.effort import Effort, KeepGoing
from karpy.core.scheduling.problem import Problem
from karpy.core.scheduling.whatif import WhatIf
from karpy.errors import KarpyError
from karpy.model.nodes import Node
from karpy.model.pods import DisruptionBudget, Pod
from karpy.model.pools import NodePool
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import NodeReason

_NONE: Sequence[Pod] = ()


class Blocked(Struct, frozen=True, gc=False):
    """Why a pod may not be evicted, and by which budgets."""

    why: NodeReason
    budgets: tuple[str, ...]


class PodDisruptionBudgets:
    """The budgets of a cluster, at hand by namespace."""

    def __init__(self, budgets: Iterable[DisruptionBudget]) -> None:
        self._by_namespace: dict[str, list[DisruptionBudget]] = {}
        for each in sorted(budgets, key=lambda each: each.key):
            self._by_namespace.setdefault(each.namespace, []).append(each)

    @property
    def is_empty(self) -> bool:
        return not self._by_namespace

    def why_not_evicted(self, pod: Pod, now: datetime) -> Blocked | None:
        """
        Say which budgets keep a pod from being evicted now, or None.

        A pod that no drain would evict needs no budget.
        """
        near = self._by_namespace.get(pod.namespace)
        if near is None:
            return None
        covering = [each for each in near if each.covers(pod)]
        if not covering or not is_evictable(pod, now):
            return None
        if len(covering) > 1:
            # Whatever they allow: the API server evicts no pod that two budgets cover.
            return Blocked(NodeReason.POD_BUDGETS, tuple(each.key for each in covering))
        budget = covering[0]
        if pod.is_unready and budget.allows_unready:
            return None
        if budget.disruptions_allowed:
            return None
        return Blocked(NodeReason.POD_BUDGET, (budget.key,))


class Evaluation:
    """
    What methods ask about one snapshot.

    It holds memos alone: the same question has the same answer at any time.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        previous: "Evaluation | None" = None,
        put_off: frozenset[str] = frozenset(),
    ) -> None:
        """Take a snapshot; what the previous evaluation derived from equal parts is kept."""
        self.snapshot = snapshot
        self.put_off = put_off
        """Names of nodes that have their turn before others."""
        self.pools: Mapping[str, NodePool] = {each.name: each for each in snapshot.pools}
        self.nodes: Mapping[str, Node] = {each.claim: each for each in snapshot.nodes if each.claim}
        """By the name of their NodeClaim."""
        self.costs = Costs(reads_deletion_cost=not snapshot.settings.manages_deletion_cost)
        self.budgets = PodDisruptionBudgets(snapshot.budgets)
        self._pods_on: dict[str, list[Pod]] | None = None
        self._movers: dict[str, tuple[tuple[Pod, ...], int]] = {}
        self._problem: Problem | None = None
        # Of the previous evaluation nothing else is kept, or each would keep all those before it.
        self._earlier = None if previous is None else previous.latest_problem
        self._effort = Effort()
        self._what_if: WhatIf | None = None
        self._prices: Prices | None = None
        self._unsettled: frozenset[str] | None = None
        self._awaiting: frozenset[str] | None = None
        self._rollouts: frozenset[ReplicaSet] | None = None
        self._is_scaling_out: bool | None = None

    def begin(self, keep_going: KeepGoing | None) -> None:
        """Have questions end when `keep_going` says False; where some did, all is made anew."""
        self._effort.begin(keep_going)
        if self.was_cut:
            self._problem = self._what_if = None
        if self._what_if is not None:
            self._what_if.answered.clear()

    @property
    def was_cut(self) -> bool:
        """Whether time was up before a question was answered."""
        return self._what_if is not None and self._what_if.was_cut

    @property
    def answered(self) -> frozenset[str]:
        """Names of nodes that questions were answered about since `begin`."""
        return frozenset() if self._what_if is None else frozenset(self._what_if.answered)

    def take_failures(self) -> list[KarpyError]:
        """Return the errors of questions since this was asked last."""
        failures = [] if self._what_if is None else self._what_if.failures
        taken, failures[:] = [*failures], []
        return taken

    @property
    def now(self) -> datetime:
        return self.snapshot.now

    @property
    def prices(self) -> Prices:
        """What nodes cost, and what replacements would."""
        if self._prices is None:
            self._prices = Prices(self.snapshot.catalog)
        return self._prices

    @property
    def what_if(self) -> WhatIf:
        """Answers where the pods of nodes would go without these nodes."""
        if self._what_if is None:
            self._what_if = WhatIf(self.problem)
        return self._what_if

    @property
    def problem(self) -> Problem:
        """The snapshot made ready for the solver."""
        if self._problem is None:
            self._problem = Problem.of(self.snapshot, self._earlier, self._effort)
            self._earlier = None
        return self._problem

    @property
    def latest_problem(self) -> Problem | None:
        """The last snapshot that was made ready for the solver, this one or one before."""
        return self._problem or self._earlier

    @property
    def unsettled(self) -> frozenset[str]:
        """Names of nodes with a pod event within consolidateAfter: no pod is moved there."""
        if self._unsettled is None:
            self._unsettled = frozenset(
                each.name for each in self.snapshot.nodes if self._is_unsettled(each)
            )
        return self._unsettled

    # Differs: the replacement of a node that is drained at this moment: Karpenter may plan pods of
    # the next node on it; Karpy keeps its room until its own pods have come.
    @property
    def awaiting(self) -> frozenset[str]:
        """Names of nominated nodes without pods so far: no pod of another node moves there."""
        if self._awaiting is None:
            self._awaiting = frozenset(
                each.name
                for each in self.snapshot.nodes
                if each.is_nominated(self.now)
                and not any(pod.is_reschedulable for pod in self.pods_on(each))
            )
        return self._awaiting

    @property
    def is_scaling_out(self) -> bool:
        """Whether nodes for pending pods are on their way."""
        if self._is_scaling_out is None:
            self._is_scaling_out = is_scaling_out(self.snapshot)
        return self._is_scaling_out

    def in_rollout(self, pods: Iterable[Pod]) -> Pod | None:
        """Return the first of some pods that a rollout of its Deployment is about to replace."""
        if self._rollouts is None:
            self._rollouts = find_rollouts(self.snapshot.pods, self.now)
        if not self._rollouts:
            return None
        return next((each for each in pods if replica_set_of(each) in self._rollouts), None)

    def pods_on(self, node: Node) -> Sequence[Pod]:
        """Return the pods that are bound to a node, in the order of the snapshot."""
        if self._pods_on is None:
            self._pods_on = {}
            for pod in self.snapshot.pods:
                if pod.node_name and not pod.is_expected:
                    self._pods_on.setdefault(pod.node_name, []).append(pod)
        return self._pods_on.get(node.name, _NONE)

    def movers(self, node: Node) -> tuple[tuple[Pod, ...], int]:
        """Return the pods that need another node without theirs, and what it costs to move them."""
        found = self._movers.get(node.name)
        if found is None:
            pods = tuple([pod for pod in self.pods_on(node) if pod.is_reschedulable])
            found = self._movers[node.name] = pods, self.costs.of_moving(pods)
        return found

    def quiet_at(self, node: Node) -> datetime | None:
        """Return when consolidateAfter ends for a node; None if it never does, or is not set."""
        pool, claim = self.pools.get(node.pool), node.claim_record
        after = None if pool is None else pool.policy.consolidate_after
        if after is None or claim is None or not claim.conditions.is_true(INITIALIZED):
            return None
        return (claim.last_pod_event or changed(claim, INITIALIZED)) + after

    def _is_unsettled(self, node: Node) -> bool:
        quiet_at = self.quiet_at(node)
        if quiet_at is None or self.now >= quiet_at:
            return False
        return self.pools[node.pool].policy.consolidate_after != timedelta()
