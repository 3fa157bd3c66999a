"""Quantities in the canonical form of the API server."""

import re
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Any, Final

from karpy.codec.fields import JsonObject

_FORM: Final = re.compile(
    r"(?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+))"
    r"(?:(?P<binary>[KMGTPE]i)|(?P<decimal>[numkMGTPE])|[eE](?P<exponent>[+-]?\d{1,2}))?",
    re.ASCII,
)
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL: Final = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
_SUFFIX: Final = {power: suffix for suffix, power in _DECIMAL.items()}
_SMALLEST: Final = -9
_KIBI: Final = 1024
QUANTITY_LENGTH_MAX: Final = 64
LIMIT_BOUNDS: Final = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
"""The bounds in an item of a LimitRange."""
_AMOUNT_MAX: Final = Fraction(2**63 - 1)
"""Binary amounts are capped at 64 bits; Kubernetes does not cap decimal ones."""


def canonical(value: object) -> str | None:
    """Return a quantity in canonical form: `500m` for `0.5`; None if it is no quantity."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = str(value)
    return _canonical(text) if len(text) <= QUANTITY_LENGTH_MAX else None


@lru_cache(maxsize=65536)
def _canonical(text: str) -> str | None:
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    amount = Fraction(match["number"])
    if match["binary"]:
        amount *= _KIBI ** _BINARY.index(match["binary"])
        return _binary(max(-_AMOUNT_MAX, min(amount, _AMOUNT_MAX)))
    if match["exponent"] is not None:
        amount *= Fraction(10) ** int(match["exponent"])
        power, count = _scaled(amount)
        return f"{count}e{power}" if power else str(count)
    power, count = _scaled(amount * Fraction(10) ** _DECIMAL[match["decimal"] or ""])
    return f"{count}{_SUFFIX[power]}"


def _binary(amount: Fraction) -> str:
    if -_KIBI < amount < _KIBI:
        power, count = _scaled(amount)
        return f"{count}{_SUFFIX[power]}"
    count, unit = ceil(amount), 0
    while count % _KIBI == 0 and unit < len(_BINARY) - 1:
        count, unit = count // _KIBI, unit + 1
    return f"{count}{_BINARY[unit]}"


def _scaled(amount: Fraction) -> tuple[int, int]:
    """Return the largest power of a thousand that divides an amount, and the quotient."""
    if not amount:
        return 0, 0
    power = _SMALLEST
    count = ceil(amount * 10**-_SMALLEST)
    while count % 1000 == 0 and power < _DECIMAL["E"]:
        count, power = count // 1000, power + 3
    return power, count


def amount_text(amount: int, resource: str) -> str:
    """Return an amount of a resource as a canonical quantity."""
    if resource == "cpu" or resource.endswith(".cpu"):
        return _canonical(f"{amount}m") or ""
    if resource.endswith(("memory", "storage")) and amount >= _KIBI and amount % _KIBI == 0:
        return _binary(Fraction(amount))
    return _canonical(str(amount)) or ""


def canonical_amounts(amounts: JsonObject) -> JsonObject:
    """Make all quantities of a map canonical; leave invalid ones for the checks."""
    new: dict[str, Any] = {}
    is_same = True
    for name, value in amounts.items():
        text = canonical(value)
        if text is None or text == value:
            new[name] = value
        else:
            new[name] = text
            is_same = False
    return amounts if is_same else new
