"""What a step of a class asks of a single node, and which nodes have not refused it yet."""

from karpy.core.scheduling.bits import members
from karpy.core.scheduling.plannednodes import PlannedNodes
from karpy.core.scheduling.podclasses import PodClass, Reach, Step
from karpy.core.scheduling.signatures import NEVER, Signatures, Want
from karpy.core.scheduling.templates import Template
from karpy.model.pods import HostPort
from karpy.model.resources import Resources

_FEW = 8


class Ask:
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


class Asks:
    """The asks met so far; classes that ask alike share one."""

    def __init__(self, planned: PlannedNodes, signatures: Signatures) -> None:
        self._planned = planned
        self._signatures = signatures
        self._known: dict[object, Ask] = {}

    def of(self, pod_class: PodClass, step: Step) -> Ask:
        """Return the ask of a step of a class."""
        wants = step.wants
        ports = pod_class.pod.rules.ports
        attachments = pod_class.volumes.attachments
        wanted: object = wants[0].index if len(wants) == 1 else tuple(each.index for each in wants)
        key = (id(pod_class.requests), wanted, step.reach.index, ports, attachments)
        ask = self._known.get(key)
        if ask is None:
            ask = self._known[key] = Ask(pod_class.requests, wants, step.reach)
            ask.ports = ports
            ask.takes_any = step.takes_any_claim
            ask.is_sure = not attachments
            if self._planned.existing.count:
                free = self._planned.existing.free
                asked = pod_class.requests.items()
                ask.demands = [(free[name], amount) for name, amount in asked if amount > 0]
            ask.base = self._existing_alive(ask)
            self.renew(ask)
        return ask

    def renew(self, ask: Ask) -> None:
        """Forget what was learned about a ask since pods were placed."""
        planned = self._planned
        ask.alive, ask.seen = ask.base & planned.open_nodes, planned.existing.count
        ask.epoch = planned.epoch

    def refresh(self, ask: Ask) -> None:
        """Let the ask know of claims made since it was last used."""
        planned = self._planned
        size = planned.size
        if ask.takes_any:
            ask.alive |= (1 << size) - (1 << ask.seen)
            ask.seen = size
            return
        allowed = 0
        for want in ask.wants:
            if want.epoch != planned.epoch:
                want.claims, want.seen, want.epoch = 0, 0, planned.epoch
            if want.seen < size:
                self._catch_up(want)
            allowed |= want.claims
        allowed = allowed >> ask.seen << ask.seen
        if not ask.reach.has_every_template:
            reachable = 0
            for template in ask.reach.templates:
                reachable |= planned.by_template.get(template.index, 0)
            allowed &= reachable
        ask.alive |= allowed
        ask.seen = size

    def fresh(self, ask: Ask, template: Template) -> list[tuple[int, int]]:
        """Return what new claims of a template could be: signature and types."""
        options = ask.fresh.get(template.index)
        if options is None:
            options = ask.fresh[template.index] = self._fresh(ask, template)
        return options

    def is_hopeless(self, ask: Ask) -> bool:
        """Say whether nothing could ever take the ask."""
        return not any(want.is_patient for want in ask.wants) and not self.has_host(ask)

    def has_host(self, ask: Ask) -> bool:
        """Say whether an existing node or a new one could take the ask to begin with."""
        if ask.alive & self._planned.existing_mask:
            return True
        return any(self.fresh(ask, template) for template in ask.reach.templates)

    def _fresh(self, ask: Ask, template: Template) -> list[tuple[int, int]]:
        signatures = self._signatures
        roomy = template.roomy
        for resource, amount in ask.requests.items():
            roomy &= template.rooms[resource].reaching(amount)
        if ask.ports:
            roomy &= template.without_port_clash(ask.ports)
        if not roomy:
            return []
        options = []
        for want in ask.wants:
            signature = signatures.join(template.signature, want)
            if signature != NEVER and (types := roomy & signatures.masks[signature]):
                options.append((signature, types))
        return options

    def _existing_alive(self, ask: Ask) -> int:
        existing = self._planned.existing
        alive = ask.reach.nodes
        if not alive:
            return 0
        alive &= existing.with_room(ask.requests)
        if not alive:
            return 0
        matching = 0
        for want in ask.wants:
            if want.has_hostname:
                ask.is_sure = False
                return alive
            for label_set in existing.label_sets:
                if self._signatures.label_fits(label_set.labels, label_set.index, want):
                    matching |= label_set.nodes
        return alive & matching

    def _catch_up(self, want: Want) -> None:
        planned, signatures = self._planned, self._signatures
        start = max(want.seen, planned.existing.count)
        if not want.requirements or want.is_patient:
            want.claims |= (1 << planned.size) - (1 << start)
        elif planned.size - start <= _FEW:
            for node in range(start, planned.size):
                if signatures.join(planned.signature[node], want) != NEVER:
                    want.claims |= 1 << node
        else:
            joinable = signatures.joinable(want)
            found = 0
            for signature in members(joinable & planned.birth_signatures):
                found |= planned.born_as[signature]
            want.claims |= found >> start << start
        want.seen = planned.size
