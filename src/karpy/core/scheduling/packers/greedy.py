"""Choose the node for each pod in Karpenter's order: first fit."""

from collections.abc import Sequence
from enum import Enum
from typing import TypeAlias

from karpy.core.scheduling.effort import Effort
from karpy.core.scheduling.instancetypes import members
from karpy.core.scheduling.limits import Limits, Refused, Reservations
from karpy.core.scheduling.packers.fitting import Ask, Asks, Choice, Fitter
from karpy.core.scheduling.plannednodes import PlannedNodes
from karpy.core.scheduling.podclasses import (
    FOR_GOOD,
    Failure,
    KeyRule,
    PodClass,
    Step,
    Steps,
    Versioned,
)
from karpy.core.scheduling.signatures import Signatures
from karpy.core.scheduling.templates import Template
from karpy.core.scheduling.topologygroups import HostGroup, Kind
from karpy.model.instances import Catalog
from karpy.model.pods import Pod

_Open: TypeAlias = tuple[int, bool, bool, bool]
"""Of a key: its open domains, and how a claim that takes the pod has to choose among them."""


def worth_a_try(steps: Steps, failed: int, last: int, nodes: int) -> list[int]:
    """
    List the steps after one that failed for which other pods leave more open, the last one first.

    All of them ask the same of a node, and each asks less of other pods than the one before it:
    where the same is open, the answer is the same. `nodes` are those that may take the pod.
    """
    outlook = _Outlook(steps, last, nodes)
    return [index + 1 for index in range(last - 1, failed - 1, -1) if outlook.narrows_at(index)]


class _Outlook:
    """What is open at one step, then at the one above it, and so on."""

    def __init__(self, steps: Steps, last: int, nodes: int) -> None:
        self._steps = steps
        self._footing = steps.ground(last).footing
        self._nodes, self._is_alone = nodes, True
        for host, is_selected in steps[last].hosts:
            self._add_host(host, is_selected)
        self._keys = {rule.table.key: _open(rule) for rule in steps[last].keys}
        self._is_closed = any(map(_is_closed, self._keys.values())) or self._has_no_node()

    def narrows_at(self, index: int) -> bool:
        """Go up to a step; say whether less is open there than at the one below."""
        # What is closed for a step is closed for all those above it.
        if self._is_closed:
            return False
        group, is_selected = self._steps.dropped(index)
        if isinstance(group, HostGroup):
            before = self._nodes, self._is_alone
            self._add_host(group, is_selected)
            self._is_closed = self._has_no_node()
            return before != (self._nodes, self._is_alone)
        rule = KeyRule(group.domains, self._footing)
        rule.hold(group, is_selected)
        return self._add_rule(rule)

    def _add_host(self, group: HostGroup, is_selected: int) -> None:
        self._nodes &= group.open_to(is_selected)
        self._is_alone = self._is_alone and group.allows_alone(is_selected)

    def _has_no_node(self) -> bool:
        return not self._nodes and not self._is_alone

    def _add_rule(self, rule: KeyRule) -> bool:
        key, more = rule.table.key, _open(rule)
        before = self._keys.get(key)
        if before is None:
            if not rule.table.all and more == (0, False, True, True):
                # A label that no node has, and no pod to be away from.
                return False
            after = more
        else:
            after = (
                before[0] & more[0],
                before[1] or more[1],
                before[2] and more[2],
                before[3] and more[3],
            )
        self._keys[key] = after
        self._is_closed = _is_closed(after)
        return before != after


def _open(rule: KeyRule) -> _Open:
    domains, is_pinned = rule.open_domains()
    return domains, is_pinned, rule.is_optional, all(each.is_empty for each in rule.antis)


def _is_closed(state: _Open) -> bool:
    domains, _, is_optional, _ = state
    return not domains and not is_optional


_SHORT = 4
"""Fewer steps that ask the same of a node are tried one by one."""


class Outcome(Enum):
    """What became of a try."""

    PLACED = "placed"
    REFUSED = "refused"
    WAITS = "waits for a reservation"
    TOO_DEAR = "needs a node that costs too much"


class Packer:
    """Places pods one after the other; keeps little state but the planned's."""

    def __init__(
        self,
        planned: PlannedNodes,
        limits: Limits,
        reservations: Reservations,
        catalog: Catalog,
        effort: Effort,
    ) -> None:
        self.planned = planned
        self.signatures: Signatures = planned.signatures
        self.asks = Asks(planned, planned.signatures)
        self.limits = limits
        self.reservation_label = catalog.reservation_label
        self.reservations = reservations
        self.fitter = Fitter(planned, reservations, catalog, effort)
        self.effort = effort
        self.closed = 0
        """Nodes that the pod to be placed may not go to, as bits."""
        self.preferred: Sequence[int] = ()
        """Existing nodes that the pod to be placed goes to before others, the best one first."""
        self.ceiling: int | None = None
        """What a new node must cost less than, in micro-dollars per hour."""
        self.steps_down = 0
        """How far below their first step pods were placed, all together."""

    def place(self, pod_class: PodClass, pod: Pod) -> Outcome:
        """Find a place for one pod, letting go of preferences as needed."""
        steps = pod_class.steps
        index, has_tried = 0, False
        known: Failure | None = None
        tries: list[int] = []
        while index < len(steps):
            failure = pod_class.failures[index]
            # Steps in a row may share what became of them.
            if failure is not None and (failure is known or not failure.may_have_passed()):
                known = failure
                index += 1
                continue
            outcome = self._attempt(pod_class, index, steps[index], pod)
            if outcome is Outcome.PLACED:
                self.steps_down += index
                return outcome
            if outcome is not Outcome.REFUSED:
                return outcome
            pod_class.fail(index, self._failure(steps[index], pod_class.asks[index]))
            index, has_tried = self._next_step(pod_class, index, tries), True
        if has_tried:
            pod_class.is_hopeless = all(failure is FOR_GOOD for failure in pod_class.failures)
        return Outcome.REFUSED

    def _next_step(self, pod_class: PodClass, failed: int, tries: list[int]) -> int:
        """Return the next step to try, the steps before it fail with the one that has."""
        steps = pod_class.steps
        last = steps.last_alike(failed)
        self.effort.spend(1)
        if last - failed < _SHORT:
            return failed + 1
        ask, failure = self.ask_of(pod_class, failed), FOR_GOOD
        following = last + 1
        if not self.asks.is_hopeless(ask):
            while tries and tries[-1] <= failed:
                tries.pop()
            if not tries:
                self.effort.spend(last - failed)
                self.asks.refresh(ask)
                tries += (last + 1, *worth_a_try(steps, failed, last, ask.alive))
            following = tries.pop()
            # What those between ask for is among what the one that has failed asks for.
            failure = self._unless(self._watched(steps[failed]))
        pod_class.fail(failed + 1, failure, following)
        return following

    def _failure(self, step: Step, ask: Ask | None) -> Failure:
        """Remember what would have to change for the step to succeed."""
        if ask is not None and self.asks.is_hopeless(ask):
            return FOR_GOOD
        for rule in step.keys:
            if not rule.is_optional and not rule.open_domains()[0]:
                return self._unless([*rule.blockers(), *self._gains(step)])
        return self._unless(self._watched(step))

    def _unless(self, blockers: list[Versioned]) -> Failure:
        if self.reservations.is_active:
            return Failure(None)
        return Failure(blockers) if blockers else FOR_GOOD

    def _watched(self, step: Step) -> list[Versioned]:
        return [*step.watched, *self._gains(step)]

    def _gains(self, step: Step) -> list[Versioned]:
        return [self.planned.gains] if step.is_patient else []

    def ask_of(self, pod_class: PodClass, index: int) -> Ask:
        """Return the ask of one step of a class."""
        ask: Ask | None = pod_class.asks[index]
        if ask is None:
            known = pod_class.steps[index].asks
            ask = known.get(id(pod_class.requests))
            if ask is None:
                ask = self.asks.of(pod_class, pod_class.steps[index])
                known[id(pod_class.requests)] = ask
            if ask.epoch != self.planned.epoch:
                self.asks.renew(ask)
            pod_class.ask(index, ask)
        return ask

    def has_host(self, pod_class: PodClass) -> bool:
        """Say whether some step of a class could be met to begin with, if by a node made for it."""
        steps, index = pod_class.steps, 0
        while index < len(steps):
            # Steps that ask the same of a node have the same ask.
            if self.asks.has_host(self.ask_of(pod_class, index)):
                return True
            self.effort.spend(1)
            index = steps.last_alike(index) + 1
        return False

    def _attempt(self, pod_class: PodClass, index: int, step: Step, pod: Pod) -> Outcome:
        choices: list[Choice] = []
        for rule in step.keys:
            domains, is_pinned = rule.open_domains()
            if not domains and not rule.is_optional:
                return Outcome.REFUSED
            choices.append((rule, domains, is_pinned))
        ask = pod_class.asks[index]
        if ask is None:
            ask = self.ask_of(pod_class, index)
        if ask.seen < self.planned.size:
            self.asks.refresh(ask)
        candidates = self._candidates(step, ask, choices)
        if candidates:
            if existing := candidates & self.planned.existing_mask:
                if self._place_on_existing(pod_class, ask, existing, pod):
                    return Outcome.PLACED
                candidates ^= existing
            if candidates and self._place_on_claim(pod_class, ask, candidates, choices, pod):
                return Outcome.PLACED
        return self._open_claim(pod_class, step, ask, choices, pod)

    def _candidates(self, step: Step, ask: Ask, choices: list[Choice]) -> int:
        """Return the nodes that have not said no, and where the pod's neighbours allow it."""
        candidates: int = ask.alive
        for group, is_selected in step.hosts:
            if group.kind is Kind.AFFINITY:
                candidates &= group.open_to(is_selected)
            elif blocked := group.blocked_for(is_selected):
                candidates ^= candidates & blocked
        for rule, domains, _ in choices:
            table = rule.table
            if rule.is_optional:
                # A claim that takes a pod which shuns domains may be in none of them from then on.
                unsure = ~self.planned.existing_mask if rule.may_appear else 0
                candidates &= table.nodes_in(domains) | ~table.anywhere | unsure
            elif rule.may_appear:
                claims_without = ~table.anywhere & ~self.planned.existing_mask
                candidates &= table.nodes_in(domains) | claims_without
            else:
                candidates &= table.nodes_in(domains)
        if candidates and ask.ports:
            candidates &= ~self.planned.with_port_clash(ask.ports)
        if self.closed:
            candidates &= ~self.closed
        return candidates

    def _place_on_existing(self, pod_class: PodClass, ask: Ask, nodes: int, pod: Pod) -> bool:
        node = None
        for each in self.preferred:
            if node is None and nodes >> each & 1:
                node = self.first_existing(pod_class, ask, 1 << each)
                nodes ^= 1 << each
        if node is None:
            node = self.first_existing(pod_class, ask, nodes)
        if node is None:
            return False
        self.fitter.record(pod_class, node, pod)
        return True

    def first_existing(self, pod_class: PodClass, ask: Ask, nodes: int) -> int | None:
        """Return the first of some existing nodes that takes a ask; it forgets those before."""
        full, found = 0, None
        demands, accepts = ask.demands, self.fitter.accepts
        while nodes:
            low = nodes & -nodes
            node = low.bit_length() - 1
            for free, amount in demands:
                if free[node] < amount:
                    break
            else:
                if accepts(pod_class, ask, node):
                    found = node
                    break
            full |= low
            nodes ^= low
        ask.alive ^= full
        return found

    def _place_on_claim(
        self, pod_class: PodClass, ask: Ask, claims: int, choices: list[Choice], pod: Pod
    ) -> bool:
        # Differs: NodeClaims of a decision with the same number of pods: Karpenter's order among
        # them follows from Go's sort, which is not stable; Karpy tries the oldest first, so that
        # equal input gives an equal plan.
        planned = self.planned
        by_count = planned.by_count
        for count in planned.counts:
            candidates = by_count[count] & claims
            if not candidates:
                continue
            claims ^= candidates
            for node in members(candidates):
                settled = self.fitter.fit(pod_class, ask, node, choices)
                if settled is not None:
                    self.fitter.add(pod_class, node, settled, pod)
                    return True
            if not claims:
                break
        return False

    def _open_claim(
        self, pod_class: PodClass, step: Step, ask: Ask, choices: list[Choice], pod: Pod
    ) -> Outcome:
        for group, is_selected in step.hosts:
            if not group.allows_alone(is_selected):
                return Outcome.REFUSED
        for template in step.reach.templates:
            options = ask.fresh.get(template.index)
            if options is None:
                options = self.asks.fresh(ask, template)
            within = self._types_within(template, pod_class) if options else 0
            has_to_wait = False
            for signature, types in options:
                left = types if within == -1 else types & within
                if not left:
                    continue
                settled = self.fitter.settle(signature, left, choices, None)
                has_to_wait = has_to_wait or settled is Refused.WAIT
                if isinstance(settled, tuple):
                    node = self.planned.open_claim(template, settled[0], settled[1])
                    self.limits.spend(template.name, settled[1])
                    self.fitter.add(pod_class, node, settled, pod)
                    return Outcome.PLACED
            if has_to_wait:
                return Outcome.WAITS
            # Neither a preference nor the weight of a NodePool gives way to a price.
            if self._is_too_dear(pod_class, ask, template, choices):
                return Outcome.TOO_DEAR
        return Outcome.REFUSED

    def _is_too_dear(
        self, pod_class: PodClass, ask: Ask, template: Template, choices: list[Choice]
    ) -> bool:
        """Say whether a new claim that is refused would be none but for its price."""
        if self.ceiling is None:
            return False
        within = self._types_within(template, pod_class, ignores_price=True)
        return any(
            isinstance(self.fitter.settle(signature, types & within, choices, None), tuple)
            for signature, types in self.asks.fresh(ask, template)
            if types & within
        )

    def _types_within(
        self, template: Template, pod_class: PodClass, *, ignores_price: bool = False
    ) -> int:
        """Return the types that limits, the price and volumes leave to a new claim; -1 for all."""
        within = self.limits.types_within(template.name)
        if self.ceiling is not None and not ignores_price:
            within &= self.signatures.cheaper_than(self.ceiling, template.signature)
        if pod_class.volumes.attachments:
            within &= self.fitter.types_attaching(None, pod_class)
        return within
