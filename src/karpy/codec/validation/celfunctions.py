"""
Functions that Kubernetes adds to CEL: regular expressions, lists, sets, quantities.

Types that are no plain values, such as quantities, are objects here, equal if their fields are.
"""

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any, Final

from karpy.codec.fields import JsonObject
from karpy.codec.validation.celaddresses import ADDRESS_FUNCTIONS
from karpy.codec.validation.cellibrary import CelFunction, method

_QUANTITY: Final = re.compile(
    r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?"
)
_SUFFIXES: Final = {
    **{
        unit: Decimal(1024) ** at
        for at, unit in enumerate(("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))
    },
    **{unit: Decimal(1000) ** (at - 3) for at, unit in enumerate("num")},
    **{unit: Decimal(1000) ** (at + 1) for at, unit in enumerate("kMGTPE")},
}


def _find(text: str, pattern: str) -> str:
    found = re.search(pattern, text, re.ASCII)
    return found[0] if found else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found = [each[0] for each in re.finditer(pattern, text, re.ASCII)]
    return found if limit < 0 else found[:limit]


def _is_sorted(values: Sequence[Any]) -> bool:
    return all(first <= second for first, second in pairwise(values))


def _quantity(text: str) -> JsonObject:
    found = _QUANTITY.fullmatch(text)
    if not found:
        msg = f"quantity {text!r} cannot be read"
        raise ValueError(msg)
    number, suffix = Decimal(found[1]), found[2] or ""
    if suffix in _SUFFIXES:
        return _as_object(number * _SUFFIXES[suffix])
    return _as_object(number.scaleb(int(suffix[1:])))


def _as_object(number: Decimal) -> JsonObject:
    return {"quantity": format(number.normalize(), "f")}


def _number(quantity: JsonObject | int) -> Decimal:
    return Decimal(quantity["quantity"] if isinstance(quantity, dict) else quantity)


def _is_quantity(text: str) -> bool:
    return _QUANTITY.fullmatch(text) is not None


def _compared(first: JsonObject, second: JsonObject) -> int:
    return (_number(first) > _number(second)) - (_number(first) < _number(second))


def _is_integer(quantity: JsonObject) -> bool:
    number = _number(quantity)
    return number == number.to_integral_value() and -(2**63) <= number < 2**63


def _as_integer(quantity: JsonObject) -> int:
    if not _is_integer(quantity):
        msg = "cannot convert value to integer"
        raise ValueError(msg)
    return int(_number(quantity))


def _quantity_functions() -> list[CelFunction]:
    one, two = ("object",), ("object", "object")
    sums: list[tuple[str, Callable[[JsonObject, JsonObject | int], JsonObject]]] = [
        ("add", lambda a, b: _as_object(_number(a) + _number(b))),
        ("sub", lambda a, b: _as_object(_number(a) - _number(b))),
    ]
    return [
        CelFunction("quantity", ("string",), "object", _quantity),
        CelFunction("isQuantity", ("string",), "bool", _is_quantity),
        method("compareTo", two, "int", _compared),
        method("isGreaterThan", two, "bool", lambda a, b: _compared(a, b) > 0),
        method("isLessThan", two, "bool", lambda a, b: _compared(a, b) < 0),
        method("sign", one, "int", lambda a: _compared(a, _as_object(Decimal(0)))),
        method("isInteger", one, "bool", _is_integer),
        method("asInteger", one, "int", _as_integer),
        method("asApproximateFloat", one, "double", lambda a: float(_number(a))),
        *(method(name, two, "object", call) for name, call in sums),
        *(method(name, ("object", "int"), "object", call) for name, call in sums),
    ]


FUNCTIONS: Final = (
    method("find", ("string", "string"), "string", _find),
    method("findAll", ("string", "string"), "list", _find_all),
    method("findAll", ("string", "string", "int"), "list", _find_all),
    method("isSorted", ("list",), "bool", _is_sorted),
    method("sum", ("list",), "dyn", sum),
    method("min", ("list",), "dyn", min),
    method("max", ("list",), "dyn", max),
    CelFunction("sets.contains", ("list", "list"), "bool", lambda a, b: all(x in a for x in b)),
    CelFunction("sets.intersects", ("list", "list"), "bool", lambda a, b: any(x in a for x in b)),
    CelFunction(
        "sets.equivalent",
        ("list", "list"),
        "bool",
        lambda a, b: all(x in a for x in b) and all(x in b for x in a),
    ),
    *_quantity_functions(),
    *ADDRESS_FUNCTIONS,
)
"""All supported functions; docs/crds.md lists those that are missing."""
