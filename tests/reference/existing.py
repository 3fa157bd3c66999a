"""Existing nodes, and nodes being launched (section 3)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from karpy.model.constraints import TOLERATE_PREFERENCES, first_untolerated
from karpy.model.instances import InstanceType
from karpy.model.labels import INSTANCE_TYPE
from karpy.model.nodes import Node
from karpy.model.pods import DAEMON_SET, DaemonSet, HostPort, Pod
from karpy.model.requirements import Requirements, why_incompatible
from karpy.model.resources import Resources, add, fits, subtract
from karpy.model.snapshot import Snapshot
from tests.reference.attempt import Attempt
from tests.reference.ladder import alternatives
from tests.reference.templates import daemon_order
from tests.reference.topology import Place, Topology, node_requirements
from tests.reference.volumes import Attachments, attachments, clash, exceeds, together


@dataclass
class Existing:
    """A node with its free resources."""

    node: Node
    requirements: Requirements
    left: dict[str, int]
    ports: list[HostPort]
    volumes: Attachments
    volume_limits: Mapping[str, int | None]
    placed: list[Pod] = field(default_factory=list)

    def accepts(self, attempt: Attempt, topology: Topology) -> bool:
        rules = attempt.rules
        if first_untolerated(self.node.taints, rules.tolerations):
            return False
        volumes = together(self.volumes, attempt.attachments)
        mine = {driver: volumes[driver] for driver in attempt.attachments}
        if exceeds(mine, self.volume_limits):
            return False
        if clash(rules.ports, self.ports) or not fits(attempt.pod.requests, self.left):
            return False
        if why_incompatible(self.requirements, attempt.full):
            return False
        return any(
            why_incompatible(self.requirements, {**alternative}) is None
            for alternative in attempt.volume_alternatives
        ) and any(
            why_incompatible(self.requirements, choice) is None
            for choice in topology.choices(attempt.pod, rules, self.requirements)
        )

    def add(self, attempt: Attempt, topology: Topology) -> None:
        self.placed.append(attempt.pod)
        self.left = subtract(self.left, attempt.pod.requests)
        self.ports += attempt.rules.ports
        self.volumes = together(self.volumes, attempt.attachments)
        topology.record(
            Place(attempt.pod, self.requirements, self.node.taints, lambda: self.requirements)
        )


def existing_nodes(
    snapshot: Snapshot, types: dict[str, tuple[InstanceType, ...]]
) -> list[Existing]:
    """Return the nodes that can take pods, initialized ones first, then by name."""
    nodes = [node for node in snapshot.nodes if not node.is_deleting]
    nodes.sort(key=lambda node: (not node.is_initialized, node.name))
    return [_existing(node, snapshot, types) for node in nodes]


def _existing(
    node: Node, snapshot: Snapshot, types: dict[str, tuple[InstanceType, ...]]
) -> Existing:
    bound = [pod for pod in snapshot.pods if pod.node_name == node.name and not pod.is_terminal]
    requirements = node_requirements(node)
    expected: Resources = {}
    running = add(*(pod.requests for pod in bound if pod.is_owned_by(DAEMON_SET)))
    coming = [each for each in snapshot.daemons if _runs_on(each, node, requirements)]
    everything = add(*(each.pod.requests for each in coming))
    if _has_room(node, _more_than(everything, running)):
        expected = everything
    else:
        # No room is kept for a DaemonSet pod that is too large for the node.
        for each in sorted(coming, key=lambda each: daemon_order(each.pod)):
            more = add(expected, each.pod.requests)
            expected = more if _has_room(node, more) else expected
    to_come = _more_than(expected, running)
    fallback: Mapping[str, int | None] = {}
    for kind in types.get(node.pool, snapshot.catalog.types_for(node.pool)) if node.pool else ():
        if kind.name == node.labels.get(INSTANCE_TYPE):
            fallback = kind.volume_limits
    return Existing(
        node=node,
        requirements=requirements,
        left=_left(node.allocatable, add(to_come, *(pod.requests for pod in bound))),
        ports=[port for pod in bound for port in pod.rules.ports],
        volumes=together(*(attachments(pod, snapshot.storage) for pod in bound)),
        volume_limits={**fallback, **node.volume_limits},
    )


def _more_than(expected: Resources, running: Resources) -> dict[str, int]:
    return {name: max(0, amount) for name, amount in subtract(expected, running).items()}


def _has_room(node: Node, requests: Resources) -> bool:
    there = node.allocatable
    return all(amount <= there.get(name, amount) for name, amount in requests.items())


def _left(there: Resources, taken: Resources) -> dict[str, int]:
    return {name: amount - taken.get(name, 0) for name, amount in there.items()}


def _runs_on(daemon: DaemonSet, node: Node, requirements: Requirements) -> bool:
    rules = daemon.pod.rules
    if first_untolerated(node.taints, (*rules.tolerations, TOLERATE_PREFERENCES)):
        return False
    return any(why_incompatible(requirements, each) is None for each in alternatives(rules))
