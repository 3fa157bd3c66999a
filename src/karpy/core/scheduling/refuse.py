"""Why a pod fits nowhere: what excludes how many types, what decides, what nearly fits."""

from collections.abc import Sequence

from karpy.core.scheduling.bits import dense_members, from_flags, members
from karpy.core.scheduling.effort import OutOfTime
from karpy.core.scheduling.greedy import Packer
from karpy.core.scheduling.hurdles import CONSTRAINTS, Course, Hurdle, tightest
from karpy.core.scheduling.steps import PodClass
from karpy.core.scheduling.templates import Template
from karpy.core.scheduling.variety import reached
from karpy.model.pods import Pod
from karpy.model.refusals import (
    Constraint,
    Exclusion,
    NearMiss,
    PoolRefusal,
    Reason,
    Refusal,
)
from karpy.model.verdicts import PoolNotice

_NEAR_MISSES_COMPARED = 64
_WORK_OF_A_POOL = 64


class Refuser:
    """Explains the pods a packer could not place."""

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
        """Return one refusal for each class of pods left over."""
        grouped: dict[tuple[int, bool], tuple[PodClass, list[str]]] = {}
        for pod, pod_class in left:
            key = (id(pod_class), bool(waiting) and pod.uid in waiting)
            known = grouped.get(key)
            if known is None:
                known = grouped[key] = (pod_class, [])
            known[1].append(f"{pod.namespace}/{pod.name}")
        refusals = []
        trees: dict[tuple[object, ...], Refusal] = {}
        # In the order of the batch, whichever of them were looked at last.
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
        """Return the whole tree, or the reason alone if time is up."""
        try:
            self._packer.effort.spend(_WORK_OF_A_POOL * len(self._templates))
        except OutOfTime:
            return Refusal(self._reason, ())
        return self._tree(pod_class)

    def _tree(self, pod_class: PodClass) -> Refusal:
        pools = [self._judge(pod_class, template) for template in self._templates]
        pools += [PoolRefusal(each.pool, each.why, False, each.why.count) for each in self._notices]
        return Refusal(self._reason, (), "", tuple(pools), tuple(self._nodes(pod_class)))

    def _judge(self, pod_class: PodClass, template: Template) -> PoolRefusal:
        course = Course(self._packer, pod_class, pod_class.steps.last, template)
        hurdles = course.hurdles()
        exclusions = tuple(self._exclusion(hurdle, template) for hurdle in hurdles)
        decisive, left = _decisive(hurdles, template.mask)
        return PoolRefusal(
            template.name,
            exclusions[decisive],
            self._is_enough(hurdles[decisive], left, template),
            self._count(template.mask),
            exclusions,
            self._nearest(hurdles, template),
        )

    def _is_enough(self, hurdle: Hurdle, left: int, template: Template) -> bool:
        """Say whether the types that all but one hurdle leave would do without it."""
        if not left or hurdle.is_joint:
            return False
        if hurdle.constraint is Constraint.MIN_VALUES:
            return True
        return not reached(self._packer.signatures, template.signature, left)

    def _exclusion(self, hurdle: Hurdle, template: Template) -> Exclusion:
        count = self._count(template.mask) - self._count(template.mask & hurdle.cleared)
        return Exclusion(hurdle.constraint, hurdle.detail, count)

    def _count(self, mask: int) -> int:
        table = self._packer.signatures.table
        if not table.is_split:
            return mask.bit_count()
        return len({table.types[bit].name for bit in members(mask)})

    def _nearest(self, hurdles: Sequence[Hurdle], template: Template) -> NearMiss | None:
        """Find the type that fails the fewest hurdles, then the one that comes closest."""
        missed = _fewest_failed(hurdles, template.mask)
        table = self._packer.signatures.table
        best: tuple[int, str, tuple[str, ...]] | None = None
        for bit in dense_members(missed)[-_NEAR_MISSES_COMPARED:]:
            lacks = tuple(hurdle.detail for hurdle in hurdles if not hurdle.cleared >> bit & 1)
            room = sum(table.allocatable[bit].get(name, 0) for name in ("cpu", "memory"))
            candidate = (-room, table.types[bit].name, lacks)
            if best is None or candidate < best:
                best = candidate
        return NearMiss(best[1], best[2]) if best else None

    def _nodes(self, pod_class: PodClass) -> list[Exclusion]:
        """Count existing nodes by the first reason they said no for."""
        existing = self._packer.fleet.existing
        if not existing.count:
            return []
        step = pod_class.steps.last
        label_fits = self._packer.signatures.label_fits
        matching = 0
        for label_set in existing.label_sets:
            if any(label_fits(label_set.labels, label_set.index, want) for want in step.wants):
                matching |= label_set.nodes
        roomy = existing.open
        for name, amount in pod_class.requests.items():
            roomy &= from_flags([left >= amount for left in existing.free[name]])
        stages = [
            (Constraint.TAINT, step.reach.nodes),
            (Constraint.REQUIREMENT, matching),
            (Constraint.RESOURCE, roomy),
            (Constraint.HOST_PORT, ~self._packer.fleet.with_port_clash(pod_class.pod.rules.ports)),
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


def _decisive(hurdles: Sequence[Hurdle], types: int) -> tuple[int, int]:
    """Return which hurdle to lift, and the types that are left once it is, if any."""
    best, best_left, best_mask = -1, 0, 0
    # What all after each one let through; with what all before it do, that is all but this one.
    after = [types]
    for hurdle in reversed(hurdles):
        after.append(after[-1] & hurdle.cleared)
    before = types
    for index, hurdle in enumerate(hurdles):
        mask = before & after[len(hurdles) - 1 - index]
        left = mask.bit_count()
        if left > best_left:
            best, best_left, best_mask = index, left, mask
        before &= hurdle.cleared
    if best >= 0:
        return best, best_mask
    worst = min(range(len(hurdles)), key=lambda index: (types & hurdles[index].cleared).bit_count())
    return worst, 0


def _fewest_failed(hurdles: Sequence[Hurdle], types: int) -> int:
    """Return the types that fail the smallest number of hurdles."""
    # How many each type fails, in binary: the types whose number has a digit, digit by digit.
    digits: list[int] = []
    for hurdle in hurdles:
        carry, place = types & ~hurdle.cleared, 0
        while carry:
            if place == len(digits):
                digits.append(0)
            digits[place], carry = digits[place] ^ carry, digits[place] & carry
            place += 1
    for digit in reversed(digits):
        types = types & ~digit or types
    return types
