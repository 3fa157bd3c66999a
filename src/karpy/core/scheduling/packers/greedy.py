"""Places pods one by one as Karpenter does: on the first node that takes the pod."""

from collections.abc import Sequence
from enum import Enum
from typing import TypeAlias

from karpy.core.scheduling.effort import Effort
from karpy.core.scheduling.instancetypes import members
from karpy.core.scheduling.limits import Limits, ReservationRefusal, Reservations
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
from karpy.core.scheduling.topologygroups import GroupKind, HostGroup
from karpy.model.instances import Catalog
from karpy.model.pods import Pod

_Open: TypeAlias = tuple[int, bool, bool, bool]
"""The state of a key: open domains, is_pinned, is_optional, and whether no pod is to avoid."""


def steps_worth_trying(steps: Steps, failed: int, last: int, nodes: int) -> list[int]:
    """
    List the steps after a failed one at which more nodes or domains are open, last step first.

    All steps up to `last` have equal node rules, and each drops one group of the step before it. A
    step at which the same is open as at the step before fails as well. `nodes` may take the pod.
    """
    openness = _Openness(steps, last, nodes)
    return [index + 1 for index in range(last - 1, failed - 1, -1) if openness.narrows_at(index)]


class _Openness:
    """The nodes and domains that the groups of a step leave open, from the last step upwards."""

    def __init__(self, steps: Steps, last: int, nodes: int) -> None:
        self._steps = steps
        self._node_rules = steps.prepared_rules(last).node_rules
        self._nodes, self._is_alone = nodes, True
        for host, is_selected in steps[last].hosts:
            self._add_host(host, is_selected)
        self._keys = {rule.table.key: _open(rule) for rule in steps[last].keys}
        self._is_closed = any(map(_is_closed, self._keys.values())) or self._has_no_node()

    def narrows_at(self, index: int) -> bool:
        """Go up to a step; say whether less is open there than at the step below."""
        # Where nothing is open for a step, nothing is open for the steps above it.
        if self._is_closed:
            return False
        group, is_selected = self._steps.dropped(index)
        if isinstance(group, HostGroup):
            before = self._nodes, self._is_alone
            self._add_host(group, is_selected)
            self._is_closed = self._has_no_node()
            return before != (self._nodes, self._is_alone)
        rule = KeyRule(group.domains, self._node_rules)
        rule.add(group, is_selected)
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
                # No node has the label, and no pod is to avoid.
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
"""Up to so many steps with equal node rules are tried one by one."""


class PlacingResult(Enum):
    """The result of an attempt to place a pod."""

    PLACED = "placed"
    REFUSED = "refused"
    WAITS = "waits for a reservation"
    TOO_DEAR = "needs a node that costs too much"


class Packer:
    """Places pods one after the other; nearly all its state is in the planned nodes."""

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
        """Existing nodes to try before all others for the pod to be placed, best first."""
        self.ceiling: int | None = None
        """A new node must cost less, in micro-dollars per hour; None for no bound."""
        self.steps_down = 0
        """The number of steps that all placed pods together went down their ladders."""

    def place(self, pod_class: PodClass, pod: Pod) -> PlacingResult:
        """Find a place for one pod, at the first step of its ladder that succeeds."""
        steps = pod_class.steps
        index, has_tried = 0, False
        known: Failure | None = None
        tries: list[int] = []
        while index < len(steps):
            failure = pod_class.failures[index]
            # Steps in a row may share a failure.
            if failure is not None and (failure is known or not failure.is_outdated()):
                known = failure
                index += 1
                continue
            outcome = self._attempt(pod_class, index, steps[index], pod)
            if outcome is PlacingResult.PLACED:
                self.steps_down += index
                return outcome
            if outcome is not PlacingResult.REFUSED:
                return outcome
            pod_class.fail(index, self._failure(steps[index], pod_class.asks[index]))
            index, has_tried = self._next_step(pod_class, index, tries), True
        if has_tried:
            pod_class.is_hopeless = all(failure is FOR_GOOD for failure in pod_class.failures)
        return PlacingResult.REFUSED

    def _next_step(self, pod_class: PodClass, failed: int, tries: list[int]) -> int:
        """Return the next step worth trying; note a failure for the steps before it."""
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
                tries += (last + 1, *steps_worth_trying(steps, failed, last, ask.alive))
            following = tries.pop()
            # The groups of the steps between are among those of the failed step.
            failure = self._unless(self._watched(steps[failed]))
        pod_class.fail(failed + 1, failure, following)
        return following

    def _failure(self, step: Step, ask: Ask | None) -> Failure:
        """Return the failure of a step, with what must change before another try."""
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
        return [self.planned.label_gains] if step.retries_on_gains else []

    def ask_of(self, pod_class: PodClass, index: int) -> Ask:
        """Return the ask of one step of a class, valid for this epoch."""
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
        """Say whether an existing node or a new claim can meet the ask of some step."""
        steps, index = pod_class.steps, 0
        while index < len(steps):
            # Steps with equal node rules have the same ask.
            if self.asks.has_host(self.ask_of(pod_class, index)):
                return True
            self.effort.spend(1)
            index = steps.last_alike(index) + 1
        return False

    def _attempt(self, pod_class: PodClass, index: int, step: Step, pod: Pod) -> PlacingResult:
        choices: list[Choice] = []
        for rule in step.keys:
            domains, is_pinned = rule.open_domains()
            if not domains and not rule.is_optional:
                return PlacingResult.REFUSED
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
                    return PlacingResult.PLACED
                candidates ^= existing
            if candidates and self._place_on_claim(pod_class, ask, candidates, choices, pod):
                return PlacingResult.PLACED
        return self._open_claim(pod_class, step, ask, choices, pod)

    def _candidates(self, step: Step, ask: Ask, choices: list[Choice]) -> int:
        """Return the nodes that may meet the ask, and that topology and ports allow."""
        candidates: int = ask.alive
        for group, is_selected in step.hosts:
            if group.kind is GroupKind.AFFINITY:
                candidates &= group.open_to(is_selected)
            elif blocked := group.blocked_for(is_selected):
                candidates ^= candidates & blocked
        for rule, domains, _ in choices:
            table = rule.table
            if rule.is_optional:
                # With the pod, a claim may be in no domain at all, which anti-affinities allow.
                unsure = ~self.planned.existing_mask if rule.pod_names_key else 0
                candidates &= table.nodes_in(domains) | ~table.anywhere | unsure
            elif rule.pod_names_key:
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
        """Return the first of some existing nodes that meets an ask; drop the nodes before it."""
        full, found = 0, None
        amounts, accepts = ask.amounts, self.fitter.accepts
        while nodes:
            low = nodes & -nodes
            node = low.bit_length() - 1
            for free, amount in amounts:
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
                change = self.fitter.fit(pod_class, ask, node, choices)
                if change is not None:
                    self.fitter.add(pod_class, node, change, pod)
                    return True
            if not claims:
                break
        return False

    def _open_claim(
        self, pod_class: PodClass, step: Step, ask: Ask, choices: list[Choice], pod: Pod
    ) -> PlacingResult:
        for group, is_selected in step.hosts:
            if not group.allows_alone(is_selected):
                return PlacingResult.REFUSED
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
                change = self.fitter.choose_domains(signature, left, choices, None)
                has_to_wait = has_to_wait or change is ReservationRefusal.WAIT
                if isinstance(change, tuple):
                    node = self.planned.open_claim(template, change[0], change[1])
                    self.limits.spend(template.name, change[1])
                    self.fitter.add(pod_class, node, change, pod)
                    return PlacingResult.PLACED
            if has_to_wait:
                return PlacingResult.WAITS
            # No preference is dropped and no NodePool of lower weight tried to save money.
            if self._is_too_dear(pod_class, ask, template, choices):
                return PlacingResult.TOO_DEAR
        return PlacingResult.REFUSED

    def _is_too_dear(
        self, pod_class: PodClass, ask: Ask, template: Template, choices: list[Choice]
    ) -> bool:
        """Say whether a new claim is refused only because of its price."""
        if self.ceiling is None:
            return False
        within = self._types_within(template, pod_class, ignores_price=True)
        return any(
            isinstance(self.fitter.choose_domains(signature, types & within, choices, None), tuple)
            for signature, types in self.asks.fresh(ask, template)
            if types & within
        )

    def _types_within(
        self, template: Template, pod_class: PodClass, *, ignores_price: bool = False
    ) -> int:
        """Return the types (-1: all) that limits, price and volumes leave to a new claim."""
        within = self.limits.types_within(template.name)
        if self.ceiling is not None and not ignores_price:
            within &= self.signatures.cheaper_than(self.ceiling, template.signature)
        if pod_class.volumes.attachments:
            within &= self.fitter.types_attaching(None, pod_class)
        return within
