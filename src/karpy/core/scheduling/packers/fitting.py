"""Whether and how a node takes a pod: what any packer needs to know before it chooses."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from karpy.core.scheduling.effort import Effort
from karpy.core.scheduling.existing import attach_limits
from karpy.core.scheduling.minvalues import reached, relax
from karpy.core.scheduling.packers.asks import Ask
from karpy.core.scheduling.plannednodes import PlannedNodes
from karpy.core.scheduling.podclasses import DEAR_PERCENT, KeyRule, PodClass
from karpy.core.scheduling.reservations import Refused, Reservations
from karpy.core.scheduling.signatures import NEVER, Signatures
from karpy.core.scheduling.topology import AnyGroup
from karpy.core.scheduling.topologygroups import DomainGroup, HostGroup
from karpy.model.instances import Catalog
from karpy.model.pods import Pod
from karpy.model.pools import NodePool

Choice: TypeAlias = tuple[KeyRule, int, bool]
"""A key, the domains of it that are open now, and whether one of them must be chosen."""

Settled: TypeAlias = tuple[int, int, frozenset[str], bool]
"""What a claim would be with one more pod: signature, types, reservations, minValues lowered."""

HOLDS_NOTHING: Final[frozenset[str]] = frozenset()


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
        self.is_plain = False
        """Whether neither minValues nor reservations have a say."""
        self._catalog = catalog
        self._effort = effort

    def use(self, pools: Sequence[NodePool], *, relaxes_variety: bool) -> None:
        """Learn which pools take part, and whether minValues may be lowered for a new claim."""
        self.relaxes_variety = relaxes_variety
        self.is_plain = not self.reservations.is_active and not any(
            requirement.min_values for pool in pools for requirement in pool.requirements
        )

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
                if self.is_plain:
                    return (narrowed, left, HOLDS_NOTHING, False)
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
        if self.is_plain:
            return (signature, types, HOLDS_NOTHING, False)
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
        if not self.is_plain:
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
