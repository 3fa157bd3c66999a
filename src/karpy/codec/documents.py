"""Text to documents: YAML with many of them, JSON, and JSON one after the other."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final, cast

import msgspec
import yaml
from msgspec import Struct

from karpy.errors import ManifestInvalid

_START: Final = re.compile(r"^(?=---(?:\s|$))", re.MULTILINE)
_NOTHING: Final = re.compile(r"(?:\s|#.*$|^---|^%.*$|^\.\.\.)*", re.MULTILINE)
_VALUES_MAX: Final = 5_000_000
_INTEGER: Final = re.compile(r"[-+]?(?:0|[1-9][0-9_]*|0b[01_]+|0[0-7_]+|0x[0-9a-fA-F_]+)$")
_NUMBER: Final = re.compile(
    r"(?:[-+]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
)


class Document(Struct, frozen=True):
    """One document of a file; documents are counted from 1."""

    file: str
    number: int
    value: Any

    @property
    def where(self) -> str:
        return f"`{self.file}` document {self.number}"


class _Unreadable(Exception):
    """A document cannot be parsed; with what is wrong and what to do."""

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint


def read_documents(file: str, text: str) -> Iterator[Document | ManifestInvalid]:
    """Read every document of a file; one that cannot be read does not keep the others back."""
    is_json = text.lstrip("\ufeff \t\r\n")[:1] in {"{", "["}
    values = _json_values(text) if is_json else _yaml_values(text)
    for number, value in enumerate(values, start=1):
        document = Document(file, number, value)
        if isinstance(value, _Unreadable):
            yield ManifestInvalid(
                where=document.where, path="", problem=value.problem, hint=value.hint
            )
        else:
            yield document


def _json_values(text: str) -> Iterator[object]:
    try:
        yield msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        yield from _json_stream(text.lstrip("\ufeff"))


def _json_stream(text: str) -> Iterator[object]:
    """Read JSON values one after the other, or find out that it is YAML after all."""
    decoder = json.JSONDecoder()
    at = _next_value(text, 0)
    while at < len(text):
        try:
            value, end = decoder.raw_decode(text, at)
        except RecursionError:
            yield _Unreadable("is nested too deeply", "check that it is a manifest")
            return
        except ValueError as error:
            yield from _yaml_or(error, text, at)
            return
        yield value
        at = _next_value(text, end)


def _next_value(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _yaml_or(error: ValueError, text: str, at: int) -> Iterator[object]:
    values = list(_yaml_values(text[at:]))
    if any(isinstance(value, _Unreadable) for value in values):
        hint = _way_out(text[at:], "check the brackets, commas and quotes there")
        yield _Unreadable(f"is not JSON: {error}", hint)
    else:
        yield from values


def _yaml_values(text: str) -> Iterator[object]:
    line = 0
    for chunk in _START.split(text.lstrip("\ufeff")):
        if not _NOTHING.fullmatch(chunk):
            value = _yaml_value(chunk, line)
            if value is not None:
                yield value
        line += chunk.count("\n")


def _yaml_value(chunk: str, line: int) -> object:
    try:
        value = _parse(chunk)
    except yaml.YAMLError as error:
        return _yaml_unreadable(error, chunk, line)
    except (ValueError, OverflowError, RecursionError) as error:
        return _Unreadable(f"is not YAML: {error}", _way_out(chunk, "check numbers and nesting"))
    if "*" in chunk and _is_endless(value):
        return _Unreadable("repeats itself by aliases without end", "write the repeated parts out")
    return value


def _parse(chunk: str) -> object:
    loader = _Loader(chunk)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()


def _yaml_unreadable(error: yaml.YAMLError, chunk: str, line: int) -> _Unreadable:
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or str(error).splitlines()[0]
    last = chunk.rstrip().count("\n")
    place = f" in line {line + min(mark.line, last) + 1}" if mark else ""
    hint = _way_out(chunk, f"check indentation and quotes{place}")
    return _Unreadable(f"is not YAML: {what}{place}", hint)


def _way_out(text: str, otherwise: str) -> str:
    if "{{" in text:
        return "render the template first, for example with `helm template`"
    if re.search(r"^ *\t", text, re.MULTILINE):
        return "replace the tabs by spaces"
    return otherwise


def _is_endless(value: object) -> bool:
    """Say whether a value with aliases, written out, would be absurdly large."""
    count, waiting = 0, [value]
    while waiting and count <= _VALUES_MAX:
        each = waiting.pop()
        count += 1
        if isinstance(each, dict):
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)
    return bool(waiting)


def _loader() -> type[yaml.SafeLoader]:
    """Make a loader that reads YAML as kubectl does: times stay text, `12:30` is no number."""
    safe: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    made = cast("type[yaml.SafeLoader]", type("ManifestLoader", (safe,), {}))
    dropped = {f"tag:yaml.org,2002:{name}" for name in ("timestamp", "value", "int", "float")}
    made.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag not in dropped]
        for first, resolvers in safe.yaml_implicit_resolvers.items()
    }
    for tag, pattern in (("int", _INTEGER), ("float", _NUMBER)):
        made.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", pattern, list("-+.0123456789"))
    return made


_Loader: Final = _loader()
