"""What a step of a class asks of a single node, and which nodes have not refused it yet."""

from karpy.core.scheduling.bits import members
from karpy.core.scheduling.newnodes import Fleet
from karpy.core.scheduling.podclasses import PodClass, Reach, Step
from karpy.core.scheduling.signatures import NEVER, Signatures, Want
from karpy.core.scheduling.templates import Template
from karpy.model.pods import HostPort
from karpy.model.resources import Resources

_FEW = 8


class Shape:
    """One kind of demand on a node."""

    __slots__ = (
        "alive",
        "base",
        "demands",
        "epoch",
        "fresh",
        "is_sure",
        "ports",
        "reach",
        "requests",
        "seen",
        "takes_any",
        "wants",
    )

    def __init__(self, requests: Resources, wants: tuple[Want, ...], reach: Reach) -> None:
        self.requests = requests
        self.demands: list[tuple[list[int], int]] = []
        """For each resource what existing nodes have left, and how much is asked for."""
        self.wants = wants
        self.reach = reach
        self.takes_any = False
        self.ports: tuple[HostPort, ...] = ()
        self.base = 0
        """Existing nodes that may take one before any pod is placed, as bits."""
        self.epoch = 0
        self.alive = 0
        """Nodes that may still take one, as bits."""
        self.is_sure = False
        """Whether existing nodes among them need nothing but room."""
        self.seen = 0
        self.fresh: dict[int, list[tuple[int, int]]] = {}
        """By template: signature and types of a new claim, for each alternative that has any."""


class Shapes:
    """The shapes met so far; classes that ask alike share one."""

    def __init__(self, fleet: Fleet, signatures: Signatures) -> None:
        self._fleet = fleet
        self._signatures = signatures
        self._known: dict[object, Shape] = {}

    def of(self, pod_class: PodClass, step: Step) -> Shape:
        """Return the shape of a step of a class."""
        wants = step.wants
        ports = pod_class.pod.rules.ports
        attachments = pod_class.volumes.attachments
        wanted: object = wants[0].index if len(wants) == 1 else tuple(each.index for each in wants)
        key = (id(pod_class.requests), wanted, step.reach.index, ports, attachments)
        shape = self._known.get(key)
        if shape is None:
            shape = self._known[key] = Shape(pod_class.requests, wants, step.reach)
            shape.ports = ports
            shape.takes_any = step.takes_any_claim
            shape.is_sure = not attachments
            if self._fleet.existing.count:
                free = self._fleet.existing.free
                asked = pod_class.requests.items()
                shape.demands = [(free[name], amount) for name, amount in asked if amount > 0]
            shape.base = self._existing_alive(shape)
            self.renew(shape)
        return shape

    def renew(self, shape: Shape) -> None:
        """Forget what was learned about a shape since pods were placed."""
        fleet = self._fleet
        shape.alive, shape.seen = shape.base & fleet.open_nodes, fleet.existing.count
        shape.epoch = fleet.epoch

    def refresh(self, shape: Shape) -> None:
        """Let the shape know of claims made since it was last used."""
        fleet = self._fleet
        size = fleet.size
        if shape.takes_any:
            shape.alive |= (1 << size) - (1 << shape.seen)
            shape.seen = size
            return
        allowed = 0
        for want in shape.wants:
            if want.epoch != fleet.epoch:
                want.claims, want.seen, want.epoch = 0, 0, fleet.epoch
            if want.seen < size:
                self._catch_up(want)
            allowed |= want.claims
        allowed = allowed >> shape.seen << shape.seen
        if not shape.reach.has_every_template:
            reachable = 0
            for template in shape.reach.templates:
                reachable |= fleet.by_template.get(template.index, 0)
            allowed &= reachable
        shape.alive |= allowed
        shape.seen = size

    def fresh(self, shape: Shape, template: Template) -> list[tuple[int, int]]:
        """Return what new claims of a template could be: signature and types."""
        options = shape.fresh.get(template.index)
        if options is None:
            options = shape.fresh[template.index] = self._fresh(shape, template)
        return options

    def is_hopeless(self, shape: Shape) -> bool:
        """Say whether nothing could ever take the shape."""
        return not any(want.is_patient for want in shape.wants) and not self.has_host(shape)

    def has_host(self, shape: Shape) -> bool:
        """Say whether an existing node or a new one could take the shape to begin with."""
        if shape.alive & self._fleet.existing_mask:
            return True
        return any(self.fresh(shape, template) for template in shape.reach.templates)

    def _fresh(self, shape: Shape, template: Template) -> list[tuple[int, int]]:
        signatures = self._signatures
        roomy = template.roomy
        for resource, amount in shape.requests.items():
            roomy &= template.rooms[resource].reaching(amount)
        if shape.ports:
            roomy &= template.without_port_clash(shape.ports)
        if not roomy:
            return []
        options = []
        for want in shape.wants:
            signature = signatures.join(template.signature, want)
            if signature != NEVER and (types := roomy & signatures.masks[signature]):
                options.append((signature, types))
        return options

    def _existing_alive(self, shape: Shape) -> int:
        existing = self._fleet.existing
        alive = shape.reach.nodes
        if not alive:
            return 0
        alive &= existing.with_room(shape.requests)
        if not alive:
            return 0
        matching = 0
        for want in shape.wants:
            if want.has_hostname:
                shape.is_sure = False
                return alive
            for label_set in existing.label_sets:
                if self._signatures.label_fits(label_set.labels, label_set.index, want):
                    matching |= label_set.nodes
        return alive & matching

    def _catch_up(self, want: Want) -> None:
        fleet, signatures = self._fleet, self._signatures
        start = max(want.seen, fleet.existing.count)
        if not want.requirements or want.is_patient:
            want.claims |= (1 << fleet.size) - (1 << start)
        elif fleet.size - start <= _FEW:
            for node in range(start, fleet.size):
                if signatures.join(fleet.signature[node], want) != NEVER:
                    want.claims |= 1 << node
        else:
            joinable = signatures.joinable(want)
            found = 0
            for signature in members(joinable & fleet.birth_signatures):
                found |= fleet.born_as[signature]
            want.claims |= found >> start << start
        want.seen = fleet.size
