"""Sets of small integers as bits of one Python int."""

from collections.abc import Iterator


def members(mask: int) -> Iterator[int]:
    """List the numbers in a set, smallest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def flags(mask: int, size: int) -> bytes:
    """Spell a set out as one byte per number, 0 or 1, smallest first."""
    digits = bin(mask | 1 << size)[:2:-1]
    return digits.encode().translate(_DIGIT_TO_FLAG)


_DIGIT_TO_FLAG = bytes(1 if code == ord("1") else 0 for code in range(256))
