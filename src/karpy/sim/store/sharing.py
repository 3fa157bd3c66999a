"""Shared immutable objects: cached derivations, and changes that share unchanged parts."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from karpy.codec.fields import JsonObject

A = TypeVar("A")
K = TypeVar("K")
R = TypeVar("R")

_REMEMBERED_MAX: Final = 8192
_NEEDED: Final = frozenset({"containers"})
"""Lists that are kept even if empty."""
_EMPTY: Final = (None, "")


def remembered(make: Callable[[A], R], most: int = _REMEMBERED_MAX) -> Callable[[A], R]:
    """
    Cache a function of shared objects by the identity of the object.

    Objects never change, so that the same object always has the same result: thousands of pods of
    one ReplicaSet share one `spec` and all that is derived from it.
    """
    answers: dict[int, tuple[A, R]] = {}

    def answer(obj: A) -> R:
        known = answers.get(id(obj))
        if known is not None:
            return known[1]
        made = make(obj)
        if len(answers) >= most:
            answers.clear()
        # Keep a reference to the object, so that its id is not reused.
        answers[id(obj)] = (obj, made)
        return made

    return answer


def remembered_with(make: Callable[[A, K], R], most: int = _REMEMBERED_MAX) -> Callable[[A, K], R]:
    """
    Cache a function of a shared object, by its identity, and of a hashable key.

    For short-lived keys, such as the time, a small cache is enough.
    """
    answers: dict[tuple[int, K], tuple[A, R]] = {}

    def answer(obj: A, other: K) -> R:
        known = answers.get((id(obj), other))
        if known is not None:
            return known[1]
        made = make(obj, other)
        if len(answers) >= most:
            answers.clear()
        answers[id(obj), other] = (obj, made)
        return made

    return answer


class Interned:
    """
    A change of objects that interns equal ones.

    Equal objects get the identical result, which other functions can cache by identity: thousands
    of pods share one `spec` although each was created with its own.
    """

    def __init__(self, change: Callable[[JsonObject], JsonObject]) -> None:
        self._same = remembered(self._equal)
        self._change = change
        self._answers: dict[bytes, JsonObject] = {}

    def __call__(self, obj: JsonObject) -> JsonObject:
        return self._same(obj)

    def _equal(self, obj: JsonObject) -> JsonObject:
        content = msgspec.json.encode(obj)
        answer = self._answers.get(content)
        if answer is None:
            if len(self._answers) >= _REMEMBERED_MAX:
                self._answers.clear()
            answer = self._answers[content] = self._change(obj)
        return answer


def filled(obj: JsonObject, defaults: Mapping[str, Any]) -> JsonObject:
    """Return an object with defaults for what is missing, null or an empty text."""
    missing = {key: value for key, value in defaults.items() if obj.get(key) in _EMPTY}
    return {**obj, **missing} if missing else obj


def changed(obj: JsonObject, key: str, change: Callable[[Any], Any]) -> JsonObject:
    """Return an object with one field changed, if it is there."""
    value = obj.get(key)
    if value is None:
        return obj
    new = change(value)
    return obj if new is value else {**obj, key: new}


def each_changed(change: Callable[[JsonObject], JsonObject]) -> Callable[[list[Any]], list[Any]]:
    """Lift a change of objects to lists; an unchanged list is shared."""

    def change_items(items: list[Any]) -> list[Any]:
        new = [change(item) if isinstance(item, dict) else item for item in items]
        return new if any(a is not b for a, b in zip(new, items, strict=True)) else items

    return change_items


def without_nulls(obj: JsonObject) -> JsonObject:
    """
    Return an object without null fields and empty lists, as typed servers do.

    An object without such fields is returned itself.
    """
    # Searching its JSON is far faster than visiting every field.
    text = msgspec.json.encode(obj)
    return _stripped(obj) if b"null" in text or b"[]" in text else obj


def _stripped(obj: JsonObject) -> JsonObject:
    new = {
        key: _without_nulls(value)
        for key, value in obj.items()
        if value is not None and (value != [] or key in _NEEDED)
    }
    is_same = len(new) == len(obj) and all(new[key] is obj[key] for key in new)
    return obj if is_same else new


def _without_nulls(value: object) -> object:
    if isinstance(value, dict):
        return _stripped(value)
    if isinstance(value, list):
        items = [_without_nulls(each) for each in value]
        return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
    return value
