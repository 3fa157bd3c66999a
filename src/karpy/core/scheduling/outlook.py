"""What other pods leave open at each step of a ladder: which steps are worth a try."""

from typing import TypeAlias

from karpy.core.scheduling.groups import HostGroup
from karpy.core.scheduling.steps import KeyRule, Steps

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
                # A label that no node has, and nobody to be away from.
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
