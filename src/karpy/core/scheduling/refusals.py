"""Says why a pod has no place: exclusions with counts of types, the decisive one, near misses."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from karpy.core.scheduling.effort import OutOfTime
from karpy.core.scheduling.instancetypes import dense_members, from_flags, members
from karpy.core.scheduling.packers.greedy import Packer
from karpy.core.scheduling.podclasses import KeyRule, PodClass, Step
from karpy.core.scheduling.signatures import NEVER, contradicts, reached, why_too_long
from karpy.core.scheduling.templates import Template
from karpy.core.scheduling.topologygroups import Group, GroupKind
from karpy.model.constraints import first_untolerated
from karpy.model.pods import Pod
from karpy.model.requirements import Requirement, collect, merge
from karpy.model.resources import NODES, format_quantity
from karpy.model.verdicts import (
    Constraint,
    Exclusion,
    NearMiss,
    PoolNotice,
    PoolRefusal,
    Reason,
    Refusal,
)

CONSTRAINTS = {
    GroupKind.SPREAD: Constraint.SPREAD,
    GroupKind.AFFINITY: Constraint.AFFINITY,
    GroupKind.ANTI_AFFINITY: Constraint.ANTI_AFFINITY,
    GroupKind.INVERSE: Constraint.ANTI_AFFINITY,
}


class TypeConstraint(NamedTuple):
    """One constraint, and the types of the pool that meet it."""

    constraint: Constraint
    detail: str
    met: int
    is_joint: bool = False
    """Whether it combines several constraints, so that lifting one of them may not be enough."""


class PoolConstraints:
    """All constraints that a pod class has to meet on a new node of one template."""

    def __init__(self, packer: Packer, pod_class: PodClass, step: Step, template: Template) -> None:
        self._packer = packer
        self._class = pod_class
        self._step = step
        self._template = template
        self._signatures = packer.signatures
        self._table = packer.signatures.table

    def excluding(self) -> list[TypeConstraint]:
        """List the constraints that exclude at least one type, in the order of placement."""
        everything = [
            *self._taints(),
            *self._requirements(),
            *self._resources(),
            *self._ports_and_volumes(),
            *self._topology(),
            *self._limits(),
        ]
        found = [each for each in everything if self._template.mask & ~each.met]
        left = self._template.mask
        for each in found:
            left &= each.met
        if left:
            found.append(self._joint())
        return found

    def _taints(self) -> Iterator[TypeConstraint]:
        for taint in self._template.taints:
            if first_untolerated((taint,), self._step.node_rules.tolerations) is not None:
                yield TypeConstraint(Constraint.TAINT, str(taint), 0)

    def _requirements(self) -> Iterator[TypeConstraint]:
        if not self._step.node_rules.is_possible:
            detail = ", ".join(str(each) for _, each in sorted(self._step.node_rules.full.items()))
            yield TypeConstraint(
                Constraint.REQUIREMENT, f"its requirements contradict each other: {detail}", 0
            )
            return
        have = self._signatures.requirements[self._template.signature]
        if why := why_too_long(have, merge(have, self._step.node_rules.full)):
            yield TypeConstraint(Constraint.REQUIREMENT, why, 0)
        for key, wanted in sorted(self._step.node_rules.full.items()):
            present = have.get(key)
            if present is None and key not in self._table.well_known and not wanted.is_negative:
                yield TypeConstraint(Constraint.UNDEFINED_LABEL, str(wanted), 0)
            elif present is not None and contradicts({key: present}, {key: wanted}):
                yield TypeConstraint(Constraint.REQUIREMENT, f"{wanted}, the pool has {present}", 0)
            else:
                both = wanted if present is None else present & wanted
                yield TypeConstraint(
                    Constraint.REQUIREMENT, str(wanted), self._table.allowing(both)
                )
        yield from self._offerings()

    def _offerings(self) -> Iterator[TypeConstraint]:
        have = self._signatures.requirements[self._template.signature]
        sold_by = {key for market in self._table.markets for key in market.requirements}
        sold_by.add(self._packer.reservation_label)
        asked = {key: each for key, each in self._step.node_rules.full.items() if key in sold_by}
        if not asked or contradicts(have, asked):
            return
        met = 0
        for market in self._table.markets_for(merge(have, asked)):
            met |= market.available
        text = ", ".join(str(each) for _, each in sorted(asked.items()))
        yield TypeConstraint(Constraint.OFFERING, text, met)

    def _resources(self) -> Iterator[TypeConstraint]:
        for name, amount in sorted(self._class.requests.items()):
            if amount <= 0:
                continue
            room = self._template.rooms[name]
            most = max(0, room.largest(self._template.mask))
            detail = (
                f"{name}: {format_quantity(amount, name)} asked, "
                f"{format_quantity(most, name)} is the most a type leaves"
            )
            taken = self._template.least_overhead(self._template.mask).get(name, 0)
            if most < amount <= most + taken:
                detail += f", DaemonSets take {format_quantity(taken, name)}"
            yield TypeConstraint(Constraint.RESOURCE, detail, room.reaching(amount))

    def _ports_and_volumes(self) -> Iterator[TypeConstraint]:
        ports = self._class.pod.rules.ports
        if ports:
            text = ", ".join(f"{port.port}/{port.protocol}" for port in ports)
            yield TypeConstraint(
                Constraint.HOST_PORT, text, self._template.without_port_clash(ports)
            )
        volumes = self._class.volumes
        if volumes.attachments:
            drivers = sorted({driver for driver, _ in volumes.attachments})
            mask = self._packer.fitter.types_attaching(None, self._class)
            yield TypeConstraint(Constraint.VOLUME_LIMIT, ", ".join(drivers), mask)
        if volumes.alternatives != ((),):
            mask = 0
            for alternative in volumes.alternatives:
                required = self._signatures.pod_requirements(collect(alternative))
                signature = self._signatures.join(self._template.signature, required)
                if signature != NEVER:
                    mask |= self._signatures.masks[signature]
            places = " or ".join(_text(alternative) for alternative in volumes.alternatives)
            places = places or "nowhere: its volumes are in different places"
            yield TypeConstraint(Constraint.VOLUME_TOPOLOGY, places, mask)

    def _topology(self) -> Iterator[TypeConstraint]:
        for group, is_selected in self._step.hosts:
            if not group.allows_alone(is_selected):
                yield TypeConstraint(CONSTRAINTS[group.kind], describe(group), 0)
        for rule in self._step.keys:
            domains, _ = rule.open_domains()
            met = 0
            possible = self._possible(rule)
            if not possible and rule.allows_no_domain(self._template.signature):
                continue
            open_here = domains & possible
            for bit in members(open_here):
                narrowed = rule.table.narrow(self._template.signature, 1 << bit)
                met |= self._signatures.masks[narrowed]
            tight = tightest(rule)
            if tight is not None:
                open_names = [
                    name for bit, name in enumerate(rule.table.names) if open_here >> bit & 1
                ]
                allowed = ", ".join(open_names) or "nowhere"
                detail = f"{describe(tight)}; open: {allowed}"
                is_joint = len(rule.spreads) + len(rule.affinities) + len(rule.antis) > 1
                yield TypeConstraint(CONSTRAINTS[tight.kind], detail, met, is_joint)

    def _limits(self) -> Iterator[TypeConstraint]:
        limits = self._packer.limits
        left = limits.left(self._template.name)
        if left is None:
            return
        if not limits.has_node_left(self._template.name):
            yield TypeConstraint(
                Constraint.NODE_LIMIT, f"limit {self._template.pool.limits[NODES]}", 0
            )
        for name, amount in sorted(left.items()):
            if name != NODES:
                detail = (
                    f"{name}: {format_quantity(max(0, amount), name)} left of "
                    f"{format_quantity(self._template.pool.limits[name], name)}"
                )
                yield TypeConstraint(
                    Constraint.LIMIT, detail, self._table.capacity(name).below(amount)
                )

    def _possible(self, rule: KeyRule) -> int:
        """Return the domains of a key that are possible for a new claim with the pod."""
        joined = [
            self._signatures.join(self._template.signature, required)
            for required in self._step.alternatives
        ]
        sound = [signature for signature in joined if signature != NEVER]
        possible = 0
        for signature in sound or [self._template.signature]:
            possible |= rule.table.of_signature(signature)
        return possible

    def _joint(self) -> TypeConstraint:
        """Return the constraint that excludes types which meet every other constraint alone."""
        ask = self._packer.asks.of(self._class, self._step)
        options = self._packer.asks.fresh(ask, self._template)
        for signature, types in options:
            lacking = reached(self._signatures, signature, types)
            if lacking:
                parts = (f"{key}: {count} values left" for key, count in sorted(lacking.items()))
                return TypeConstraint(Constraint.MIN_VALUES, ", ".join(parts), 0)
        if options and self._packer.reservations.is_active:
            return TypeConstraint(Constraint.RESERVATION, "", 0, is_joint=True)
        return TypeConstraint(
            Constraint.OFFERING, "no type meets all of its constraints at once", 0, True
        )


def describe(group: Group) -> str:
    """Describe a topology group in the words of its rule."""
    selector = group.selector
    chosen = ", ".join(str(each) for each in selector.expressions) if selector else "no pod"
    return f"{group.kind.value} on {group.key} of pods with {chosen or 'any label'}"


def tightest(rule: KeyRule) -> Group | None:
    """Return the group on a key that leaves the fewest domains."""
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


_NEAR_MISSES_COMPARED = 64
_WORK_OF_A_POOL = 64


class Refuser:
    """Explains why a packer could not place pods."""

    def __init__(
        self,
        packer: Packer,
        templates: Sequence[Template],
        notices: Sequence[PoolNotice],
        reason: Reason,
    ) -> None:
        self._packer = packer
        self._reason = reason
        self._templates = templates
        self._notices = notices

    def refuse(self, left: Sequence[tuple[Pod, PodClass]], waiting: set[str]) -> list[Refusal]:
        """Return one refusal for each class of the pods left over."""
        grouped: dict[tuple[int, bool], tuple[PodClass, list[str]]] = {}
        for pod, pod_class in left:
            key = (id(pod_class), bool(waiting) and pod.uid in waiting)
            known = grouped.get(key)
            if known is None:
                known = grouped[key] = (pod_class, [])
            known[1].append(f"{pod.namespace}/{pod.name}")
        refusals = []
        trees: dict[tuple[object, ...], Refusal] = {}
        # The order of the batch, not that of the last tries.
        in_order = sorted(grouped.items(), key=lambda each: each[1][0].index)
        for (_, waits), (pod_class, pods) in in_order:
            if waits:
                refusals.append(Refusal(Reason.WAITS_FOR_RESERVATION, tuple(pods)))
                continue
            asked = (id(pod_class.requests), pod_class.steps.last, pod_class.volumes)
            tree = trees.get(asked)
            if tree is None:
                tree = trees[asked] = self._tree_in_time(pod_class)
            refusals.append(Refusal(tree.reason, tuple(pods), tree.detail, tree.pools, tree.nodes))
        return refusals

    def _tree_in_time(self, pod_class: PodClass) -> Refusal:
        """Return the refusal with all pools and nodes, or with the reason alone if time is up."""
        try:
            self._packer.effort.spend(_WORK_OF_A_POOL * len(self._templates))
        except OutOfTime:
            return Refusal(self._reason, ())
        return self._tree(pod_class)

    def _tree(self, pod_class: PodClass) -> Refusal:
        pools = [self._pool_refusal(pod_class, template) for template in self._templates]
        pools += [PoolRefusal(each.pool, each.why, False, each.why.count) for each in self._notices]
        return Refusal(self._reason, (), "", tuple(pools), tuple(self._nodes(pod_class)))

    def _pool_refusal(self, pod_class: PodClass, template: Template) -> PoolRefusal:
        step = pod_class.steps.last
        constraints = PoolConstraints(self._packer, pod_class, step, template).excluding()
        exclusions = tuple(self._exclusion(each, template) for each in constraints)
        decisive, left = _decisive(constraints, template.mask)
        return PoolRefusal(
            template.name,
            exclusions[decisive],
            self._is_enough(constraints[decisive], left, template),
            self._count(template.mask),
            exclusions,
            self._nearest(constraints, template),
        )

    def _is_enough(self, lifted: TypeConstraint, left: int, template: Template) -> bool:
        """Say whether lifting one constraint is enough: the types left reach minValues."""
        if not left or lifted.is_joint:
            return False
        if lifted.constraint is Constraint.MIN_VALUES:
            return True
        return not reached(self._packer.signatures, template.signature, left)

    def _exclusion(self, missed: TypeConstraint, template: Template) -> Exclusion:
        count = self._count(template.mask) - self._count(template.mask & missed.met)
        return Exclusion(missed.constraint, missed.detail, count)

    def _count(self, mask: int) -> int:
        table = self._packer.signatures.table
        if not table.is_split:
            return mask.bit_count()
        return len({table.types[bit].name for bit in members(mask)})

    def _nearest(
        self, constraints: Sequence[TypeConstraint], template: Template
    ) -> NearMiss | None:
        """Return the type that fails the fewest constraints, the largest if there are several."""
        missed = _fewest_failed(constraints, template.mask)
        table = self._packer.signatures.table
        best: tuple[int, str, tuple[str, ...]] | None = None
        for bit in dense_members(missed)[-_NEAR_MISSES_COMPARED:]:
            lacks = tuple(each.detail for each in constraints if not each.met >> bit & 1)
            room = sum(table.allocatable[bit].get(name, 0) for name in ("cpu", "memory"))
            candidate = (-room, table.types[bit].name, lacks)
            if best is None or candidate < best:
                best = candidate
        return NearMiss(best[1], best[2]) if best else None

    def _nodes(self, pod_class: PodClass) -> list[Exclusion]:
        """Count existing nodes by the first constraint that excludes them."""
        existing = self._packer.planned.existing
        if not existing.count:
            return []
        step = pod_class.steps.last
        label_fits = self._packer.signatures.label_fits
        matching = 0
        for label_set in existing.label_sets:
            if any(
                label_fits(label_set.labels, label_set.index, required)
                for required in step.alternatives
            ):
                matching |= label_set.nodes
        roomy = existing.open
        for name, amount in pod_class.requests.items():
            roomy &= from_flags([left >= amount for left in existing.free[name]])
        stages = [
            (Constraint.TAINT, step.reach.nodes),
            (Constraint.REQUIREMENT, matching),
            (Constraint.RESOURCE, roomy),
            (
                Constraint.HOST_PORT,
                ~self._packer.planned.with_port_clash(pod_class.pod.rules.ports),
            ),
        ]
        stages += [
            (CONSTRAINTS[host.kind], host.open_to(is_selected)) for host, is_selected in step.hosts
        ]
        for rule in step.keys:
            tight = tightest(rule)
            passing = rule.table.nodes_in(rule.open_domains()[0])
            if rule.is_optional:
                passing |= ~rule.table.anywhere
            if tight is not None:
                stages.append((CONSTRAINTS[tight.kind], passing))
        stages.append((Constraint.VOLUME_LIMIT, 0))
        return _stagewise((1 << existing.count) - 1, stages)


def _stagewise(nodes: int, stages: Sequence[tuple[Constraint, int]]) -> list[Exclusion]:
    exclusions = []
    for constraint, passing in stages:
        failing = nodes & ~passing
        if failing:
            exclusions.append(Exclusion(constraint, "", failing.bit_count()))
        nodes &= passing
    return exclusions


def _decisive(constraints: Sequence[TypeConstraint], types: int) -> tuple[int, int]:
    """Return the index of the constraint whose lifting leaves the most types, and these types."""
    best, best_left, best_mask = -1, 0, 0
    # For each constraint, the types that meet all constraints after it. With the types that meet
    # all constraints before it, these are the types that meet all others.
    after = [types]
    for each in reversed(constraints):
        after.append(after[-1] & each.met)
    before = types
    for index, each in enumerate(constraints):
        mask = before & after[len(constraints) - 1 - index]
        left = mask.bit_count()
        if left > best_left:
            best, best_left, best_mask = index, left, mask
        before &= each.met
    if best >= 0:
        return best, best_mask
    worst = min(
        range(len(constraints)), key=lambda index: (types & constraints[index].met).bit_count()
    )
    return worst, 0


def _fewest_failed(constraints: Sequence[TypeConstraint], types: int) -> int:
    """Return the types that fail the smallest number of constraints."""
    # The number of failed constraints of every type, in binary: per digit, a mask of types.
    digits: list[int] = []
    for each in constraints:
        carry, place = types & ~each.met, 0
        while carry:
            if place == len(digits):
                digits.append(0)
            digits[place], carry = digits[place] ^ carry, digits[place] & carry
            place += 1
    for digit in reversed(digits):
        types = types & ~digit or types
    return types
