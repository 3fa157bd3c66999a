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
    is_required: bool = False
    marks: Mapping[str, str] = {}
    about: str = ""


class Shape(Struct, frozen=True):
    """A type with fields."""

    name: str
    """As in `core.v1.PodSpec`."""
    fields: Mapping[str, Field]
    marks: Mapping[str, str] = {}
    about: str = ""

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
    name, marks, about = "", {"": ""}, ""
    fields: dict[str, Field] = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        words, _, told = line.partition(" # ")
        first, *rest = words.split()
        if line.startswith(" "):
            field = _field(first, rest, told)
            fields[field.name] = field
            continue
        if name:
            yield Shape(name, fields, marks, about)
        name, marks, about, fields = first, _marks(rest), told, {}
    yield Shape(name, fields, marks, about)


def _field(first: str, rest: list[str], about: str) -> Field:
    type_, *marks = rest
    name = first.removesuffix("!")
    return Field(name, type_, is_required=name != first, marks=_marks(marks), about=about)


def _marks(words: list[str]) -> dict[str, str]:
    return dict(word.split("=", 1) for word in words)
