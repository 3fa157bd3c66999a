"""Read the cases: accepted objects, refused objects and the messages of their refusals."""

from pathlib import Path
from typing import Any, Final

import yaml
from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.codec.schemas.definitions import CUSTOM_KINDS
from karpy.model.kinds import CUSTOM, Kind

FOREIGN: Final = Kind("example.com", "v1", "Gadget", "gadgets")
"""A kind that Karpy does not know; users may install its definition at any time."""

_FOLDER: Final = Path(__file__).parent


class CrdCase(Struct, frozen=True):
    """A schema or validation rule, with objects that it accepts and objects that it refuses."""

    claim: str
    kind: Kind
    before: JsonObject | None
    """The stored object that the others replace; None if they are created."""
    accepted: JsonObject
    rejected: JsonObject
    path: str
    """The field that the refusal names."""
    says: str
    """A part of the message about the field."""
    subresource: str = ""
    """The subresource to write to; empty for the object itself."""

    @property
    def id(self) -> str:
        return f"{self.kind.plural}: {self.claim}"


def read_cases() -> tuple[CrdCase, ...]:
    """Read the cases of all kinds."""
    return tuple(case for kind in (*CUSTOM, FOREIGN) for case in _of_kind(kind))


def read_definitions() -> dict[Kind, JsonObject]:
    """Return the CustomResourceDefinitions of the cases."""
    made = {each.kind: each.to_json() for each in CUSTOM_KINDS}
    return {**made, FOREIGN: _read(FOREIGN)["definition"]}


def base_of(kind: Kind) -> JsonObject:
    """Return the valid object that the cases of a kind change."""
    base: JsonObject = _read(kind)["base"]
    return base


def _of_kind(kind: Kind) -> list[CrdCase]:
    content = _read(kind)
    return [_case(kind, content["base"], each) for each in content["cases"]]


def _read(kind: Kind) -> dict[str, Any]:
    text = (_FOLDER / f"{kind.plural}.yaml").read_text(encoding="utf-8")
    content: dict[str, Any] = yaml.safe_load(text)
    return content


def _case(kind: Kind, base: JsonObject, case: dict[str, Any]) -> CrdCase:
    start = _merged(base, case.get("from", {}))
    return CrdCase(
        claim=case["claim"],
        kind=kind,
        before=start if "from" in case else None,
        accepted=_merged(start, case["accepts"]),
        rejected=_merged(start, case["rejects"]),
        path=case["at"],
        says=case["says"],
        subresource=case.get("subresource", ""),
    )


def _merged(value: JsonObject, patch: JsonObject) -> JsonObject:
    """Apply a JSON merge patch."""
    made = dict(value)
    for key, each in patch.items():
        before = made.get(key)
        if each is None:
            made.pop(key, None)
        elif isinstance(each, dict) and not any(name.startswith("$") for name in each):
            made[key] = _merged(before if isinstance(before, dict) else {}, each)
        else:
            made[key] = _spelt_out(each)
    return made


def _spelt_out(value: object) -> object:
    """Expand the abbreviations for long values in a case."""
    match value:
        case {"$many": count}:
            return {f"k{number}": "v" for number in range(count)}
        case {"$long": length}:
            return "x" * length
        case {"$repeat": [count, item]}:
            return [_spelt_out(item) for _ in range(count)]
        case dict():
            return {key: _spelt_out(each) for key, each in value.items()}
        case list():
            return [_spelt_out(each) for each in value]
    return value
