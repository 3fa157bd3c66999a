"""CEL rules of a schema, compiled, with faults in the words of an API server."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final

from msgspec import Struct

from karpy.codec.validation.celfunctions import FUNCTIONS
from karpy.codec.validation.cellibrary import CelExpression, Environment, is_error, new_environment
from karpy.codec.validation.correlation import NOTHING
from karpy.codec.validation.faults import Fault, FaultKind, Omitted

_SELF: Final = re.compile(r"\b(?:self|oldSelf)\b(?:\.([A-Za-z_]\w*)\b(?!\s*\())?", re.ASCII)
_OLD_SELF: Final = re.compile(r"\boldSelf\b", re.ASCII)
_FIELD: Final = re.compile(r"\.([^.\[\]]+)|\['((?:[^'\\]|\\.)*)'\]")
_IMMUTABLE: Final = re.compile(r"\s*(?:self\s*==\s*oldSelf|oldSelf\s*==\s*self)\s*")
_MESSAGE_MAX: Final = 5120
_REASONS: Final = {
    "FieldValueForbidden": FaultKind.FORBIDDEN,
    "FieldValueRequired": FaultKind.REQUIRED,
    "FieldValueDuplicate": FaultKind.DUPLICATE,
}
_ERRORS: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (re.compile(r'NOT_FOUND: Key not found in map : "?([^"]*)"?'), r"no such key: \1"),
    (re.compile(r"\w+: Index error: index=(-?\d+).*"), r"index out of bounds: \1"),
    (re.compile(r"\w+: divide by zero"), "division by zero"),
    (re.compile(r"\w+: modulus by zero"), "modulus by zero"),
    (
        re.compile(r"\w+: cannot convert string to int"),
        "type conversion error from 'string' to 'int'",
    ),
    (re.compile(r"\w+: No matching overloads found : (.*)"), r"no such overload: \1"),
    (
        re.compile(r"\w+: Iteration budget exceeded.*"),
        "validation failed due to running out of cost budget",
    ),
)
_OPTIONAL_OLD_SELF: Final = (
    "cel.bind(oldSelf, size(olds) > 0 ? optional.of(olds[0]) : optional.none(), {rule}\n)"
)


class CelError(Struct, frozen=True):
    """The error of an expression."""

    problem: str


class CelRule(Struct, frozen=True):
    """One rule of a schema."""

    source: Mapping[str, Any]
    type: str
    """The schema type of the values that it checks."""
    test: Callable[[Mapping[str, object]], object]
    """Returns True, False, or a CelError."""
    message_expression: CelExpression | None
    """Computes the message, if the rule has a `messageExpression`."""
    field: str
    is_transition: bool
    is_optional: bool
    """Whether a transition rule is evaluated even without an old value."""

    def fault(self, value: object, old: object, path: str, shown: object) -> Fault | None:
        """
        Evaluate the rule for a value; None if it holds or does not apply.

        `shown` is the value as the user wrote it.
        """
        if self.is_transition and old is NOTHING and not self.is_optional:
            return None
        data = {"self": value, "oldSelf": None if old is NOTHING else old}
        data["olds"] = [] if old is NOTHING else [old]
        answer = self.test(data)
        if answer is True:
            return None
        if answer is not False:
            detail = self._broken(answer)
            return Fault(FaultKind.INVALID, path, self.type, detail, is_broken=True)
        where = ".".join(each for each in (path, self.field) if each)
        kind = _REASONS.get(self.source.get("reason", ""), FaultKind.INVALID)
        if isinstance(shown, dict | list):
            shown = Omitted.VALUE
        detail = "" if kind is FaultKind.DUPLICATE else self._message(data)
        return Fault(kind, where, shown, detail)

    def _message(self, data: Mapping[str, object]) -> str:
        if self.message_expression is not None:
            message = _answer(self.message_expression, data)
            text = message.strip() if isinstance(message, str) else ""
            if text and "\n" not in text and len(text) <= _MESSAGE_MAX:
                return text
        return self._name() if self.source.get("message") else f"failed rule: {self._name()}"

    def _name(self) -> str:
        return str(self.source.get("message") or self.source["rule"]).strip()

    def _broken(self, answer: object) -> str:
        error = answer.problem if isinstance(answer, CelError) else str(answer)
        for pattern, words in _ERRORS:
            if pattern.fullmatch(error):
                error = pattern.sub(words, error)
                break
        if error.startswith("no such overload"):
            return (
                f"'{error}': call arguments did not match a supported operator, function or macro "
                f"signature for rule: {self._name()}"
            )
        return f"{error} evaluating rule: {self._name()}"


@cache
def _environment() -> Environment:
    return new_environment(FUNCTIONS)


def compile_rule(source: Mapping[str, Any], type_: str) -> CelRule | None:
    """Compile one entry of `x-kubernetes-validations`; None if it cannot be compiled."""
    text = source["rule"]
    is_transition = bool(_OLD_SELF.search(text))
    is_optional = is_transition and bool(source.get("optionalOldSelf"))
    if _IMMUTABLE.fullmatch(text) and not is_optional:
        test: Callable[[Mapping[str, object]], object] | None = _is_unchanged
    else:
        test = compile_test(_OPTIONAL_OLD_SELF.format(rule=text) if is_optional else text)
    if test is None:
        return None
    return CelRule(
        source,
        type_,
        test,
        _compiled(source["messageExpression"]) if source.get("messageExpression") else None,
        _field_path(source.get("fieldPath", "")),
        is_transition,
        is_optional,
    )


def _is_unchanged(data: Mapping[str, object]) -> bool:
    """Evaluate the most common rule without CEL, which would copy both values."""
    return data["self"] == data["oldSelf"]


def compile_test(text: str) -> Callable[[Mapping[str, object]], object] | None:
    """Compile an expression to a function of its variables; None if it cannot be compiled."""
    expression = _compiled(text)
    if expression is None:
        return None
    fields = _fields_used(text)
    if fields is None:
        return lambda data: _answer(expression, data)

    def test(data: Mapping[str, object]) -> object:
        return _answer(expression, {name: _cut(value, fields) for name, value in data.items()})

    return test


def _answer(expression: CelExpression, data: Mapping[str, object]) -> object:
    """Return the value of an expression, or its error."""
    try:
        answer = expression.eval(data=data)
    except RuntimeError as error:
        # It exceeds its cost budget, or a variable is no value of CEL.
        return CelError(str(error))
    value = answer.value()
    is_answer = isinstance(value, bool) or not is_error(answer)
    return value if is_answer else CelError(str(value))


def compile_conjunction(sources: Sequence[Mapping[str, Any]]) -> Callable[..., object] | None:
    """Compile rules to one test that is True if all of them hold."""
    return compile_test(" && ".join(f"({each['rule']}\n)" for each in sources))


def _compiled(text: str) -> CelExpression | None:
    try:
        return _environment().compile(text)
    except RuntimeError:
        return None


def _fields_used(text: str) -> frozenset[str] | None:
    """Return the fields of `self` that a rule reads; None if it may read any."""
    names = [found[1] for found in _SELF.finditer(text)]
    return None if None in names or "olds" in text else frozenset(names)


def _cut(value: object, fields: frozenset[str]) -> object:
    """Keep only the fields that a rule reads: passing a value to CEL takes time."""
    if not isinstance(value, dict):
        return value
    return {key: value[key] for key in fields if key in value}


def _field_path(path: str) -> str:
    parts = _FIELD.findall(path)
    return "".join(f".{name}" if name else f"[{key}]" for name, key in parts).removeprefix(".")
