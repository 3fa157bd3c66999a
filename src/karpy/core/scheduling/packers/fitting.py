"""Whether a node takes a pod, and what a claim becomes with it; the packer chooses the node."""

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from karpy.core.scheduling.effort import Effort
from karpy.core.scheduling.existing import attach_limits
from karpy.core.scheduling.instancetypes import members
from karpy.core.scheduling.limits import ReservationRefusal, Reservations
from karpy.core.scheduling.plannednodes import PlannedNodes
from karpy.core.scheduling.podclasses import DEAR_PERCENT, KeyRule, PodClass, Reach, Step
from karpy.core.scheduling.signatures import NEVER, PodRequirements, Signatures, reached, relax
from karpy.core.scheduling.templates import Template
from karpy.core.scheduling.topology import AnyGroup
from karpy.core.scheduling.topologygroups import DomainGroup, HostGroup
from karpy.model.instances import Catalog
from karpy.model.pods import HostPort, Pod
from karpy.model.resources import Resources

Choice: TypeAlias = tuple[KeyRule, int, bool]
"""A rule on a key, the domains that it allows now, and whether one of them must be chosen."""
ClaimChange: TypeAlias = tuple[int, int, frozenset[str], bool]
"""What a claim becomes with a pod: signature, types, reservations, and if minValues are lowered."""

HOLDS_NOTHING: Final[frozenset[str]] = frozenset()


class Ask:
    """
    What one or more pod classes ask of a single node, and which nodes may still meet it.

    An ask consists of requests, host ports, volume attachments, tolerations (as the reach) and
    alternative requirement sets; topology and reservations are no part of it. Nodes only get fuller
    while pods are placed: a node that cannot meet an ask is dropped from `alive` until the next
    epoch.
    """

    __slots__ = (
        "alive",
        "alternatives",
        "amounts",
        "base",
        "epoch",
        "fresh",
        "ports",
        "reach",
        "requests",
        "seen",
    )

    def __init__(
        self, requests: Resources, alternatives: tuple[PodRequirements, ...], reach: Reach
    ) -> None:
        self.requests = requests
        self.amounts: list[tuple[list[int], int]] = []
        """By resource: the free amounts of all existing nodes, and the requested amount."""
        self.alternatives = alternatives
        """Requirement sets, of which a node must meet one; volumes may allow several places."""
        self.reach = reach
        self.ports: tuple[HostPort, ...] = ()
        self.base = 0
        """Existing nodes that may meet the ask before any pod is placed, as bits."""
        self.epoch = 0
        """The epoch of the planned nodes in which `alive` and `seen` are valid."""
        self.alive = 0
        """Existing nodes and claims that may still meet the ask, as bits."""
        self.seen = 0
        """Nodes with a smaller number are considered in `alive`."""
        self.fresh: dict[int, list[tuple[int, int]]] = {}
        """By index of a template: signature and types of a new claim, one pair per alternative."""


class Asks:
    """All asks of a problem; classes that ask the same of a node share one."""

    def __init__(self, planned: PlannedNodes, signatures: Signatures) -> None:
        self._planned = planned
        self._signatures = signatures
        self._known: dict[object, Ask] = {}

    def of(self, pod_class: PodClass, step: Step) -> Ask:
        """Return the ask of a class at one of its steps."""
        alternatives = step.alternatives
        ports = pod_class.pod.rules.ports
        attachments = pod_class.volumes.attachments
        wanted: object = (
            alternatives[0].index
            if len(alternatives) == 1
            else tuple(each.index for each in alternatives)
        )
        key = (id(pod_class.requests), wanted, step.reach.index, ports, attachments)
        ask = self._known.get(key)
        if ask is None:
            ask = self._known[key] = Ask(pod_class.requests, alternatives, step.reach)
            ask.ports = ports
            if self._planned.existing.count:
                free = self._planned.existing.free
                asked = pod_class.requests.items()
                ask.amounts = [(free[name], amount) for name, amount in asked if amount > 0]
            ask.base = self._existing_alive(ask)
            self.renew(ask)
        return ask

    def renew(self, ask: Ask) -> None:
        """Set `alive` back to the existing nodes that may meet the ask, without claims."""
        planned = self._planned
        ask.alive, ask.seen = ask.base & planned.open_nodes, planned.existing.count
        ask.epoch = planned.epoch

    def refresh(self, ask: Ask) -> None:
        """Add the claims made since the last refresh to `alive`, if they may meet the ask."""
        planned = self._planned
        size = planned.size
        allowed = 0
        for required in ask.alternatives:
            if required.epoch != planned.epoch:
                required.claims, required.seen, required.epoch = 0, 0, planned.epoch
            if required.seen < size:
                self._catch_up(required)
            allowed |= required.claims
        allowed = allowed >> ask.seen << ask.seen
        if not ask.reach.has_every_template:
            reachable = 0
            for template in ask.reach.templates:
                reachable |= planned.by_template.get(template.index, 0)
            allowed &= reachable
        ask.alive |= allowed
        ask.seen = size

    def fresh(self, ask: Ask, template: Template) -> list[tuple[int, int]]:
        """Return signature and types of a new claim of a template, one pair per alternative."""
        options = ask.fresh.get(template.index)
        if options is None:
            options = ask.fresh[template.index] = self._fresh(ask, template)
        return options

    def is_hopeless(self, ask: Ask) -> bool:
        """Say whether neither an existing node nor a claim can ever meet the ask."""
        return not any(
            required.may_join_later for required in ask.alternatives
        ) and not self.has_host(ask)

    def has_host(self, ask: Ask) -> bool:
        """Say whether an existing node or a new claim can meet the ask."""
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
        for required in ask.alternatives:
            signature = signatures.join(template.signature, required)
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
        for required in ask.alternatives:
            if required.has_hostname:
                return alive
            for label_set in existing.label_sets:
                if self._signatures.label_fits(label_set.labels, label_set.index, required):
                    matching |= label_set.nodes
        return alive & matching

    def _catch_up(self, required: PodRequirements) -> None:
        planned, signatures = self._planned, self._signatures
        start = max(required.seen, planned.existing.count)
        if not required.requirements or required.may_join_later:
            required.claims |= (1 << planned.size) - (1 << start)
        else:
            joinable = signatures.joinable(required)
            found = 0
            for signature in members(joinable & planned.first_signatures):
                found |= planned.by_first_signature[signature]
            required.claims |= found >> start << start
        required.seen = planned.size


class Fitter:
    """Checks whether nodes take a pod, and places pods on nodes."""

    def __init__(
        self,
        planned: PlannedNodes,
        reservations: Reservations,
        catalog: Catalog,
        effort: Effort,
    ) -> None:
        self.planned = planned
        self.signatures: Signatures = planned.signatures
        self.reservations = reservations
        self.relaxes_variety = False
        """Whether minValues may be lowered for a new claim."""
        self._catalog = catalog
        self._effort = effort

    def accepts(self, pod_class: PodClass, ask: Ask, node: int) -> bool:
        """Say whether an existing node with enough room meets requirements and volume limits."""
        existing = self.planned.existing
        if pod_class.volumes.attachments and not self._is_attachable(node, pod_class):
            return False
        labels, label_set = existing.labels[node], existing.label_set_of[node]
        fits, alternatives = self.signatures.label_fits, ask.alternatives
        if len(alternatives) == 1:
            return fits(labels, label_set, alternatives[0])
        return any(fits(labels, label_set, required) for required in alternatives)

    def fit(
        self, pod_class: PodClass, ask: Ask, node: int, choices: list[Choice]
    ) -> ClaimChange | None:
        """Return what a claim becomes with the pod; drop a claim that cannot meet the ask."""
        planned = self.planned
        have = planned.types_left(node, ask.requests)
        before = planned.signature[node]
        if ask.ports and (template := planned.templates[node]) is not None:
            have &= template.without_port_clash(ask.ports)
        if pod_class.volumes.attachments:
            have &= self.types_attaching(node, pod_class)
        may_fit = False
        for required in ask.alternatives:
            signature = required.joined.get(before)
            if signature is None:
                signature = self.signatures.join(before, required)
            if signature == NEVER:
                may_fit = may_fit or required.may_join_later
                continue
            types = have & self.signatures.masks[signature]
            if types:
                may_fit = True
                change = self.choose_domains(signature, types, choices, planned.held[node])
                if change.__class__ is tuple and not self.signatures.adds_watched_label(
                    before, change[0]
                ):
                    return change
        if not may_fit:
            ask.alive ^= 1 << node
        return None

    def choose_domains(
        self, signature: int, types: int, choices: list[Choice], held: frozenset[str] | None
    ) -> ClaimChange | ReservationRefusal | None:
        """
        Return a claim with a pod, restricted to domains in which some type is left.

        `held` are the reservations of the claim, None if it is a new one.
        """
        if not choices:
            return self._vet(signature, types, held)
        refused: ReservationRefusal | None = None
        masks = self.signatures.masks
        for narrowed in self._narrowed(signature, types, choices):
            if left := types & masks[narrowed]:
                change = self._vet(narrowed, left, held)
                if isinstance(change, tuple):
                    return change
                refused = refused or change
        return refused

    def _narrowed(self, signature: int, types: int, choices: list[Choice]) -> Iterable[int]:
        """List the signatures with one choice of domains each, best choice first."""
        if len(choices) > 1:
            return self._combined(signature, types, choices)
        choice = choices[0]
        options = self._options(signature, types, choice)
        narrow = choice[0].table.narrow
        if len(options) == 1 and options[0]:
            return (narrow(signature, options[0]),)
        return [narrow(signature, domains) if domains else signature for domains in options]

    def _combined(self, signature: int, types: int, choices: list[Choice]) -> Iterator[int]:
        """Combine the domains of several keys, and skip combinations that leave no type."""
        options = [self._options(signature, types, choice) for choice in choices]
        if not all(options):
            return
        masks = self.signatures.masks
        path = [(iter(options[0]), signature)]
        while path:
            left, before = path[-1]
            domains = next(left, None)
            if domains is None:
                path.pop()
                continue
            self._effort.spend(1)
            narrowed = (
                choices[len(path) - 1][0].table.narrow(before, domains) if domains else before
            )
            if not types & masks[narrowed]:
                continue
            if len(path) == len(choices):
                yield narrowed
            else:
                path.append((iter(options[len(path)]), narrowed))

    def _options(self, signature: int, types: int, choice: Choice) -> list[int]:
        """List the domain sets of a key to try, best first; 0 leaves the key as it is."""
        rule, domains, is_pinned = choice
        possible = rule.table.of_signature(signature)
        allowed = domains & possible
        if allowed:
            if not is_pinned or not allowed & (allowed - 1):
                return [allowed]
            preferred = self.preferred(rule, allowed, signature, types)
            return [*preferred, allowed] if rule.is_optional else preferred
        return [0] if not possible and rule.allows_no_domain(signature) else []

    def preferred(self, rule: KeyRule, domains: int, signature: int, types: int) -> list[int]:
        """List domains (as bits) for a claim of some types, best first."""
        if not domains & (domains - 1):
            return [domains] if domains else []
        if self.signatures.table.is_even(DEAR_PERCENT):
            return rule.preferred(domains, None)
        narrow, lowest_price = rule.table.narrow, self.signatures.lowest_price
        return rule.preferred(
            domains, lambda domain: lowest_price(narrow(signature, domain), types)
        )

    def _vet(
        self, signature: int, types: int, held: frozenset[str] | None
    ) -> ClaimChange | ReservationRefusal | None:
        """Check minValues and reservations; return the claim, or why it is not possible."""
        is_relaxed = False
        if self.signatures.varieties[signature] and (
            lacking := reached(self.signatures, signature, types)
        ):
            if held is not None or not self.relaxes_variety:
                return None
            signature = relax(self.signatures, signature, lacking)
            is_relaxed = True
        if not self.reservations.is_active:
            return (signature, types, HOLDS_NOTHING, is_relaxed)
        offered = self.reservations.offer(self.signatures, signature, types, held or HOLDS_NOTHING)
        if isinstance(offered, ReservationRefusal):
            return offered
        return (signature, types, offered, is_relaxed)

    def add(self, pod_class: PodClass, node: int, change: ClaimChange, pod: Pod) -> None:
        """Place the pod on a claim, and change the claim accordingly."""
        planned = self.planned
        signature, types, held, is_relaxed = change
        planned.types[node] = types
        if signature != planned.signature[node]:
            planned.retype(node, signature)
        planned.relaxed[node] = planned.relaxed[node] or is_relaxed
        if planned.held[node] != held:
            self.reservations.hold(planned.held[node], held)
            planned.held[node] = held
        self.record(pod_class, node, pod)

    def record(self, pod_class: PodClass, node: int, pod: Pod) -> None:
        """Place the pod on a node that needs no other change."""
        planned = self.planned
        planned.put(node, pod, pod_class.requests)
        if pod_class.volumes.attachments:
            planned.attach(node, pod_class.volumes.attachments)
        if pod_class.is_counted:
            self.count(pod_class, node)

    def count(self, pod_class: PodClass, node: int) -> None:
        """Count a placed pod in all its groups."""
        for group in pod_class.counted:
            if group.filter is None or group.filter.accepts(self.planned.site(node)):
                self._count(group, node)
        for group in pod_class.owned_inverse:
            self._count(group, node)

    def _count(self, group: AnyGroup, node: int) -> None:
        planned = self.planned
        if isinstance(group, DomainGroup):
            if domain := planned.domain_of(group.domains, node):
                group.add(domain)
                planned.undo_log.append((group.remove, domain))
            else:
                planned.uncounted.setdefault(node, []).append(group)
        elif isinstance(group, HostGroup):
            group.add(node)
            planned.undo_log.append((group.remove, node))
        else:
            domains = planned.domains_in(group.domains, node)
            group.add(node, domains)
            planned.undo_log.append((group.remove, node, domains))

    def _is_attachable(self, node: int, pod_class: PodClass) -> bool:
        attachments = pod_class.volumes.attachments
        if not attachments:
            return True
        limits = attach_limits(self.planned.existing.nodes[node], self._catalog)
        for driver, count in self.planned.attached_with(node, attachments).items():
            limit = limits.get(driver)
            if limit is not None and count > limit:
                return False
        return True

    def types_attaching(self, node: int | None, pod_class: PodClass) -> int:
        """Return the types that can attach the volumes of a claim and of the pod, as bits."""
        counts = self.planned.attached_with(node, pod_class.volumes.attachments)
        mask = 0
        for bit, each in enumerate(self.signatures.table.types):
            limits = each.volume_limits
            if all(
                driver not in limits or count <= limits[driver] for driver, count in counts.items()
            ):
                mask |= 1 << bit
        return mask
