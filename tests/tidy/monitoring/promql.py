"""The metrics and labels that a PromQL query uses."""

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

_TEXT: Final = re.compile(r'"[^"]*"')
_SELECTOR: Final = re.compile(r"([a-zA-Z_:][\w:]*)\s*\{([^}]*)\}")
_MATCHER: Final = re.compile(r"([a-zA-Z_]\w*)\s*(?:=~|!~|!=|=)")
_CLAUSE: Final = re.compile(r"\b(by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
_RANGE: Final = re.compile(r"\[[^\]]*\]")
_OFFSET: Final = re.compile(r"\boffset\s+\w+")
_NAME: Final = re.compile(r"(?<![\w.])[a-zA-Z_:][\w:]*")
_FUNCTIONS: Final = (
    "sum max min count avg rate increase histogram_quantile absent vector label_replace"
)
_OPERATORS: Final = "and or on unless"
_WORDS: Final = frozenset(f"{_FUNCTIONS} {_OPERATORS}".split())
"""Functions and operators; a query that needs another one names it here."""


class Selected(Struct, frozen=True):
    """A metric and the labels in its selector."""

    metric: str
    labels: frozenset[str] = frozenset()


def metrics_of(expr: str) -> list[Selected]:
    """List the metrics of a query, with the labels of their selectors."""
    bare = _TEXT.sub('""', expr)
    selected = [
        Selected(name, frozenset(_MATCHER.findall(matchers)))
        for name, matchers in _SELECTOR.findall(bare)
    ]
    rest = _OFFSET.sub("", _RANGE.sub("", _CLAUSE.sub("", _SELECTOR.sub("", bare))))
    names = [each for each in _NAME.findall(rest) if each not in _WORDS]
    return [*selected, *map(Selected, names)]


def clause_labels(expr: str) -> Iterator[str]:
    """Yield the labels that a query aggregates by or joins on."""
    for _, labels in _CLAUSE.findall(_TEXT.sub('""', expr)):
        yield from filter(None, (each.strip() for each in labels.split(",")))
