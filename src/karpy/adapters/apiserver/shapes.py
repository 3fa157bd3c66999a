"""The types of the built-in kinds, read from shapes.txt."""

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
"""The packages of types outside of `io.k8s.api`."""


class Field(Struct, frozen=True):
    """A field of a type."""

    name: str
    type: str
    """A scalar or the name of a shape, or `[]` or `{}` and the type of the items."""
    number: int = 0
    """The number of the field in protobuf; 0 if it has none."""
    is_required: bool = False
    is_pointer: bool = False
    """Whether zero differs from an unset field."""
    marks: Mapping[str, str] = {}
    about: str = ""


class Shape(Struct, frozen=True):
    """A type with fields."""

    name: str
    """The name within `io.k8s.api`: `core.v1.PodSpec`."""
    fields: Mapping[str, Field]
    marks: Mapping[str, str] = {}
    about: str = ""
    inlined: Mapping[int, str] = {}
    """Embedded protobuf messages whose fields are inlined, by number."""

    @property
    def full_name(self) -> str:
        """The name in OpenAPI documents: `io.k8s.api.core.v1.PodSpec`."""
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
    """Return the type of the items within all lists and maps."""
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
        words, _, comment = line.partition(" # ")
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
            about=comment,
        )
        fields[field.name] = field
    return Shape(name, fields, _marks(marks), about, inlined)


def _marks(words: list[str]) -> dict[str, str]:
    return dict(word.split("=", 1) for word in words)
