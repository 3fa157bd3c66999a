"""The scratch state of one decision or what-if question: which pods are placed where so far."""

from collections.abc import Mapping, Sequence

from karpy.core.scheduling.launches import Launcher
from karpy.core.scheduling.limits import Limits, Reservations
from karpy.core.scheduling.packers.greedy import Packer
from karpy.core.scheduling.plannednodes import PlannedNodes
from karpy.core.scheduling.podclasses import PodClass
from karpy.core.scheduling.problem import Problem
from karpy.core.scheduling.topologygroups import DomainGroup
from karpy.core.scheduling.volumes import attachments_of
from karpy.model.pods import Pod
from karpy.model.settings import MinValuesPolicy, ReservedMode


class State:
    """The nodes, limits and reservations of a problem while pods are placed."""

    def __init__(self, problem: Problem, mode: ReservedMode, pods: int) -> None:
        """Take a prepared problem, and the most pods that are placed before an `undo`."""
        snapshot, offer = problem.snapshot, problem.offer
        settings = snapshot.settings
        self.problem = problem
        self.planned = planned = PlannedNodes(problem.existing, offer.signatures)
        for pod, node in problem.bound.demanding:
            rules = pod.rules
            if rules.ports:
                planned.take_ports(node, pod)
            if rules.volumes:
                planned.attach(node, attachments_of(pod, snapshot.storage))
        planned.tables = list(problem.topology.tables.values())
        planned.avoided = problem.topology.avoided
        planned.undo_log.clear()
        self.limits = Limits(offer.templates, snapshot.nodes, offer.table, pods)
        self.reservations = Reservations(offer.table, mode, is_enabled=settings.reserved_capacity)
        self.packer = Packer(planned, self.limits, self.reservations, offer.catalog, problem.effort)
        relaxes_variety = settings.min_values_policy is MinValuesPolicy.BEST_EFFORT
        self.packer.fitter.relaxes_variety = relaxes_variety
        self.launcher = Launcher(planned, offer.signatures, offer.catalog.reservation_label)

    def remove_nodes(
        self,
        nodes: Sequence[int],
        movers: Sequence[tuple[Pod, PodClass]],
        spreads: Mapping[DomainGroup, tuple[int, int]],
        mode: ReservedMode,
    ) -> None:
        """
        Take existing nodes away, and the pods to be moved out of all counts; `undo` reverts it.

        `spreads` are the domains of spreads that change without the nodes: `known`, and
        `by_other_terms`.
        """
        problem, planned, log = self.problem, self.planned, self.planned.undo_log
        number = problem.existing.number
        for node in nodes:
            planned.open_nodes &= ~(1 << node)
        self.limits.reset([problem.existing.nodes[node] for node in nodes])
        self.reservations.reset(mode)
        for spread, (known, there) in spreads.items():
            log.append((setattr, spread, "known", spread.known))
            log.append((setattr, spread, "by_other_terms", spread.by_other_terms))
            spread.known, spread.by_other_terms = known, there
        for pod, pod_class in movers:
            node = number.get(pod.node_name, -1)
            if node >= 0:
                log.extend(
                    problem.topology.uncount(pod, node, problem.planner.groups_counting(pod_class))
                )

    def undo(self) -> None:
        """Put removed nodes and counts back, and take placed pods back."""
        self.planned.undo()
        self.planned.open_nodes = self.planned.existing_mask
