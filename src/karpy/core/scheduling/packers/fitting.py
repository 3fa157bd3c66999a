"""Whether and how a node takes a pod: what any packer needs to know before it chooses."""

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from karpy.core.scheduling.effort import Effort
from karpy.core.scheduling.existing import attach_limits
from karpy.core.scheduling.instancetypes import members
from karpy.core.scheduling.limits import Refused, Reservations
from karpy.core.scheduling.plannednodes import PlannedNodes
from karpy.core.scheduling.podclasses import DEAR_PERCENT, KeyRule, PodClass, Reach, Step
from karpy.core.scheduling.signatures import NEVER, Signatures, Want, reached, relax
from karpy.core.scheduling.templates import Template
from karpy.core.scheduling.topology import AnyGroup
from karpy.core.scheduling.topologygroups import DomainGroup, HostGroup
from karpy.model.instances import Catalog
from karpy.model.pods import HostPort, Pod
from karpy.model.resources import Resources

Choice: TypeAlias = tuple[KeyRule, int, bool]
"""A key, the domains of it that are open now, and whether one of them must be chosen."""
Settled: TypeAlias = tuple[int, int, frozenset[str], bool]
"""What a claim would be with one more pod: signature, types, reservations, minValues lowered."""

HOLDS_NOTHING: Final[frozenset[str]] = frozenset()


class Ask:
    """One kind of demand on a node."""

    __slots__ = (
        "alive",
        "base",
        "demands",
        "epoch",
        "fresh",
        "ports",
        "reach",
        "requests",
        "seen",
        "wants",
    )

    def __init__(self, requests: Resources, wants: tuple[Want, ...], reach: Reach) -> None:
        self.requests = requests
        self.demands: list[tuple[list[int], int]] = []
        """For each resource what existing nodes have left, and how much is asked for."""
        self.wants = wants
        self.reach = reach
        self.ports: tuple[HostPort, ...] = ()
        self.base = 0
        """Existing nodes that may take one before any pod is placed, as bits."""
        self.epoch = 0
        self.alive = 0
        """Nodes that may still take one, as bits."""
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
        else:
            joinable = signatures.joinable(want)
            found = 0
            for signature in members(joinable & planned.birth_signatures):
                found |= planned.born_as[signature]
            want.claims |= found >> start << start
        want.seen = planned.size


class Fitter:
    """Tries pods on nodes and puts them there."""

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
        """Say whether an existing node with enough room takes the pod."""
        existing = self.planned.existing
        if pod_class.volumes.attachments and not self._is_attachable(node, pod_class):
            return False
        labels, label_set = existing.labels[node], existing.label_set_of[node]
        fits, wants = self.signatures.label_fits, ask.wants
        if len(wants) == 1:
            return fits(labels, label_set, wants[0])
        return any(fits(labels, label_set, want) for want in wants)

    def fit(
        self, pod_class: PodClass, ask: Ask, node: int, choices: list[Choice]
    ) -> Settled | None:
        """Return what a claim would be with the pod; drop it from the ask if it never can be."""
        planned = self.planned
        have = planned.types_left(node, ask.requests)
        before = planned.signature[node]
        if ask.ports and (template := planned.templates[node]) is not None:
            have &= template.without_port_clash(ask.ports)
        if pod_class.volumes.attachments:
            have &= self.types_attaching(node, pod_class)
        may_fit = False
        for want in ask.wants:
            signature = want.joined.get(before)
            if signature is None:
                signature = self.signatures.join(before, want)
            if signature == NEVER:
                may_fit = may_fit or want.is_patient
                continue
            types = have & self.signatures.masks[signature]
            if types:
                may_fit = True
                settled = self.settle(signature, types, choices, planned.held[node])
                if settled.__class__ is tuple and not self.signatures.bestows(before, settled[0]):
                    return settled
        if not may_fit:
            ask.alive ^= 1 << node
        return None

    def settle(
        self, signature: int, types: int, choices: list[Choice], held: frozenset[str] | None
    ) -> Settled | Refused | None:
        """Choose domains so that some type is left; `held` is None for a claim yet to be made."""
        if not choices:
            return self._vet(signature, types, held)
        refused: Refused | None = None
        masks = self.signatures.masks
        for narrowed in self._narrowed(signature, types, choices):
            if left := types & masks[narrowed]:
                settled = self._vet(narrowed, left, held)
                if isinstance(settled, tuple):
                    return settled
                refused = refused or settled
        return refused

    def _narrowed(self, signature: int, types: int, choices: list[Choice]) -> Iterable[int]:
        """List the signatures that come of choosing domains, first choice first."""
        if len(choices) > 1:
            return self._combined(signature, types, choices)
        choice = choices[0]
        options = self._options(signature, types, choice)
        narrow = choice[0].table.narrow
        if len(options) == 1 and options[0]:
            return (narrow(signature, options[0]),)
        return [narrow(signature, domains) if domains else signature for domains in options]

    def _combined(self, signature: int, types: int, choices: list[Choice]) -> Iterator[int]:
        """Choose key by key, and go on only where types are left: there may be many keys."""
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
        """List the sets of domains of a key to try, first choice first; 0 is no set at all."""
        rule, domains, is_pinned = choice
        possible = rule.table.of_signature(signature)
        allowed = domains & possible
        if allowed:
            if not is_pinned or not allowed & (allowed - 1):
                return [allowed]
            preferred = self.preferred(rule, allowed, signature, types)
            return [*preferred, allowed] if rule.is_optional else preferred
        return [0] if not possible and rule.is_free_in_no_domain(signature) else []

    def preferred(self, rule: KeyRule, domains: int, signature: int, types: int) -> list[int]:
        """List domains for a claim of some types as bits, first choice first."""
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
    ) -> Settled | Refused | None:
        """See to minValues and reservations."""
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
        if isinstance(offered, Refused):
            return offered
        return (signature, types, offered, is_relaxed)

    def add(self, pod_class: PodClass, node: int, settled: Settled, pod: Pod) -> None:
        """Put the pod on a claim that becomes what was settled."""
        planned = self.planned
        planned.types[node] = settled[1]
        if settled[0] != planned.signature[node]:
            planned.retype(node, settled[0])
        _, _, held, is_relaxed = settled
        planned.relaxed[node] = planned.relaxed[node] or is_relaxed
        if planned.held[node] != held:
            self.reservations.hold(planned.held[node], held)
            planned.held[node] = held
        self.record(pod_class, node, pod)

    def record(self, pod_class: PodClass, node: int, pod: Pod) -> None:
        planned = self.planned
        planned.put(node, pod, pod_class.requests)
        if pod_class.volumes.attachments:
            planned.attach(node, pod_class.volumes.attachments)
        if pod_class.is_counted:
            self.count(pod_class, node)

    def count(self, pod_class: PodClass, node: int) -> None:
        """Let all groups know that a pod was placed."""
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
