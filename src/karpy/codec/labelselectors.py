"""Label selectors as kubectl and manifests write them, and what they match."""

import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Final, NoReturn

from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.codec.syntax import is_label_key, is_label_value
from karpy.errors import BadRequest
from karpy.model.requirements import Operator, as_integer

SELECTOR_LENGTH_MAX: Final = 65_536
"""Longest label or field selector, in characters; also the longest line of a request."""
_TOKEN: Final = re.compile(r"\s*(==|!=|[=!<>(),]|[^\s=!<>(),]+)")
_SYMBOLS: Final = frozenset({"==", "!=", "=", "!", "<", ">", "(", ")", ","})
_BINARY: Final = "in, notin, =, ==, !=, gt, lt"
_BAD_REQUEST: Final = 400
_IN: Final = Operator.IN
"""A module constant, because looking up the member of the enum takes longer than comparing."""
_UNABLE: Final = "unable to parse requirement"
LABEL_KEY_RULE: Final = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
LABEL_VALUE_RULE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  "
    "or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


class LabelRule(Struct, frozen=True, gc=False):
    """One condition on one label."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Say whether labels meet the condition; NotIn is met by a label that is not there."""
        value = labels.get(self.key)
        if self.operator is _IN:
            return value in self.values
        match self.operator:
            case Operator.NOT_IN:
                return value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.DOES_NOT_EXIST:
                return value is None
        return self._is_beyond(value)

    def _is_beyond(self, value: str | None) -> bool:
        number, bound = _whole(value), _whole(next(iter(self.values)))
        if number is None or bound is None:
            return False
        return number > bound if self.operator is Operator.GT else number < bound


class Selector(Struct, frozen=True, gc=False):
    """Conditions that must all hold; without conditions it selects everything."""

    rules: tuple[LabelRule, ...] = ()

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        """Say whether labels meet all conditions; None counts as no labels."""
        rules, labels = self.rules, labels or {}
        if len(rules) == 1:
            return rules[0].holds(labels)
        return all(rule.holds(labels) for rule in rules)


ANY_LABELS: Final = Selector()


def read_label_selector(text: str) -> Selector:
    """Read `app=web,tier in (a,b),!old`; raise BadRequest if it cannot be read."""
    if len(text) > SELECTOR_LENGTH_MAX:
        _refuse(f"a selector of {len(text)} characters, expected: {SELECTOR_LENGTH_MAX} or less")
    return _read(text)


@lru_cache(maxsize=4096)
def _read(text: str) -> Selector:
    tokens = _tokens(text)
    rules = []
    while tokens:
        rules.append(_rule(tokens))
        if not tokens:
            break
        comma = tokens.popleft()
        if comma != ",":
            _refuse(f"found '{comma}', expected: ',' or 'end of string'")
        if not tokens:
            _refuse("found '', expected: identifier after ','")
    return Selector(tuple(rules))


def selector_of(selector: JsonObject | None) -> Selector | None:
    """Read a LabelSelector object; None, which selects nothing, stays None."""
    if selector is None:
        return None
    rules = [equal(key, value) for key, value in (selector.get("matchLabels") or {}).items()]
    for each in selector.get("matchExpressions") or ():
        values = frozenset(each.get("values") or ())
        rules.append(LabelRule(each["key"], Operator(each["operator"]), values))
    return Selector(tuple(rules))


def selector_of_map(labels: Mapping[str, str] | None) -> Selector | None:
    """Read the selector of a Service or ReplicationController; an empty one selects nothing."""
    return Selector(tuple(equal(*each) for each in labels.items())) if labels else None


def equal(key: str, value: str) -> LabelRule:
    """Make the rule that a label has this value."""
    return LabelRule(key, Operator.IN, frozenset((value,)))


def label_selector_text(selector: Selector) -> str:
    """Write a selector the way an API server does, for `scale` and messages."""
    return ",".join(_rule_text(rule) for rule in sorted(selector.rules, key=_by_key))


def _by_key(rule: LabelRule) -> tuple[str, str]:
    return rule.key, rule.operator.value


def _rule_text(rule: LabelRule) -> str:
    values = ",".join(sorted(rule.values))
    match rule.operator:
        case Operator.IN if len(rule.values) == 1:
            return f"{rule.key}={values}"
        case Operator.IN:
            return f"{rule.key} in ({values})"
        case Operator.NOT_IN:
            return f"{rule.key} notin ({values})"
        case Operator.EXISTS:
            return rule.key
        case Operator.DOES_NOT_EXIST:
            return f"!{rule.key}"
        case Operator.GT:
            return f"{rule.key}>{values}"
    return f"{rule.key}<{values}"


def _tokens(text: str) -> deque[str]:
    return deque(match[1] for match in _TOKEN.finditer(text.strip()))


def _rule(tokens: deque[str]) -> LabelRule:
    first = tokens.popleft()
    if first == "!":
        return LabelRule(_key(tokens), Operator.DOES_NOT_EXIST)
    if first in _SYMBOLS:
        _refuse(f"found '{first}', expected: !, identifier, or 'end of string'")
    key = _valid_key(first)
    if not tokens or tokens[0] == ",":
        return LabelRule(key, Operator.EXISTS)
    operator = tokens.popleft()
    make = _OPERATORS.get(operator)
    if make is None:
        _refuse(f"{_UNABLE}: found '{operator}', expected: {_BINARY}")
    return make(key, tokens)


def _one(key: str, operator: Operator, tokens: deque[str]) -> LabelRule:
    # `a=` and `a=,b` ask for the empty value.
    value = "" if not tokens or tokens[0] == "," else tokens.popleft()
    if value in _SYMBOLS:
        _refuse(f"{_UNABLE}: found '{value}', expected: identifier")
    if not is_label_value(value):
        _refuse(f'{_UNABLE}: values[0][{key}]: Invalid value: "{value}": {LABEL_VALUE_RULE}')
    return LabelRule(key, operator, frozenset((value,)))


def _bound(key: str, operator: Operator, tokens: deque[str]) -> LabelRule:
    rule = _one(key, operator, tokens)
    if _whole(next(iter(rule.values))) is None:
        _refuse(
            f'{_UNABLE}: values[0]: Invalid value: "{next(iter(rule.values))}": '
            "for 'Gt', 'Lt' operators, the value must be an integer"
        )
    return rule


def _several(key: str, operator: Operator, tokens: deque[str]) -> LabelRule:
    first = tokens.popleft() if tokens else ""
    if first != "(":
        _refuse(f"{_UNABLE}: found '{first}' expected: '('")
    values, is_open = [""], True
    while is_open:
        if not tokens:
            _refuse(f"{_UNABLE}: found '', expected: ',' or ')'")
        match tokens.popleft():
            case ")":
                is_open = False
            case ",":
                values.append("")
            case value:
                values[-1] = value
    for index, value in enumerate(values):
        if not is_label_value(value):
            _refuse(
                f'{_UNABLE}: values[{index}][{key}]: Invalid value: "{value}": {LABEL_VALUE_RULE}'
            )
    return LabelRule(key, operator, frozenset(values))


_OPERATORS: Final[dict[str, Callable[[str, deque[str]], LabelRule]]] = {
    "=": lambda key, tokens: _one(key, Operator.IN, tokens),
    "==": lambda key, tokens: _one(key, Operator.IN, tokens),
    "!=": lambda key, tokens: _one(key, Operator.NOT_IN, tokens),
    "in": lambda key, tokens: _several(key, Operator.IN, tokens),
    "notin": lambda key, tokens: _several(key, Operator.NOT_IN, tokens),
    ">": lambda key, tokens: _bound(key, Operator.GT, tokens),
    "<": lambda key, tokens: _bound(key, Operator.LT, tokens),
}


def _key(tokens: deque[str]) -> str:
    if not tokens or tokens[0] in _SYMBOLS:
        found = tokens[0] if tokens else ""
        _refuse(f"{_UNABLE}: found '{found}', expected: identifier")
    return _valid_key(tokens.popleft())


def _valid_key(key: str) -> str:
    if not is_label_key(key):
        _refuse(f'{_UNABLE}: <nil>: Invalid value: "{key}": {LABEL_KEY_RULE}')
    return key


def _refuse(problem: str) -> NoReturn:
    raise BadRequest(
        problem, status=_BAD_REQUEST, hint="write a selector such as `app=web,tier in (a,b),!old`"
    )


def _whole(text: str | None) -> int | None:
    return None if text is None else as_integer(text)


def labels_of(obj: JsonObject) -> Mapping[str, str]:
    """Return the labels of an object, empty if it has none."""
    labels: Mapping[str, str] = obj["metadata"].get("labels") or {}
    return labels


def matching(selector: Selector, objects: Iterable[JsonObject]) -> list[JsonObject]:
    """Keep the objects whose labels match."""
    return [each for each in objects if selector.matches(each["metadata"].get("labels"))]
