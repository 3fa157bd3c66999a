"""
Hashes of Go values, as Karpenter writes them on objects.

They are those of mitchellh/hashstructure v2, FormatV2 over FNV-1 of 64 bits, with lists as sets and
without zero values.
"""

from collections.abc import Iterable, Mapping
from functools import reduce
from operator import xor
from typing import Final

_START: Final = 0xCBF29CE484222325
_PRIME: Final = 0x100000001B3
_MASK: Final = 2**64 - 1
_WORD: Final = 8


def hash_text(text: str) -> int:
    """Hash a string."""
    return hash_bytes(text.encode())


def hash_integer(number: int) -> int:
    """Hash an `int64`, a `time.Duration` among them."""
    return hash_bytes(number.to_bytes(_WORD, "little", signed=True))


def hash_texts(texts: Mapping[str, str]) -> int:
    """Hash a map from strings to strings."""
    return hash_map({key: hash_text(value) for key, value in texts.items()})


def hash_map(values: Mapping[str, int]) -> int:
    """Hash a map from strings to values that are hashed already."""
    pairs = (_ordered(hash_text(key), value) for key, value in values.items())
    return _finished(reduce(xor, pairs, 0))


def hash_set(hashes: Iterable[int]) -> int:
    """Hash a list whose order does not matter; an element that is there twice cancels out."""
    return reduce(xor, hashes, 0)


def hash_struct(name: str, fields: Iterable[tuple[str, int | None]]) -> int:
    """Hash a struct by its type's name and its fields in their order; None is a zero value."""
    total = hash_text(name)
    for key, value in fields:
        if value is not None:
            total = _finished(total ^ _ordered(hash_text(key), value))
    return total


def _ordered(first: int, second: int) -> int:
    return hash_bytes(first.to_bytes(_WORD, "little") + second.to_bytes(_WORD, "little"))


def _finished(total: int) -> int:
    return hash_bytes(total.to_bytes(_WORD, "little"))


def hash_bytes(data: bytes) -> int:
    """Hash the bytes of a value."""
    total = _START
    for byte in data:
        total = (total * _PRIME & _MASK) ^ byte
    return total
