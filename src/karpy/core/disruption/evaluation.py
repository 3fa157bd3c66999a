"""One snapshot with what disruption methods derive from it; each derived value is made once."""

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
    """The reason why a pod may not be evicted, and the PodDisruptionBudgets that forbid it."""

    why: NodeReason
    budgets: tuple[str, ...]


class PodDisruptionBudgets:
    """The PodDisruptionBudgets of a cluster, indexed by namespace."""

    def __init__(self, budgets: Iterable[DisruptionBudget]) -> None:
        self._by_namespace: dict[str, list[DisruptionBudget]] = {}
        for each in sorted(budgets, key=lambda each: each.key):
            self._by_namespace.setdefault(each.namespace, []).append(each)

    @property
    def is_empty(self) -> bool:
        return not self._by_namespace

    def why_not_evicted(self, pod: Pod, now: datetime) -> Blocked | None:
        """
        Return the budgets that forbid the eviction of a pod now, or None.

        Budgets do not matter for a pod that a drain does not evict.
        """
        in_namespace = self._by_namespace.get(pod.namespace)
        if in_namespace is None:
            return None
        covering = [each for each in in_namespace if each.covers(pod)]
        if not covering or not is_evictable(pod, now):
            return None
        if len(covering) > 1:
            # The API server evicts no pod that two budgets cover, whatever these budgets allow.
            return Blocked(NodeReason.POD_BUDGETS, tuple(each.key for each in covering))
        budget = covering[0]
        if pod.is_unready and budget.allows_unready:
            return None
        if budget.disruptions_allowed:
            return None
        return Blocked(NodeReason.POD_BUDGET, (budget.key,))


class Evaluation:
    """
    Everything that disruption methods derive from one snapshot.

    Only memos change here: the same call has the same result at any time.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        previous: "Evaluation | None" = None,
        put_off: frozenset[str] = frozenset(),
    ) -> None:
        """Take a snapshot; reuse what the previous evaluation derived from equal objects."""
        self.snapshot = snapshot
        self.put_off = put_off
        """Names of nodes that earlier passes had no time for: methods consider these first."""
        self.pools: Mapping[str, NodePool] = {each.name: each for each in snapshot.pools}
        self.nodes: Mapping[str, Node] = {each.claim: each for each in snapshot.nodes if each.claim}
        """Nodes by the name of their NodeClaim."""
        self.costs = Costs(reads_deletion_cost=not snapshot.settings.manages_deletion_cost)
        self.budgets = PodDisruptionBudgets(snapshot.budgets)
        self._pods_on: dict[str, list[Pod]] | None = None
        self._reschedulable: dict[str, tuple[tuple[Pod, ...], int]] = {}
        self._problem: Problem | None = None
        # Keep only the problem of the previous evaluation: a reference to the evaluation itself
        # would keep all earlier ones in memory.
        self._earlier = None if previous is None else previous.latest_problem
        self._effort = Effort()
        self._what_if: WhatIf | None = None
        self._prices: Prices | None = None
        self._unsettled: frozenset[str] | None = None
        self._awaiting_pods: frozenset[str] | None = None
        self._rollouts: frozenset[ReplicaSet] | None = None
        self._is_scaling_out: bool | None = None

    def begin(self, keep_going: KeepGoing | None) -> None:
        """Stop the solver when `keep_going` returns False; forget answers that were cut short."""
        self._effort.begin(keep_going)
        if self.was_cut:
            self._problem = self._what_if = None
        if self._what_if is not None:
            self._what_if.answered.clear()

    @property
    def was_cut(self) -> bool:
        """Whether the solver ran out of time before it answered a question."""
        return self._what_if is not None and self._what_if.was_cut

    @property
    def answered(self) -> frozenset[str]:
        """Names of the nodes for which the solver has answered a question since `begin`."""
        return frozenset() if self._what_if is None else frozenset(self._what_if.answered)

    def take_failures(self) -> list[KarpyError]:
        """Return the errors of the solver since the last call, and forget them."""
        failures = [] if self._what_if is None else self._what_if.failures
        taken, failures[:] = [*failures], []
        return taken

    @property
    def now(self) -> datetime:
        return self.snapshot.now

    @property
    def prices(self) -> Prices:
        """The prices of nodes and of their possible replacements."""
        if self._prices is None:
            self._prices = Prices(self.snapshot.catalog)
        return self._prices

    @property
    def what_if(self) -> WhatIf:
        """The solver that answers where the pods of nodes go when these nodes are deleted."""
        if self._what_if is None:
            self._what_if = WhatIf(self.problem)
        return self._what_if

    @property
    def problem(self) -> Problem:
        """The snapshot in the form that the solver reads."""
        if self._problem is None:
            self._problem = Problem.of(self.snapshot, self._earlier, self._effort)
            self._earlier = None
        return self._problem

    @property
    def latest_problem(self) -> Problem | None:
        """The last problem that was made: of this snapshot, or of an earlier one."""
        return self._problem or self._earlier

    @property
    def unsettled(self) -> frozenset[str]:
        """Names of nodes with a pod event within consolidateAfter: no pod is moved there."""
        if self._unsettled is None:
            self._unsettled = frozenset(
                each.name for each in self.snapshot.nodes if self._is_unsettled(each)
            )
        return self._unsettled

    # Differs: the new replacement of a node that is being drained: Karpenter may plan pods of the
    # next node on the replacement; Karpy keeps its room until the evicted pods are bound to it.
    @property
    def awaiting_pods(self) -> frozenset[str]:
        """Names of nominated nodes without pods yet: no pods of other nodes are moved there."""
        if self._awaiting_pods is None:
            self._awaiting_pods = frozenset(
                each.name
                for each in self.snapshot.nodes
                if each.is_nominated(self.now)
                and not any(pod.is_reschedulable for pod in self.pods_on(each))
            )
        return self._awaiting_pods

    @property
    def is_scaling_out(self) -> bool:
        """Whether nodes for pending pods are being launched."""
        if self._is_scaling_out is None:
            self._is_scaling_out = is_scaling_out(self.snapshot)
        return self._is_scaling_out

    def first_in_rollout(self, pods: Iterable[Pod]) -> Pod | None:
        """Return the first of these pods that a rollout of its Deployment is about to replace."""
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

    def reschedulable_on(self, node: Node) -> tuple[tuple[Pod, ...], int]:
        """Return the reschedulable pods on a node, and what it costs to move them."""
        found = self._reschedulable.get(node.name)
        if found is None:
            pods = tuple([pod for pod in self.pods_on(node) if pod.is_reschedulable])
            found = self._reschedulable[node.name] = pods, self.costs.of_moving(pods)
        return found

    def consolidatable_at(self, node: Node) -> datetime | None:
        """Return when consolidateAfter ends for a node; None if never, or if unknown."""
        pool, claim = self.pools.get(node.pool), node.claim_record
        after = None if pool is None else pool.policy.consolidate_after
        if after is None or claim is None or not claim.conditions.is_true(INITIALIZED):
            return None
        return (claim.last_pod_event or changed(claim, INITIALIZED)) + after

    def _is_unsettled(self, node: Node) -> bool:
        consolidatable_at = self.consolidatable_at(node)
        if consolidatable_at is None or self.now >= consolidatable_at:
            return False
        return self.pools[node.pool].policy.consolidate_after != timedelta()
