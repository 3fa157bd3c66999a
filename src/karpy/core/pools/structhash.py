"""
Hashes of Go values, as the annotations of Karpenter carry them.

Whoever takes over a cluster must come to the same numbers, or every node drifts.
"""

from collections.abc import Iterable, Mapping
from functools import reduce
from operator import xor
from typing import Final

# Parity: mitchellh/hashstructure v2, FormatV2 over FNV-1 of 64 bits, with lists as sets and without
# zero values.
_START: Final = 0xCBF29CE484222325
_PRIME: Final = 0x100000001B3
_MASK: Final = 2**64 - 1
_WORD: Final = 8


def hash_text(text: str) -> int:
    """Hash a string."""
    return _fnv(text.encode())


def hash_integer(number: int) -> int:
    """Hash an `int64`, a `time.Duration` among them."""
    return _fnv(number.to_bytes(_WORD, "little", signed=True))


def hash_texts(texts: Mapping[str, str]) -> int:
    """Hash a map from strings to strings."""
    pairs = (_ordered(hash_text(key), hash_text(value)) for key, value in texts.items())
    return _finished(reduce(xor, pairs, 0))


def hash_set(hashes: Iterable[int]) -> int:
    """Hash a list whose order does not matter; what is there twice cancels out."""
    return reduce(xor, hashes, 0)


def hash_struct(name: str, fields: Iterable[tuple[str, int | None]]) -> int:
    """Hash a struct by its type's name and its fields in their order; None is a zero value."""
    total = hash_text(name)
    for key, value in fields:
        if value is not None:
            total = _finished(total ^ _ordered(hash_text(key), value))
    return total


def _ordered(first: int, second: int) -> int:
    return _fnv(first.to_bytes(_WORD, "little") + second.to_bytes(_WORD, "little"))


def _finished(total: int) -> int:
    return _fnv(total.to_bytes(_WORD, "little"))


def _fnv(data: bytes) -> int:
    total = _START
    for byte in data:
        total = (total * _PRIME & _MASK) ^ byte
    return total
