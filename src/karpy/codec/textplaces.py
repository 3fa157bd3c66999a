"""The object and field of a line of YAML, for documents that cannot be parsed."""

import re
from collections.abc import Sequence
from typing import Final

_KIND: Final = re.compile(r"^(?P<left> *)kind:[ \t]*[\"']?(?P<kind>\w+)", re.MULTILINE)
_METADATA: Final = re.compile(r"^metadata:[^\n]*\n?(?:(?:[ \t#][^\n]*+)?\n)*+", re.MULTILINE)
_NAME: Final = re.compile(
    r"^(?P<left>[ \t]++|metadata:[^\n]*?[{,] *)[\"']?name[\"']?:[ \t]*+(?P<name>[^\n]+)",
    re.MULTILINE,
)
_FLOW_END: Final = re.compile(r"[,}].*")
_LINE: Final = re.compile(
    r"(?P<left> *)(?P<dashes>(?:- +)*)(?:[\"']?(?P<key>[^\s\"':#{}\[\]]+)[\"']?:)?"
)
_OPENS: Final = re.compile(r":\s*(?:#.*)?$")
_NAME_MAX: Final = 63
_FAR: Final = 1_000_000


def object_in(text: str) -> str:
    """Return kind and name of the object that a text is meant to be, as `NodePool web`."""
    kind = _KIND.search(text)
    if kind is None:
        return ""
    whole = text if not kind["left"] else re.sub(rf"^{kind['left']}", "", text, flags=re.MULTILINE)
    metadata = _METADATA.search(whole)
    named = list(_NAME.finditer(metadata[0])) if metadata else []
    if not named:
        return kind["kind"]
    # Names further to the right are those of labels and owners.
    first = min(named, key=lambda each: len(each["left"].expandtabs()))
    name = first["name"].partition(" #")[0]
    if first["left"].strip():
        name = _FLOW_END.sub("", name)
    name = name.strip(" \t\r\"'")
    is_text = name.startswith("{{") or not name.startswith(tuple("[{*&|>"))
    return f"{kind['kind']} {name[:_NAME_MAX]}" if is_text else kind["kind"]


def path_in(text: str, line: int) -> str:
    """Return the field that stands in a line, counted from 1, by the indentation above it."""
    lines = text.splitlines()
    if not 0 < line <= len(lines):
        return ""
    return _path(lines[: line - 1], lines[line - 1])


def _path(above: Sequence[str], last: str) -> str:
    parts: list[str] = []
    limit, dash, count = _FAR, -1, 0
    if "\t" in last[: len(last) - len(last.lstrip())]:
        # A tab has no width: the line is within the field above if that has no value yet, else it
        # is beside that field.
        key = _LINE.match(last.lstrip())
        parts = [key["key"]] if key and key["key"] else []
        written = [each for each in above if each.strip() and not each.lstrip().startswith("#")]
        before = written[-1] if written else ""
        limit = _FAR if _OPENS.search(before) else _column(before)
        lines = list(above)
    else:
        lines = [*above, last]
    for each in reversed(lines):
        for column, name in reversed(_tokens(each)):
            if dash >= 0 and name is None and column == dash:
                count += 1
            elif dash >= 0 and name is not None and column <= dash:
                parts.append(f"[{count - 1}]")
                parts.append(name)
                limit, dash, count = column, -1, 0
            elif dash < 0 and column < limit:
                if name is None:
                    dash, count, limit = column, 1, column
                else:
                    parts.append(name)
                    limit = column
    return _joined(parts)


def _tokens(line: str) -> list[tuple[int, str | None]]:
    """Return the columns of the dashes of a line, as None, and of the key after them."""
    found = _LINE.match(line)
    if found is None or line.lstrip().startswith("#"):
        return []
    start = len(found["left"])
    made: list[tuple[int, str | None]] = [
        (start + at, None) for at, sign in enumerate(found["dashes"]) if sign == "-"
    ]
    if found["key"]:
        made.append((start + len(found["dashes"]), found["key"]))
    return made


def _column(line: str) -> int:
    tokens = _tokens(line)
    return tokens[-1][0] if tokens else _FAR


def _joined(parts: Sequence[str]) -> str:
    path = ""
    for each in reversed(parts):
        if each.startswith("["):
            path += each
        else:
            path += f"[{each}]" if "/" in each else f".{each}"
    return path.removeprefix(".")
