"""New paths of the fields of old objects, so that comments move with their fields."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from karpy.codec.comments import Comment, Path, Side
from karpy.codec.convert.objects import Found
from karpy.codec.convert.oldfields import as_text, path_of
from karpy.codec.convert.workloads import NEW_NAMES
from karpy.codec.fields import JsonObject

Moves: TypeAlias = Mapping[str, tuple[str, ...]]
"""
The places where an old field may be today, such as `NodePool:spec.limits`, by its old path.

`*` stands for any name. Nested fields move with their parent; a field without an entry keeps its
path.
"""

_ANY: Final = "*"
_NAMING: Final = ("key", "deviceName", "name", "id", "nodes")
"""Fields that identify an entry of a list."""


def placed(source: Found, moves: Moves, objects: Sequence[JsonObject]) -> list[list[Comment]]:
    """
    Return for each object of today its comments, moved from the old object.

    A comment on a field that has no new place goes to the head of the first object; comments within
    a status, which no manifest has, are left out.
    """
    made: list[list[Comment]] = [[] for _ in objects]
    before: Path | None = None
    for each in source.comments:
        if each.path[1:] and each.path[0] == "status":
            continue
        found = next(_places(each.path, source, moves, objects), None) if each.path else None
        if found is not None:
            number, path = found
            made[number].append(Comment(path, each.side, each.text))
        elif not each.path:
            number = -1 if each.side is Side.BELOW else 0
            made[number].append(each)
        else:
            text = each.text if each.path == before else _with_path(each)
            made[0].append(Comment((), Side.ABOVE, text))
        before = each.path
    return made


def _with_path(comment: Comment) -> str:
    at = ""
    for step in comment.path:
        at = f"{at}[{step}]" if isinstance(step, int) else path_of(at, step)
    return f"# {at}: {comment.text.lstrip('# ')}"


def _places(
    path: Path, source: Found, moves: Moves, objects: Sequence[JsonObject]
) -> Iterator[tuple[int, Path]]:
    """Find the places where an old field is today, the best one first."""
    length, wanted = _move(path, moves)
    for kind, start in wanted or (("", path[:length]),):
        for number, obj in enumerate(objects):
            if not kind or obj.get("kind") == kind:
                found = _below(start, path, length, (source.value, obj))
                if found is not None:
                    yield number, found


def _move(path: Path, moves: Moves) -> tuple[int, list[tuple[str, Path]]]:
    """Return how many steps of a path the longest matching move covers, and its new places."""
    known = sorted(((pattern.split("."), places) for pattern, places in moves.items()), key=_length)
    for steps, places in known:
        head = path[: len(steps)]
        if len(head) == len(steps) and all(
            step in (_ANY, each) for step, each in zip(steps, head, strict=True)
        ):
            return len(steps), [_start(place, head[-1]) for place in places]
    return 0, []


def _length(move: tuple[list[str], tuple[str, ...]]) -> tuple[int, list[str]]:
    return -len(move[0]), move[0]


def _start(place: str, name: str | int) -> tuple[str, Path]:
    kind, _, path = place.partition(":")
    steps = (name if step == _ANY else step for step in path.split("."))
    return kind, tuple(int(step) if str(step).isdecimal() else step for step in steps)


def _below(
    start: Path, path: Path, length: int, values: tuple[JsonObject, JsonObject]
) -> Path | None:
    """Append the rest of an old path to a new place; None if the new object has no such field."""
    old, new = _at(values[0], path[:length]), _at(values[1], start)
    made = list(start)
    for step in path[length:]:
        at = _new_step(old, step, new)
        if at is None:
            return None
        made.append(at)
        old, new = _at(old, (step,)), _at(new, (at,))
    return None if new is None else tuple(made)


def _at(value: object, path: Path) -> object:
    for step in path:
        if isinstance(step, int) and isinstance(value, list) and step < len(value):
            value = value[step]
        elif isinstance(value, dict):
            value = value.get(step)
        else:
            return None
    return value


def _new_step(old: object, step: str | int, new: object) -> str | int | None:
    """Return the key or index in the new value of an entry of the old value."""
    if isinstance(new, dict):
        name = NEW_NAMES.get(str(step), step)
        return name if name in new else None
    if not isinstance(new, list) or not isinstance(old, list | dict):
        return None
    entries: dict[Any, object] = old if isinstance(old, dict) else dict(enumerate(old))
    if step not in entries:
        return None
    steps = list(entries)
    names = [_name(entries[each]) for each in steps[: steps.index(step) + 1]]
    places = [index for index, each in enumerate(new) if _name(each) == names[-1]]
    nth = names.count(names[-1]) - 1
    return places[nth] if nth < len(places) else None


def _name(entry: object) -> str:
    if isinstance(entry, dict):
        return next((f"{key}={entry[key]}" for key in _NAMING if key in entry), "")
    return as_text(entry)
