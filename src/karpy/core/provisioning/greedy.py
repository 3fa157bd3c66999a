"""
Who chooses the node: Karpenter's order, first fit.

Existing nodes by name, then claims with the fewest pods, then a new claim of the first NodePool that
can make one. Everything else (classes, masks, signatures, topology, verdict) is shared with any other
packer.
"""

from bisect import bisect_left
from collections.abc import Sequence
from enum import Enum
from itertools import product
from typing import Final, TypeAlias

from karpy.core.provisioning.existing import attach_limits
from karpy.core.provisioning.fleet import Fleet
from karpy.core.provisioning.groups import AvoidedGroup, HostGroup, Kind
from karpy.core.provisioning.limits import Limits
from karpy.core.provisioning.reservations import Refused, Reservations
from karpy.core.provisioning.shapes import Shape, Shapes
from karpy.core.provisioning.signatures import NEVER, Signatures
from karpy.core.provisioning.steps import (
    FOR_GOOD,
    Failure,
    KeyRule,
    PodClass,
    Step,
    Versioned,
)
from karpy.core.provisioning.variety import reached, relax
from karpy.model.instances import Catalog
from karpy.model.pods import Pod
from karpy.model.pools import NodePool



class Outcome(Enum):
    """What became of a try."""

    PLACED = "placed"
    REFUSED = "refused"
    WAITS = "waits for a reservation"


Choice: TypeAlias = tuple[KeyRule, int, bool]
"""A key, the domains of it that are open now, and whether one of them must be chosen."""

Settled: TypeAlias = tuple[int, int, frozenset[str], bool]
"""What a claim would be with one more pod: signature, types, reservations, minValues lowered."""

_HOLDS_NOTHING: Final[frozenset[str]] = frozenset()


class Packer:
    """Places pods one after the other; keeps no state but the fleet's."""

    def __init__(self, fleet: Fleet, limits: Limits, reservations: Reservations, catalog: Catalog) -> None:
        self.fleet = fleet
        self.signatures: Signatures = fleet.signatures
        self.shapes = Shapes(fleet, fleet.signatures)
        self.limits = limits
        self.reservations = reservations
        self.relaxes_variety = False
        self.is_plain = False
        """Whether neither minValues nor reservations have a say."""
        self._catalog = catalog

    def use(self, pools: Sequence[NodePool], *, relaxes_variety: bool) -> None:
        """Learn which pools take part, and whether minValues may be lowered for a new claim."""
        self.relaxes_variety = relaxes_variety
        self.is_plain = not self.reservations.is_active and not any(
            requirement.min_values for pool in pools for requirement in pool.requirements
        )

    def place(self, pod_class: PodClass, pod: Pod) -> Outcome:
        """Find a place for one pod, letting go of preferences as needed."""
        if pod_class.is_hopeless:
            return Outcome.REFUSED
        if pod_class.is_simple and self._place_simply(pod_class, pod):
            return Outcome.PLACED
        if pod_class.reopening is not None and self._open_again(pod_class, pod):
            return Outcome.PLACED
        failures = pod_class.failures
        for index, step in enumerate(pod_class.steps):
            failure = failures[index]
            if failure is not None and not failure.may_have_passed():
                continue
            outcome = self._attempt(pod_class, index, step, pod)
            if outcome is Outcome.PLACED or outcome is Outcome.WAITS:
                return outcome
            failures[index] = self._failure(step, pod_class.shapes[index])
        pod_class.is_hopeless = all(failure is FOR_GOOD for failure in failures)
        return Outcome.REFUSED

    def _place_simply(self, pod_class: PodClass, pod: Pod) -> bool:
        """Do what `_attempt` does on claims, for pods that ask for nothing but room and labels."""
        fleet, shape = self.fleet, pod_class.shapes[0] or self.shape_of(pod_class, 0)
        if not self.is_plain or shape.alive & fleet.existing_mask:
            return False
        if shape.seen < fleet.size:
            self.shapes.refresh(shape)
        claims, by_count, masks = shape.alive, fleet.by_count, self.signatures.masks
        joined, requests = shape.wants[0].joined, shape.requests
        for count in fleet.counts if claims else ():
            candidates = by_count[count] & claims
            for node in fleet.ordered(count, candidates) if candidates else ():
                have, used, rooms = fleet.types[node], fleet.used[node], fleet.rooms[node]
                for resource, amount in requests.items():
                    room = rooms.get(resource) or fleet.room(node, resource)
                    have &= room.at_least[bisect_left(room.values, used.get(resource, 0) + amount)]
                signature = joined.get(fleet.signature[node])
                if signature is None:
                    signature = self.signatures.join(fleet.signature[node], shape.wants[0])
                have &= masks[signature] if signature != NEVER else 0
                if have:
                    fleet.types[node] = have
                    if signature != fleet.signature[node]:
                        fleet.retype(node, signature)
                    if pod_class.is_counted:
                        self._record(pod_class, node, pod)
                    else:
                        fleet.put(node, pod, requests)
                    return True
                shape.alive ^= 1 << node
        return False

    def _open_again(self, pod_class: PodClass, pod: Pod) -> bool:
        """Make one more claim like the last, if nothing has happened since and it must stand alone."""
        index, template, settled, moment = pod_class.reopening
        if moment != self.fleet.moment:
            return False
        for failure in pod_class.failures[:index]:
            if failure is None or failure.may_have_passed():
                return False
        node = self.fleet.open_claim(template, settled[0], settled[1])
        self._record(pod_class, node, pod)
        pod_class.reopening = (index, template, settled, self.fleet.moment)
        return True

    def _failure(self, step: Step, shape: Shape | None) -> Failure:
        """Remember what would have to change for the step to succeed."""
        if shape is not None and self.shapes.is_hopeless(shape):
            return FOR_GOOD
        if self.reservations.is_active:
            return Failure(None)
        blockers: list[Versioned] = [*step.watched]
        for rule in step.keys:
            if not rule.is_optional and not rule.open_domains()[0]:
                blockers = [*rule.blockers()]
                break
        if step.is_patient:
            blockers.append(self.fleet.gains)
        return Failure(blockers) if blockers else FOR_GOOD

    def shape_of(self, pod_class: PodClass, index: int) -> Shape:
        """Return the shape of one step of a class."""
        shape = pod_class.shapes[index]
        if shape is None:
            shape = pod_class.shapes[index] = self.shapes.of(pod_class, pod_class.steps[index])
        return shape

    def is_hopeless(self, pod_class: PodClass) -> bool:
        """Say whether no step of a class could be met even by a node made for it."""
        return all(
            self.shapes.is_hopeless(self.shape_of(pod_class, index))
            for index in range(len(pod_class.steps))
        )

    def _attempt(self, pod_class: PodClass, index: int, step: Step, pod: Pod) -> Outcome:
        choices: list[Choice] = []
        for rule in step.keys:
            domains, is_pinned = rule.open_domains()
            if not domains and not rule.is_optional:
                return Outcome.REFUSED
            choices.append((rule, domains, is_pinned))
        shape = pod_class.shapes[index]
        if shape is None:
            shape = self.shape_of(pod_class, index)
        if shape.seen < self.fleet.size:
            self.shapes.refresh(shape)
        candidates = self._candidates(step, shape, choices)
        if candidates:
            if existing := candidates & self.fleet.existing_mask:
                if self._place_on_existing(pod_class, shape, existing, pod):
                    return Outcome.PLACED
                candidates ^= existing
            if candidates and self._place_on_claim(pod_class, shape, candidates, choices, pod):
                return Outcome.PLACED
        outcome = self._open_claim(pod_class, step, shape, choices, pod)
        if outcome is Outcome.PLACED and step.is_exclusive:
            self._remember_opening(pod_class, index)
        return outcome

    def _remember_opening(self, pod_class: PodClass, index: int) -> None:
        fleet = self.fleet
        template = fleet.templates[-1]
        if template is not None and self.is_plain and self.limits.types_within(template.name) == -1:
            settled = (fleet.signature[-1], fleet.types[-1], _HOLDS_NOTHING, False)
            pod_class.reopening = (index, template, settled, fleet.moment)

    def _candidates(self, step: Step, shape: Shape, choices: list[Choice]) -> int:
        """Return the nodes that have not said no, and where the pod's neighbours allow it."""
        candidates: int = shape.alive
        for group, is_selected in step.hosts:
            if group.kind is Kind.AFFINITY:
                candidates &= hosts_open(group, is_selected)
            elif blocked := hosts_blocked(group, is_selected):
                candidates ^= candidates & blocked
        for rule, domains, _ in choices:
            table = rule.table
            if rule.is_optional:
                candidates &= table.nodes_in(domains) | ~table.anywhere
            elif rule.may_appear:
                claims_without = ~table.anywhere & ~self.fleet.existing_mask
                candidates &= table.nodes_in(domains) | claims_without
            else:
                candidates &= table.nodes_in(domains)
        if candidates and shape.ports:
            candidates &= ~self.fleet.with_port_clash(shape.ports)
        return candidates

    def _place_on_existing(self, pod_class: PodClass, shape: Shape, nodes: int, pod: Pod) -> bool:
        existing = self.fleet.existing
        requests = tuple(shape.requests.items())
        while nodes:
            low = nodes & -nodes
            nodes ^= low
            node = low.bit_length() - 1
            left = existing.free[node]
            for resource, amount in requests:
                if left.get(resource, 0) < amount:
                    shape.alive ^= low
                    break
            else:
                if self._accepts(pod_class, shape, node):
                    self._record(pod_class, node, pod)
                    return True
                shape.alive ^= low
        return False

    def _accepts(self, pod_class: PodClass, shape: Shape, node: int) -> bool:
        """Say whether an existing node with enough room takes the pod."""
        existing = self.fleet.existing
        if pod_class.volumes.attachments and not self._is_attachable(node, pod_class):
            return False
        labels, label_set = existing.labels[node], existing.label_set_of[node]
        return any(self.signatures.label_fits(labels, label_set, want) for want in shape.wants)

    def _place_on_claim(
        self, pod_class: PodClass, shape: Shape, claims: int, choices: list[Choice], pod: Pod
    ) -> bool:
        fleet = self.fleet
        by_count = fleet.by_count
        for count in fleet.counts:
            candidates = by_count[count] & claims
            if not candidates:
                continue
            claims ^= candidates
            for node in fleet.ordered(count, candidates):
                settled = self._fit(pod_class, shape, node, choices)
                if settled is not None:
                    self._add(pod_class, node, settled, pod)
                    return True
            if not claims:
                break
        return False

    def _fit(
        self, pod_class: PodClass, shape: Shape, node: int, choices: list[Choice]
    ) -> Settled | None:
        """Return what a claim would be with the pod; drop it from the shape if it never can be."""
        fleet = self.fleet
        have = fleet.types[node]
        used = fleet.used[node]
        before = fleet.signature[node]
        rooms = fleet.rooms[node]
        for resource, amount in shape.requests.items():
            room = rooms.get(resource) or fleet.room(node, resource)
            have &= room.at_least[bisect_left(room.values, used.get(resource, 0) + amount)]
        template = fleet.templates[node]
        if shape.ports and template is not None:
            have &= template.without_port_clash(shape.ports)
        if pod_class.volumes.attachments:
            have &= self.types_attaching(node, pod_class)
        may_fit = False
        for want in shape.wants:
            signature = want.joined.get(before)
            if signature is None:
                signature = self.signatures.join(before, want)
            if signature == NEVER:
                may_fit = may_fit or want.is_patient
                continue
            types = have & self.signatures.masks[signature]
            if types:
                may_fit = True
                settled = self._settle(signature, types, choices, fleet.held[node])
                if settled.__class__ is tuple:
                    return settled
        if not may_fit:
            shape.alive ^= 1 << node
        return None

    def _open_claim(
        self, pod_class: PodClass, step: Step, shape: Shape, choices: list[Choice], pod: Pod
    ) -> Outcome:
        for group, is_selected in step.hosts:
            if not fresh_host_open(group, is_selected):
                return Outcome.REFUSED
        for template in step.reach.templates:
            options = shape.fresh.get(template.index)
            if options is None:
                options = self.shapes.fresh(shape, template)
            within = self.limits.types_within(template.name) if options else 0
            if pod_class.volumes.attachments:
                within &= self.types_attaching(None, pod_class)
            has_to_wait = False
            for signature, types in options:
                left = types if within == -1 else types & within
                if not left:
                    continue
                settled = self._settle(signature, left, choices, None)
                has_to_wait = has_to_wait or settled is Refused.WAIT
                if isinstance(settled, tuple):
                    node = self.fleet.open_claim(template, settled[0], settled[1])
                    self.limits.spend(template.name, settled[1])
                    self._add(pod_class, node, settled, pod)
                    return Outcome.PLACED
            if has_to_wait:
                return Outcome.WAITS
        return Outcome.REFUSED

    def _settle(
        self, signature: int, types: int, choices: list[Choice], held: frozenset[str] | None
    ) -> Settled | Refused | None:
        """Choose domains so that some type is left; `held` is None for a claim yet to be made."""
        if not choices:
            if self.is_plain:
                return (signature, types, _HOLDS_NOTHING, False)
            return self._vet(signature, types, held)
        options: list[list[int]] = []
        for rule, domains, is_pinned in choices:
            possible = rule.table.of_signature(signature)
            allowed = domains & possible
            if allowed:
                options.append(rule.preferred(allowed) if is_pinned else [allowed])
                if is_pinned and rule.is_optional:
                    options[-1].append(allowed)
            elif not possible and rule.is_free_in_no_domain(signature):
                options.append([0])
            else:
                return None
        masks, refused = self.signatures.masks, None
        for combination in product(*options) if len(options) > 1 else zip(options[0]):
            narrowed = signature
            for choice, domains in zip(choices, combination):
                if domains:
                    narrowed = choice[0].table.narrow(narrowed, domains)
            left = types & masks[narrowed]
            if left:
                if self.is_plain:
                    return (narrowed, left, _HOLDS_NOTHING, False)
                settled = self._vet(narrowed, left, held)
                if isinstance(settled, tuple):
                    return settled
                refused = refused or settled
        return refused

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
            return (signature, types, _HOLDS_NOTHING, is_relaxed)
        offered = self.reservations.offer(self.signatures, signature, types, held or _HOLDS_NOTHING)
        if isinstance(offered, Refused):
            return offered
        return (signature, types, offered, is_relaxed)

    def _add(self, pod_class: PodClass, node: int, settled: Settled, pod: Pod) -> None:
        """Put the pod on a claim that becomes what was settled."""
        fleet = self.fleet
        fleet.types[node] = settled[1]
        if settled[0] != fleet.signature[node]:
            fleet.retype(node, settled[0])
        if not self.is_plain:
            _, _, held, is_relaxed = settled
            fleet.relaxed[node] = fleet.relaxed[node] or is_relaxed
            if fleet.held[node] != held:
                self.reservations.hold(fleet.held[node], held)
                fleet.held[node] = held
        self._record(pod_class, node, pod)

    def _record(self, pod_class: PodClass, node: int, pod: Pod) -> None:
        fleet = self.fleet
        fleet.put(node, pod, pod_class.requests)
        if pod_class.volumes.attachments:
            fleet.attach(node, pod_class.volumes.attachments)
        if not pod_class.is_counted:
            return
        for group in pod_class.counted:
            if group.filter is not None and not group.filter.accepts(node):
                continue
            if isinstance(group, HostGroup):
                group.add(node)
                continue
            if isinstance(group, AvoidedGroup):
                group.add(node, fleet.domains_in(group.domains, node))
            elif domain := fleet.domain_of(group.domains, node):
                group.add(domain)
            else:
                fleet.uncounted.setdefault(node, []).append(group)
        for group in pod_class.owned_inverse:
            if isinstance(group, HostGroup):
                group.add(node)
            elif isinstance(group, AvoidedGroup):
                group.add(node, fleet.domains_in(group.domains, node))

    def _is_attachable(self, node: int, pod_class: PodClass) -> bool:
        attachments = pod_class.volumes.attachments
        if not attachments:
            return True
        limits = attach_limits(self.fleet.existing.nodes[node], self._catalog)
        for driver, count in self.fleet.attached_with(node, attachments).items():
            limit = limits.get(driver)
            if limit is not None and count > limit:
                return False
        return True

    def types_attaching(self, node: int | None, pod_class: PodClass) -> int:
        """Return the types that can attach the volumes of a claim and of the pod, as bits."""
        counts = self.fleet.attached_with(node, pod_class.volumes.attachments)
        mask = 0
        for bit, each in enumerate(self.signatures.table.types):
            limits = each.volume_limits
            if all(driver not in limits or count <= limits[driver] for driver, count in counts.items()):
                mask |= 1 << bit
        return mask


def hosts_open(group: HostGroup, is_selected: int) -> int:
    """Return the nodes (as bits, possibly more than exist) where a hostname rule allows the pod."""
    if group.kind is not Kind.AFFINITY:
        return ~hosts_blocked(group, is_selected)
    held = group.nodes_with(1)
    return held or (-1 if is_selected else 0)


def hosts_blocked(group: HostGroup, is_selected: int) -> int:
    """Return the nodes where a spread or an anti-affinity over hostnames forbids the pod."""
    if group.kind is Kind.SPREAD:
        too_many = group.max_skew - is_selected + 1
        return group.nodes_with(too_many) if too_many > 0 else -1
    return group.nodes_with(1)


def fresh_host_open(group: HostGroup, is_selected: int) -> bool:
    """Say whether a hostname rule allows the pod on a node without pods."""
    if group.kind is Kind.SPREAD:
        return is_selected <= group.max_skew
    if group.kind is Kind.AFFINITY:
        return bool(is_selected) and not group.nodes_with(1)
    return True
