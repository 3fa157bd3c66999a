"""The types of the built-in kinds, as shapes.txt writes them down."""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Final

from msgspec import Struct

from karpy.model.kinds import Kind

LIST: Final = "[]"
MAP: Final = "{}"
SCALARS: Final = frozenset(
    {"string", "bytes", "bool", "int32", "int64", "double", "Time", "MicroTime", "Quantity"}
    | {"IntOrString", "object", "any"}
)
METADATA: Final = "meta.v1.ObjectMeta"
SCALE: Final = "autoscaling.v1.Scale"

_PACKAGES: Final[Mapping[str, str]] = {
    "meta": "io.k8s.apimachinery.pkg.apis.meta",
    "apiextensions": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions",
}
"""Where a type is not in a package of `io.k8s.api`."""


class Field(Struct, frozen=True):
    """A field of a type."""

    name: str
    type: str
    """A scalar, the name of a shape, or one of these within `[]` or `{}`."""
    number: int = 0
    """By which protobuf knows it; 0 if it does not."""
    is_required: bool = False
    is_pointer: bool = False
    """Whether zero is a value, and not the same as nothing."""
    marks: Mapping[str, str] = {}
    about: str = ""


class Shape(Struct, frozen=True):
    """A type with fields."""

    name: str
    """As in `core.v1.PodSpec`."""
    fields: Mapping[str, Field]
    marks: Mapping[str, str] = {}
    about: str = ""
    inlined: Mapping[int, str] = {}
    """Messages of protobuf whose fields are all here."""

    @property
    def full_name(self) -> str:
        """The name by which the world knows it: `io.k8s.api.core.v1.PodSpec`."""
        package, _, rest = self.name.partition(".")
        return f"{_PACKAGES.get(package, f'io.k8s.api.{package}')}.{rest}"


@cache
def shapes() -> Mapping[str, Shape]:
    """Return all types by name."""
    text = files(__package__).joinpath("shapes.txt").read_text(encoding="utf-8")
    return {shape.name: shape for shape in _read(text)}


def shape_of(kind: Kind) -> Shape | None:
    """Return the type of a built-in kind; None if it is not one."""
    group, _, _ = kind.group.partition(".")
    return shapes().get(f"{group or 'core'}.{kind.version}.{kind.name}")


def inner(type_: str) -> str:
    """Return the type within all lists and maps."""
    while type_.startswith((LIST, MAP)):
        type_ = type_[2:]
    return type_


def _read(text: str) -> Iterator[Shape]:
    block: list[str] = []
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        if block and not line.startswith(" "):
            yield _shape(block)
            block = []
        block.append(line)
    yield _shape(block)


def _shape(block: list[str]) -> Shape:
    head, _, about = block[0].partition(" # ")
    name, *marks = head.split()
    fields, inlined = {}, {}
    for line in block[1:]:
        words, _, told = line.partition(" # ")
        number, first, type_, *rest = words.split()
        if first == "=":
            inlined[int(number)] = type_
            continue
        field = Field(
            first.removesuffix("!"),
            type_.removeprefix("*"),
            int(number) if number != "-" else 0,
            is_required=first.endswith("!"),
            is_pointer=type_.startswith("*"),
            marks=_marks(rest),
            about=told,
        )
        fields[field.name] = field
    return Shape(name, fields, _marks(marks), about, inlined)


def _marks(words: list[str]) -> dict[str, str]:
    return dict(word.split("=", 1) for word in words)
