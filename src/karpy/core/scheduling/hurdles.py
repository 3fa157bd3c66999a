"""What stands between a pod and a fresh node of one NodePool, each hurdle as a mask of types."""

from collections.abc import Iterator
from typing import NamedTuple

from karpy.core.scheduling.bits import members
from karpy.core.scheduling.greedy import Packer
from karpy.core.scheduling.groups import Group, Kind
from karpy.core.scheduling.signatures import NEVER, contradicts
from karpy.core.scheduling.steps import KeyRule, PodClass, Step
from karpy.core.scheduling.templates import Template
from karpy.core.scheduling.variety import reached
from karpy.model.constraints import first_untolerated
from karpy.model.refusals import Constraint
from karpy.model.requirement import Requirement
from karpy.model.requirements import collect, merge
from karpy.model.resources import NODES, format_quantity

CONSTRAINTS = {
    Kind.SPREAD: Constraint.SPREAD,
    Kind.AFFINITY: Constraint.AFFINITY,
    Kind.ANTI_AFFINITY: Constraint.ANTI_AFFINITY,
    Kind.INVERSE: Constraint.ANTI_AFFINITY,
}


class Hurdle(NamedTuple):
    """One constraint, and the types of the pool that clear it."""

    constraint: Constraint
    detail: str
    cleared: int
    is_joint: bool = False
    """Whether several things make it up, so that nobody knows what lifting one of them does."""


class Course:
    """All hurdles between one class of pods and one template."""

    def __init__(self, packer: Packer, pod_class: PodClass, step: Step, template: Template) -> None:
        self._packer = packer
        self._class = pod_class
        self._step = step
        self._template = template
        self._signatures = packer.signatures
        self._table = packer.signatures.table

    def hurdles(self) -> list[Hurdle]:
        """List what excludes at least one type, in the order a placement checks it."""
        everything = [
            *self._taints(),
            *self._requirements(),
            *self._resources(),
            *self._ports_and_volumes(),
            *self._topology(),
            *self._limits(),
        ]
        found = [hurdle for hurdle in everything if self._template.mask & ~hurdle.cleared]
        left = self._template.mask
        for hurdle in found:
            left &= hurdle.cleared
        if left:
            found.append(self._joint())
        return found

    def _taints(self) -> Iterator[Hurdle]:
        for taint in self._template.taints:
            if first_untolerated((taint,), self._step.footing.tolerations) is not None:
                yield Hurdle(Constraint.TAINT, str(taint), 0)

    def _requirements(self) -> Iterator[Hurdle]:
        if not self._step.footing.is_possible:
            detail = ", ".join(str(each) for _, each in sorted(self._step.footing.full.items()))
            yield Hurdle(
                Constraint.REQUIREMENT, f"what it asks for contradicts itself: {detail}", 0
            )
            return
        have = self._signatures.requirements[self._template.signature]
        for key, wanted in sorted(self._step.footing.full.items()):
            present = have.get(key)
            if present is None and key not in self._table.well_known and not wanted.is_negative:
                yield Hurdle(Constraint.UNDEFINED_LABEL, str(wanted), 0)
            elif present is not None and contradicts({key: present}, {key: wanted}):
                yield Hurdle(Constraint.REQUIREMENT, f"{wanted}, the pool has {present}", 0)
            else:
                both = wanted if present is None else present & wanted
                yield Hurdle(Constraint.REQUIREMENT, str(wanted), self._table.allowing(both))
        yield from self._offerings()

    def _offerings(self) -> Iterator[Hurdle]:
        have = self._signatures.requirements[self._template.signature]
        sold_by = {key for market in self._table.markets for key in market.requirements}
        sold_by.add(self._packer.reservation_label)
        asked = {key: each for key, each in self._step.footing.full.items() if key in sold_by}
        if not asked or contradicts(have, asked):
            return
        cleared = 0
        for market in self._table.markets_for(merge(have, asked)):
            cleared |= market.available
        text = ", ".join(str(each) for _, each in sorted(asked.items()))
        yield Hurdle(Constraint.OFFERING, text, cleared)

    def _resources(self) -> Iterator[Hurdle]:
        for name, amount in sorted(self._class.requests.items()):
            if amount <= 0:
                continue
            room = self._template.rooms[name]
            most = max(0, room.largest(self._template.mask))
            detail = (
                f"{name}: {format_quantity(amount, name)} asked, "
                f"{format_quantity(most, name)} is the most a type leaves"
            )
            yield Hurdle(Constraint.RESOURCE, detail, room.reaching(amount))

    def _ports_and_volumes(self) -> Iterator[Hurdle]:
        ports = self._class.pod.rules.ports
        if ports:
            text = ", ".join(f"{port.port}/{port.protocol}" for port in ports)
            yield Hurdle(Constraint.HOST_PORT, text, self._template.without_port_clash(ports))
        volumes = self._class.volumes
        if volumes.attachments:
            drivers = sorted({driver for driver, _ in volumes.attachments})
            mask = self._packer.fitter.types_attaching(None, self._class)
            yield Hurdle(Constraint.VOLUME_LIMIT, ", ".join(drivers), mask)
        if volumes.alternatives != ((),):
            mask = 0
            for alternative in volumes.alternatives:
                want = self._signatures.want(collect(alternative))
                signature = self._signatures.join(self._template.signature, want)
                if signature != NEVER:
                    mask |= self._signatures.masks[signature]
            places = " or ".join(_text(alternative) for alternative in volumes.alternatives)
            places = places or "nowhere: its volumes are in different places"
            yield Hurdle(Constraint.VOLUME_TOPOLOGY, places, mask)

    def _topology(self) -> Iterator[Hurdle]:
        for group, is_selected in self._step.hosts:
            if not group.allows_alone(is_selected):
                yield Hurdle(CONSTRAINTS[group.kind], describe(group), 0)
        for rule in self._step.keys:
            domains, _ = rule.open_domains()
            cleared = 0
            possible = self._possible(rule)
            if not possible and rule.is_free_in_no_domain(self._template.signature):
                continue
            open_here = domains & possible
            for bit in members(open_here):
                narrowed = rule.table.narrow(self._template.signature, 1 << bit)
                cleared |= self._signatures.masks[narrowed]
            tight = tightest(rule)
            if tight is not None:
                open_names = [
                    name for bit, name in enumerate(rule.table.names) if open_here >> bit & 1
                ]
                allowed = ", ".join(open_names) or "nowhere"
                detail = f"{describe(tight)}; open: {allowed}"
                is_joint = len(rule.spreads) + len(rule.affinities) + len(rule.antis) > 1
                yield Hurdle(CONSTRAINTS[tight.kind], detail, cleared, is_joint)

    def _limits(self) -> Iterator[Hurdle]:
        limits = self._packer.limits
        left = limits.left(self._template.name)
        if left is None:
            return
        if not limits.has_node_left(self._template.name):
            yield Hurdle(Constraint.NODE_LIMIT, f"limit {self._template.pool.limits[NODES]}", 0)
        for name, amount in sorted(left.items()):
            if name != NODES:
                detail = (
                    f"{name}: {format_quantity(max(0, amount), name)} left of "
                    f"{format_quantity(self._template.pool.limits[name], name)}"
                )
                yield Hurdle(Constraint.LIMIT, detail, self._table.capacity(name).below(amount))

    def _possible(self, rule: KeyRule) -> int:
        """Return the domains of a key that a new claim with the pod might be in."""
        joined = [
            self._signatures.join(self._template.signature, want) for want in self._step.wants
        ]
        sound = [signature for signature in joined if signature != NEVER]
        possible = 0
        for signature in sound or [self._template.signature]:
            possible |= rule.table.of_signature(signature)
        return possible

    def _joint(self) -> Hurdle:
        """Name what only shows once some type has cleared all else on its own."""
        shape = self._packer.shapes.of(self._class, self._step)
        options = self._packer.shapes.fresh(shape, self._template)
        for signature, types in options:
            lacking = reached(self._signatures, signature, types)
            if lacking:
                parts = (f"{key}: {count} values left" for key, count in sorted(lacking.items()))
                return Hurdle(Constraint.MIN_VALUES, ", ".join(parts), 0)
        if options and self._packer.reservations.is_active:
            return Hurdle(Constraint.RESERVATION, "", 0, is_joint=True)
        return Hurdle(Constraint.OFFERING, "nothing meets all of its demands at once", 0, True)


def describe(group: Group) -> str:
    """Name a topology group the way its owner wrote it."""
    selector = group.selector
    chosen = ", ".join(str(each) for each in selector.expressions) if selector else "no pod"
    return f"{group.kind.value} on {group.key} of pods with {chosen or 'any label'}"


def tightest(rule: KeyRule) -> Group | None:
    """Return the group of a key that leaves the fewest domains."""
    best: tuple[int, Group] | None = None
    for spread, is_selected in rule.spreads:
        left = spread.within_skew(rule.pod_mask, is_selected).bit_count()
        best = min(best or (left, spread), (left, spread), key=lambda pair: pair[0])
    for affinity, is_selected in rule.affinities:
        can_start = is_selected and not affinity.nonzero
        left = (rule.pod_mask if can_start else affinity.nonzero & rule.pod_mask).bit_count()
        best = min(best or (left, affinity), (left, affinity), key=lambda pair: pair[0])
    for anti in rule.antis:
        left = (rule.pod_mask & ~anti.nonzero).bit_count()
        best = min(best or (left, anti), (left, anti), key=lambda pair: pair[0])
    return best[1] if best else None


def _text(alternative: tuple[Requirement, ...]) -> str:
    return " and ".join(str(each) for each in collect(alternative).values()) or "anywhere"
