"""Content negotiation: the form of an answer, from the Accept header."""

from collections.abc import Iterator
from enum import Enum
from typing import Final

from msgspec import Struct

from karpy.errors import BadRequest

JSON: Final = "application/json"
YAML: Final = "application/yaml"
_ANY: Final = frozenset({"*/*", "application/*"})
_META: Final = "meta.k8s.io"


class View(Enum):
    """Whole objects, their metadata or a table; the value is the `as` parameter of Accept."""

    WHOLE = ""
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"


class Form(Struct, frozen=True):
    """The view and the media type of an answer."""

    view: View = View.WHOLE
    is_yaml: bool = False

    @property
    def content_type(self) -> str:
        return YAML if self.is_yaml else JSON


class _Clause(Struct, frozen=True):
    media: str
    params: dict[str, str]


def negotiate(accept: str) -> Form:
    """Choose the first supported form; raise BadRequest (406) if there is none."""
    for clause in _clauses(accept or "*/*"):
        if clause.media != YAML and clause.media not in {JSON, *_ANY}:
            continue
        wanted = clause.params.get("as", "").removesuffix("List")
        if not wanted:
            return Form(is_yaml=clause.media == YAML)
        is_ours = clause.params.get("g") == _META and clause.params.get("v") == "v1"
        if is_ours and wanted in {View.TABLE.value, View.METADATA.value}:
            return Form(View(wanted), is_yaml=clause.media == YAML)
    raise BadRequest(
        f"406: Not Acceptable\n\nAvailable representations: {JSON}, {YAML}", status=406
    )


def wants_aggregated(accept: str) -> bool:
    """Say whether a client accepts aggregated discovery."""
    for clause in _clauses(accept or "*/*"):
        if clause.params.get("as") == "APIGroupDiscoveryList":
            if clause.media == JSON and clause.params.get("v") == "v2":
                return True
        elif clause.media in {JSON, *_ANY}:
            return False
    return False


def _clauses(accept: str) -> Iterator[_Clause]:
    for text in accept.split(","):
        media, *params = (part.strip() for part in text.split(";"))
        pairs = (param.partition("=") for param in params)
        yield _Clause(media.lower(), {key.strip(): value.strip() for key, _, value in pairs})
