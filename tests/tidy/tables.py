"""The parts that all generated pages share."""

from collections.abc import Sequence
from typing import Final

NOTE: Final = "<!-- Written by `make fix`; change the code instead. -->\n"


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
