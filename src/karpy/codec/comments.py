"""Comments of a YAML document, each with its field, and the insertion of comments into a text."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Final, TypeAlias

from msgspec import Struct
from yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode, SequenceNode

from karpy.codec.yamltext import compose_yaml

Path: TypeAlias = tuple[str | int, ...]
"""The path of a value: keys of mappings and indexes of lists, from the top of an object."""

_BREAK: Final = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_SIGN: Final = re.compile(r"(?:^|(?<=[ \t]))#")
_HEAD: Final = re.compile(r"[|>][-+0-9]*")
_BLOCK: Final = frozenset({"|", ">"})
_LOOKBACK: Final = 1000
"""Number of fields above a comment that are searched for the field that it is about."""


class Side(Enum):
    """The position of a comment relative to its field."""

    ABOVE = "above"
    BESIDE = "beside"
    BELOW = "below"


class Comment(Struct, frozen=True):
    """A comment of one line, and the field that it is about."""

    path: Path
    side: Side
    text: str
    """The text, with its `#`."""


class _Spot(Struct, frozen=True):
    """The position of a field or list entry in a text; lines and columns count from 0."""

    path: Path
    line: int
    column: int
    end: int
    """Its last line."""


def comments_in(text: str) -> tuple[Comment, ...]:
    """Return the comments of one document in their order; the document can be read as YAML."""
    root = compose_yaml(text) if "#" in text else None
    if root is None:
        return ()
    spots = _Spots(_within(root, ()))
    covered = _covered(root)
    found = []
    for number, line in enumerate(_BREAK.split(text)):
        at = _sign_in(line, covered.get(number, ()))
        if at is not None:
            is_alone = not line[:at].strip() or line.startswith("---")
            path, side = spots.below(number, at) if is_alone else spots.beside(number)
            found.append(Comment(path, side, line[at:].rstrip()))
    return tuple(found)


def with_comments(text: str, comments: Iterable[Comment]) -> str:
    """Return the text of one document with comments, whose fields must exist in the text."""
    root = compose_yaml(text)
    assert root is not None
    spots = {each.path: each for each in _within(root, ())}
    columns = {each.line: each.column for each in reversed(spots.values())}
    lines = text.removesuffix("\n").split("\n")
    full = _continued_lines(root)
    above: dict[int, list[str]] = {}
    below: dict[int, list[str]] = {}
    for each in comments:
        spot = spots.get(each.path) or _Spot((), 0, 0, len(lines) - 1)
        if each.side is Side.BELOW:
            below.setdefault(spot.end, []).append(" " * spot.column + each.text)
        elif each.side is Side.BESIDE and spot.path and spot.line not in full:
            lines[spot.line] += f"  {each.text}"
            full.add(spot.line)
        else:
            indent = " " * columns.get(spot.line, 0)
            above.setdefault(spot.line, []).append(indent + each.text)
    made = (
        part
        for number, line in enumerate(lines)
        for part in (*above.get(number, ()), line, *below.get(number, ()))
    )
    return "".join(f"{each}\n" for each in made)


def within(comments: Iterable[Comment], prefix: Path) -> tuple[Comment, ...]:
    """Return the comments on a part of a document, with paths from the top of that part."""
    return tuple(
        Comment(each.path[len(prefix) :], each.side, each.text)
        for each in comments
        if each.path[: len(prefix)] == prefix
    )


class _Spots:
    """All fields and entries of a document in the order of its text."""

    def __init__(self, spots: Iterable[_Spot]) -> None:
        self._all: Sequence[_Spot] = tuple(spots)
        self._lines = [each.line for each in self._all]

    def beside(self, line: int) -> tuple[Path, Side]:
        """Find the outermost field that begins in a line, or else the innermost around it."""
        at = bisect_left(self._lines, line)
        if at < len(self._all) and self._lines[at] == line:
            return self._all[at].path, Side.BESIDE
        around = (each.path for each in self._before(line) if line <= each.end)
        return next(around, ()), Side.BESIDE

    def below(self, line: int, column: int) -> tuple[Path, Side]:
        """
        Find the field that a line with nothing but a comment is about.

        It is the next field, unless the comment is indented further: then the one before it.
        """
        at = bisect_right(self._lines, line)
        following = self._all[at] if at < len(self._all) else None
        if following is not None and column <= following.column:
            return following.path, Side.ABOVE
        last = next((each for each in self._before(line) if each.column <= column), None)
        if following is None:
            return (last.path if last and last.column else ()), Side.BELOW
        if last is None or following.path[: len(last.path)] == last.path:
            return following.path, Side.ABOVE
        return last.path, Side.BELOW

    def _before(self, line: int) -> Iterator[_Spot]:
        """Walk through the fields above a line, the nearest one first."""
        at = bisect_left(self._lines, line)
        return reversed(self._all[max(0, at - _LOOKBACK) : at])


def _within(node: Node, path: Path) -> Iterator[_Spot]:
    """Walk through all fields and entries; an alias is where it is used, without its parts."""
    if isinstance(node, MappingNode):
        for key, value in node.value:
            at = (*path, key.value)
            is_alias = value.start_mark.index < key.start_mark.index
            end = key.end_mark.line if is_alias else _end(value)
            yield _Spot(at, key.start_mark.line, key.start_mark.column, end)
            if not is_alias:
                yield from _within(value, at)
    elif isinstance(node, SequenceNode):
        for index, each in enumerate(node.value):
            if each.start_mark.index < node.start_mark.index:
                continue
            column = each.start_mark.column if node.flow_style else node.start_mark.column
            yield _Spot((*path, index), each.start_mark.line, column, _end(each))
            yield from _within(each, (*path, index))


def _end(node: Node) -> int:
    """Return the last line of a value."""
    if not isinstance(node, CollectionNode) or node.flow_style or not node.value:
        is_block = isinstance(node, ScalarNode) and node.style in _BLOCK
        return max(node.start_mark.line, node.end_mark.line - is_block)
    last = node.value[-1]
    parts = last if isinstance(node, MappingNode) else (last,)
    # The last value may be an alias of something further up.
    return max(node.start_mark.line, *(_end(part) for part in parts))


def _covered(root: Node) -> dict[int, list[tuple[int, int]]]:
    """Return by line the column ranges in which a `#` is part of a scalar, not of a comment."""
    found: dict[int, list[tuple[int, int]]] = {}
    for node in _scalars(root):
        start, end = node.start_mark, node.end_mark
        first = start.column, end.column if end.line == start.line else 2**31
        if node.style in _BLOCK:
            head = _HEAD.match(start.buffer[start.index :]) if start.buffer else None
            first = start.column, start.column + (len(head[0]) if head else 1)
        found.setdefault(start.line, []).append(first)
        for line in range(start.line + 1, end.line):
            found.setdefault(line, []).append((0, 2**31))
        if end.line > start.line:
            found.setdefault(end.line, []).append((0, end.column))
    return found


def _scalars(node: Node) -> Iterator[ScalarNode]:
    seen: set[int] = set()
    left = [node]
    while left:
        each = left.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, ScalarNode):
            yield each
        elif isinstance(each, MappingNode):
            left += [part for pair in each.value for part in pair]
        else:
            left += each.value


def _sign_in(line: str, covered: Iterable[tuple[int, int]]) -> int | None:
    """Return where the comment of a line begins."""
    for found in _SIGN.finditer(line):
        if not any(first <= found.start() < last for first, last in covered):
            return found.start()
    return None


def _continued_lines(root: Node) -> set[int]:
    """Return the lines in which a scalar begins that goes on in the next line."""
    return {
        node.start_mark.line
        for node in _scalars(root)
        if node.style not in _BLOCK and node.start_mark.line < node.end_mark.line
    }
