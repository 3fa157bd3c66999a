"""YAML to plain values, as kubectl reads it, within limits on size; all YAML is read here."""

import re
from itertools import chain
from math import isfinite
from typing import Any, Final, cast

import yaml
from msgspec import Struct
from yaml.nodes import MappingNode, Node, ScalarNode

from karpy.codec.limits import (
    ALIASED_MAX,
    DEPTH_MAX,
    DIGITS_MAX,
    YAML_MAX,
    TooMuch,
    Unparsable,
    repeated_key,
    too_deep,
    too_vast,
)

_TAG: Final = "tag:yaml.org,2002:"
_MERGE: Final = f"{_TAG}merge"
_ANCHOR: Final = re.compile(r"(?<![^\s,:\[\]{}?-])&[\w-]")
_INTEGER: Final = re.compile(r"[-+]?(?:0|[1-9][0-9_]*|0b[01_]+|0[0-7_]+|0x[0-9a-fA-F_]+)$")
_NUMBER: Final = re.compile(
    r"(?:[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
)
_BASES: Final = {"0b": 2, "0x": 16}
_TRUE: Final = frozenset({"yes", "true", "on"})


def parse_yaml(text: str) -> object:
    """Read one YAML document; raise Unparsable."""
    if len(text) > YAML_MAX:
        problem = f"has {len(text)} characters, and YAML of {YAML_MAX} is read at most"
        raise TooMuch(problem, hint="write it as JSON, or divide it by lines of `---`")
    loader = _Loader(text)
    try:
        root = loader.get_single_node()
    except yaml.YAMLError as error:
        raise _unparsable(error, text) from error
    finally:
        loader.dispose()
    if root is None:
        return None
    if not _ANCHOR.search(text):
        return _Builder().value(root)
    _Measure(len(text)).size(root)
    return _SharingBuilder().value(root)


def compose_yaml(text: str) -> Node | None:
    """Return the nodes of a document with their lines and columns; `parse_yaml` must accept it."""
    loader = _Loader(text)
    try:
        return loader.get_single_node()
    finally:
        loader.dispose()


def _unparsable(error: yaml.YAMLError, text: str) -> Unparsable:
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or str(error).splitlines()[0]
    # A mark at the very end may be after the last line.
    line = min(mark.line, text.rstrip().count("\n")) + 1 if mark else 0
    return Unparsable(what, line=line, hint="check indentation and quotes")


def _line(node: Node | None) -> int:
    return 1 if node is None else node.start_mark.line + 1


class _Depth:
    """Limits the depth of a loader, which would overflow its stack otherwise."""

    depth = 0

    def descend_resolver(self, parent: Node | None, _index: object) -> None:
        """Count one level more when a node begins; raise TooMuch beyond the limit."""
        self.depth += 1
        if self.depth > DEPTH_MAX + 1:
            raise too_deep(_line(parent))

    def ascend_resolver(self) -> None:
        """Count one level less when a node ends."""
        self.depth -= 1


def _loader() -> type[yaml.SafeLoader]:
    """Make a loader that reads YAML as kubectl does: times stay text, `12:30` is no number."""
    safe: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    made = cast("type[yaml.SafeLoader]", type("ManifestLoader", (_Depth, safe), {}))
    dropped = {f"{_TAG}{name}" for name in ("timestamp", "value", "int", "float")}
    made.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag not in dropped]
        for first, resolvers in safe.yaml_implicit_resolvers.items()
    }
    for tag, pattern in (("int", _INTEGER), ("float", _NUMBER)):
        made.add_implicit_resolver(f"{_TAG}{tag}", pattern, list("-+.0123456789"))
    return made


_Loader: Final = _loader()


class _Size(Struct, frozen=True, gc=False):
    """The size of a node with its aliases written out."""

    length: int
    height: int


class _Measure:
    """Computes the size of a document with its aliases written out, without writing them out."""

    def __init__(self, length: int) -> None:
        self._most = length + ALIASED_MAX
        self._known: dict[Node, _Size] = {}
        self._open: set[Node] = set()

    def size(self, node: Node) -> _Size:
        """Return the size of a node; raise TooMuch."""
        size = self._known.get(node)
        if size is None:
            size = self._known[node] = self._found(node)
        if len(self._open) + size.height > DEPTH_MAX:
            raise too_deep(_line(node))
        return size

    def _found(self, node: Node) -> _Size:
        if isinstance(node, ScalarNode):
            return _Size(len(node.value) + 1, 0)
        if node in self._open:
            raise _endless(node)
        self._open.add(node)
        length, height = 1, 0
        parts = chain.from_iterable(node.value) if isinstance(node, MappingNode) else node.value
        for part in parts:
            size = self.size(part)
            length, height = length + size.length, max(height, size.height)
            if length > self._most:
                raise _endless(node)
        self._open.remove(node)
        return _Size(length, height + 1)


def _endless(node: Node) -> TooMuch:
    return TooMuch(
        "repeats itself by aliases without end",
        line=_line(node),
        hint="write the repeated parts out",
    )


class _Builder:
    """Builds plain values from nodes."""

    def value(self, node: Node) -> object:
        """Return the value of a node; raise Unparsable."""
        if isinstance(node, ScalarNode):
            return _scalar(node)
        if isinstance(node, MappingNode) and node.tag == f"{_TAG}map":
            return self._mapping(node)
        if node.tag == f"{_TAG}seq":
            return [self.value(each) for each in node.value]
        raise _unknown_tag(node)

    def _mapping(self, node: MappingNode) -> dict[str, object]:
        made: dict[str, object] = {}
        merged: list[Node] = []
        for key, each in node.value:
            if key.tag == _MERGE:
                merged.append(each)
                continue
            name = _key(key)
            if name in made:
                raise repeated_key(name, _line(key))
            made[name] = self.value(each)
        for each in merged:
            made = {**self._merged(each), **made}
        return made

    def _merged(self, node: Node) -> dict[str, object]:
        """Return the fields that a merge key adds; of several mappings the first one counts."""
        made: dict[str, object] = {}
        for each in [node] if isinstance(node, MappingNode) else reversed(node.value):
            if not isinstance(each, MappingNode):
                what = "`<<` takes a mapping, or a list of mappings"
                raise Unparsable(what, line=_line(node), hint="merge an alias of a mapping")
            made.update(cast("dict[str, object]", self.value(each)))
        return made


class _SharingBuilder(_Builder):
    """Builds one value for each node, which all its aliases share."""

    def __init__(self) -> None:
        self._values: dict[Node, object] = {}

    def value(self, node: Node) -> object:
        """Return the value of a node; raise Unparsable."""
        if node not in self._values:
            self._values[node] = super().value(node)
        return self._values[node]


def _key(node: Node) -> str:
    """Return a key as JSON has it: as text."""
    value = _scalar(node) if isinstance(node, ScalarNode) else None
    if isinstance(value, str):
        return value
    if value is None:
        raise Unparsable("has a key that is no text", line=_line(node), hint="put it in quotes")
    return str(value).lower() if isinstance(value, bool) else str(value)


def _scalar(node: ScalarNode) -> object:
    tag, text = node.tag, node.value
    if tag == f"{_TAG}str":
        return text
    if tag == f"{_TAG}null":
        return None
    if tag == f"{_TAG}bool":
        return text.lower() in _TRUE
    if tag not in {f"{_TAG}int", f"{_TAG}float"}:
        raise _unknown_tag(node)
    if len(text) > DIGITS_MAX:
        raise too_vast(_line(node))
    try:
        plain = text.replace("_", "").lower()
        number = _integer(plain) if tag == f"{_TAG}int" else float(plain.replace(".i", "i"))
    except ValueError as error:
        what = f"`{text}` is no number"
        raise Unparsable(what, line=_line(node), hint="put it in quotes if it is text") from error
    if not isfinite(number):
        raise too_vast(_line(node))
    return number


def _integer(text: str) -> int:
    digits = text.lstrip("+-")
    base = _BASES.get(digits[:2], 8 if digits[:1] == "0" and digits != "0" else 10)
    number = int(digits[2:] if base in _BASES.values() else digits, base)
    return -number if text[:1] == "-" else number


def _unknown_tag(node: Node) -> Unparsable:
    tag = node.tag.replace(_TAG, "!!")
    return Unparsable(f"has the tag `{tag}`", line=_line(node), hint="leave the tag out")
