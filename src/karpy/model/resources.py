"""
Quantities and resource vectors as integers.

CPU is in thousandths of a core, every other resource in whole units (bytes, pods, devices), rounded
up: a pod never gets less than it requests.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, TypeAlias

Resources: TypeAlias = Mapping[str, int]
"""Amounts by resource name; treat as immutable. An absent name means zero."""

CPU: Final = "cpu"
MEMORY: Final = "memory"
PODS: Final = "pods"
NODES: Final = "nodes"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
HUGEPAGES_PREFIX: Final = "hugepages-"

_BINARY: Final = {f"{prefix}i": 1024**power for power, prefix in enumerate("KMGTPE", start=1)}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0} | {
    prefix: 3 * power for power, prefix in enumerate("kMGTPE", start=1)
}
_QUANTITY: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?"
    r"(?:(?P<binary>[KMGTPE]i)|[eE](?P<exponent>[+-]?[0-9]+)|(?P<decimal>[numkMGTPE]?))",
    re.ASCII,
)
_QUANTITY_PARTS: Final = re.compile(
    r"(?P<amount>[0-9]{1,18})(?P<suffix>[KMGTPE]i|[kMGTPE]?)", re.ASCII
)
_BINARY_SUFFIXES: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL_SUFFIXES: Final = ("", "k", "M", "G", "T", "P", "E")
AMOUNT_MAX: Final = 2**63 - 1
"""The largest int64, which is the largest amount and the largest sum in Kubernetes."""
QUANTITY_LENGTH_MAX: Final = 256
# With at most QUANTITY_LENGTH_MAX digits, no larger exponent changes the result. Without the limit,
# `1e999999999` would compute for minutes.
_EXPONENT_MAX: Final = 2 * QUANTITY_LENGTH_MAX


def parse_quantity(text: str, resource: str) -> int:
    """
    Read a Kubernetes quantity; raise ValueError if the text is not one.

    Amounts are capped at 64 bits, as in Kubernetes.
    """
    return _parse(text, 1000 if resource == CPU or resource.endswith(".cpu") else 1)


@lru_cache(maxsize=16384)
def _parse(text: str, scale: int) -> int:
    match = _QUANTITY.fullmatch(text) if len(text) <= QUANTITY_LENGTH_MAX else None
    if match is None or not (match["whole"] or match["part"]):
        msg = f"`{text}` is not a quantity"
        raise ValueError(msg)
    part = match["part"] or ""
    numerator = int((match["whole"] or "0") + part) * scale
    exponent = -len(part)
    if match["binary"]:
        numerator *= _BINARY[match["binary"]]
    else:
        exponent += int(match["exponent"] or _DECIMAL[match["decimal"] or ""])
    if match["sign"] == "-":
        numerator = -numerator
    exponent = max(-_EXPONENT_MAX, min(exponent, _EXPONENT_MAX))
    amount = numerator * int(10 ** max(exponent, 0))
    amount = -(-amount // int(10 ** max(-exponent, 0)))
    return max(-AMOUNT_MAX, min(amount, AMOUNT_MAX))


def format_quantity(amount: int, resource: str) -> str:
    """Write an amount as a quantity: `1500m`, `4`, `2Gi`."""
    if resource == CPU or resource.endswith(".cpu"):
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    for suffix in ("Ti", "Gi", "Mi", "Ki"):
        unit = _BINARY[suffix]
        if amount and amount % unit == 0:
            return f"{amount // unit}{suffix}"
    return str(amount)


def canonical_quantity(text: str) -> str:
    """Write a whole quantity as Kubernetes does: `1024Mi` is `1Gi`, `2000M` is `2G`."""
    match = _QUANTITY_PARTS.fullmatch(text)
    if match is None:
        return text
    amount, suffix = int(match["amount"]), match["suffix"]
    units = _BINARY_SUFFIXES if suffix.endswith("i") else _DECIMAL_SUFFIXES
    base, place = 1024 if suffix.endswith("i") else 1000, units.index(suffix)
    while amount and amount % base == 0 and place + 1 < len(units):
        amount, place = amount // base, place + 1
    return f"{amount}{units[place]}"


def add(*vectors: Resources) -> dict[str, int]:
    """Sum resource vectors name by name; a sum is capped at 64 bits."""
    total: dict[str, int] = {}
    for vector in vectors:
        for name, amount in vector.items():
            total[name] = min(total.get(name, 0) + amount, AMOUNT_MAX)
    return total


def subtract(left: Resources, right: Resources) -> dict[str, int]:
    """Subtract `right` from `left`; names that only `right` has become negative."""
    rest = dict(left)
    for name, amount in right.items():
        rest[name] = rest.get(name, 0) - amount
    return rest


def largest(vectors: Iterable[Resources]) -> dict[str, int]:
    """Return the largest amount of each name."""
    most: dict[str, int] = {}
    for vector in vectors:
        for name, amount in vector.items():
            if amount > most.get(name, 0):
                most[name] = amount
    return most


def fits(requests: Resources, available: Resources) -> bool:
    """Say whether all requests fit; nothing fits if any available amount is negative."""
    if any(amount < 0 for amount in available.values()):
        return False
    return all(amount <= available.get(name, 0) for name, amount in requests.items())
