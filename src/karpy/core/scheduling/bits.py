"""Sets of small integers as bits of one Python int."""

from collections.abc import Iterator, Sequence
from itertools import compress


def members(mask: int) -> Iterator[int]:
    """List the numbers in a set, smallest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def dense_members(mask: int) -> list[int]:
    """List the numbers in a set, smallest first; faster than `members` for a set with many."""
    size = mask.bit_length()
    return list(compress(range(size), flags(mask, size)))


def flags(mask: int, size: int) -> bytes:
    """Spell a set out as one byte per number, 0 or 1, smallest first."""
    digits = bin(mask | 1 << size)[:2:-1]
    return digits.encode().translate(_DIGIT_TO_FLAG)


def from_flags(are_in: Sequence[bool]) -> int:
    """Return the set of the numbers, counted from 0, that are said to be in it."""
    return int("0" + "".join(["1" if is_in else "0" for is_in in are_in])[::-1], 2)


_DIGIT_TO_FLAG = bytes(1 if code == ord("1") else 0 for code in range(256))
