"""Text to documents: multi-document YAML, JSON, and concatenated JSON values."""

import re
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from karpy.codec.jsontext import check_keys, parse_json, parse_json_at
from karpy.codec.limits import Refused, Unparsable
from karpy.codec.placeholders import fill_in, placeholders_in
from karpy.codec.textplaces import object_in, path_in
from karpy.codec.yamltext import parse_yaml
from karpy.errors import ManifestInvalid

_START: Final = re.compile(r"^(?=---(?:\s|$))", re.MULTILINE)
_NOTHING: Final = re.compile(r"(?:\s++|#.*$|^---|^%.*$|^\.\.\.)*+", re.MULTILINE)
_EMPTY_HINT: Final = "see whether the command that wrote it has failed, or leave it out"
_NESTED_HINT: Final = "move its items to the outer list, or make it a document of its own"
_SMART: Final = re.compile("[\u2018\u2019\u201c\u201d\u201e]")
_HEAD: Final = re.compile(r"^ *(?:apiVersion|kind):", re.MULTILINE)
_WRAPPED: Final = re.compile(
    r"^(?P<fence> *(?:```|~~~))|<<[-~]?[\"']?(?P<shell>\w++)(?!>)"
    r"|^ *(?P<terraform>resource|module|data|locals)\b[^:\n]*\{ *$",
    re.MULTILINE,
)
_CONFLICT: Final = re.compile(r"^(?:<{7} |>{7} |={7}$)", re.MULTILINE)
_WRAPPED_HINTS: Final = {
    "fence": "take the manifest out of the Markdown page, without the fences",
    "shell": "take the manifest out of the shell script, or give what the script prints",
    "terraform": "take the manifest out of the Terraform file, or give what Terraform renders",
}
_TABS: Final = re.compile(r"^ *\t", re.MULTILINE)


class Document(Struct, frozen=True):
    """One document of a file; documents are counted from 1."""

    file: str
    number: int
    value: Any
    text: str = ""
    """The YAML source, with the comments before and after it; empty for JSON."""

    @property
    def where(self) -> str:
        return f"`{self.file}` document {self.number}"


class _Unreadable(Exception):
    """A document cannot be parsed: the problem, and what to do."""

    def __init__(
        self, problem: str, hint: str, *, is_malformed: bool = True, about: str = "", path: str = ""
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint
        self.about = about
        """Kind and name of the object it is meant to be, as far as they can be seen."""
        self.path = path
        self.is_malformed = is_malformed
        """Whether the text is not of this format, so that another format may fit."""


def read_documents(file: str, text: str) -> Iterator[Document | ManifestInvalid]:
    """Return every document of a file, with a ManifestInvalid for each unreadable one."""
    if not text.strip("\ufeff \t\r\n"):
        yield ManifestInvalid(where=f"`{file}`", path="", problem="is empty", hint=_EMPTY_HINT)
        return
    start = text.lstrip("\ufeff \t\r\n")[:2]
    is_json = start[:1] in {"{", "["} and start not in {"{{", "{%"}
    values = _json_values(text) if is_json else _yaml_values(text)
    for number, (value, written) in enumerate(values, start=1):
        document = Document(file, number, value, written)
        problem = value if isinstance(value, _Unreadable) else _list_within(value)
        if problem is None:
            yield document
        else:
            where = f"{document.where}, {problem.about}" if problem.about else document.where
            yield ManifestInvalid(
                where=where, path=problem.path, problem=problem.problem, hint=problem.hint
            )


def _list_within(value: object) -> _Unreadable | None:
    """Return the fault of the first List within a List: its items would not be read."""
    for index, each in enumerate(_items(value) or (value if isinstance(value, list) else ())):
        if _items(each) is not None:
            path = f"[{index}]" if isinstance(value, list) else f"items[{index}]"
            return _Unreadable(f"has a List within a list, as `{path}`", _NESTED_HINT)
    return None


def _items(value: object) -> list[object] | None:
    """Return the items of a List; None of anything else."""
    kind = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(kind, str) or not kind.endswith("List"):
        return None
    items = value.get("items")
    return items if isinstance(items, list) else None


def _json_values(text: str) -> Iterator[tuple[object, str]]:
    try:
        value = parse_json(text)
        check_keys(text, value)
        yield value, ""
    except Refused as error:
        yield _unreadable("", error), ""
    except Unparsable:
        yield from _json_stream(text.lstrip("\ufeff"))


def _json_stream(text: str) -> Iterator[tuple[object, str]]:
    """Read concatenated JSON values; read the rest as YAML if it is not JSON."""
    at = _next_value(text, 0)
    while at < len(text):
        try:
            value, end = parse_json_at(text, at)
            check_keys(text[at:end], value)
        except Refused as error:
            yield _unreadable("", error, text.count("\n", 0, at)), ""
            return
        except Unparsable as error:
            yield from _yaml_or(error, text, at)
            return
        yield value, ""
        at = _next_value(text, end)


def _next_value(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _yaml_or(error: Unparsable, text: str, at: int) -> Iterator[tuple[object, str]]:
    values = list(_yaml_values(text[at:]))
    if any(isinstance(value, _Unreadable) and value.is_malformed for value, _ in values):
        hint = _hint_for(text[at:], "check the brackets, commas and quotes there")
        yield _Unreadable(f"is not JSON: {error}", hint), ""
    else:
        yield from values


def _yaml_values(text: str) -> Iterator[tuple[object, str]]:
    line, above = 0, ""
    chunks = _START.split(text.lstrip("\ufeff"))
    while len(chunks) > 1 and _NOTHING.fullmatch(chunks[-1]):
        chunks[-2:] = [chunks[-2] + _comments(chunks[-1])]
    for chunk in chunks:
        if _NOTHING.fullmatch(chunk):
            above += _comments(chunk)
        else:
            value = _yaml_value(chunk, line)
            if value is not None:
                yield value, above + chunk
            above = ""
        line += chunk.count("\n")


def _comments(chunk: str) -> str:
    """Return the comment lines of a chunk that holds no document."""
    lines = (each.lstrip() for each in chunk.splitlines())
    return "".join(f"{each}\n" for each in lines if each.startswith("#"))


def _yaml_value(chunk: str, line: int) -> object:
    try:
        return parse_yaml(chunk)
    except Refused as error:
        return _unreadable("", error, line, text=chunk)
    except Unparsable as error:
        return _unreadable("is not YAML: ", error, line, _hint_for(chunk, ""), chunk)


def _unreadable(
    what: str, error: Unparsable, above: int = 0, hint: str = "", text: str = ""
) -> _Unreadable:
    """Return the fault of a document; `above` is the number of lines before it in the file."""
    place = f" in line {above + error.line}" if error.line else ""
    is_malformed = not isinstance(error, Refused)
    problem = f"{what}{error.problem}{place}"
    return _Unreadable(
        problem,
        hint or error.hint,
        is_malformed=is_malformed,
        about=object_in(text),
        path=path_in(text, error.line),
    )


def _hint_for(text: str, otherwise: str) -> str:
    head = _HEAD.search(text)
    if head and (found := _WRAPPED.search(text, 0, head.start())):
        return _WRAPPED_HINTS[str(found.lastgroup)]
    if _CONFLICT.search(text):
        return "resolve the merge conflict first"
    if "{{" in text or "{%" in text:
        return "render the template first, for example with `helm template`"
    # Placeholders in other notations are valid YAML.
    if names := tuple(each for each in placeholders_in(text) if each.startswith("${")):
        return fill_in(names)
    if _TABS.search(text):
        return "replace the tabs by spaces"
    if _SMART.search(text):
        return 'write plain quotation marks, `"`: those of a web page are a part of the text'
    return otherwise
