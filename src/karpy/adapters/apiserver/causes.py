"""The details of a Status, read from the message of an error."""

import re
from typing import Final

from karpy.codec.fields import JsonObject

_REASONS: Final = {
    "Invalid value": "FieldValueInvalid",
    "Required value": "FieldValueRequired",
    "Duplicate value": "FieldValueDuplicate",
    "Unsupported value": "FieldValueNotSupported",
    "Forbidden": "FieldValueForbidden",
    "Not found": "FieldValueNotFound",
    "Too long": "FieldValueTooLong",
    "Too many": "FieldValueTooMany",
    "Internal error": "InternalError",
}
_OBJECT: Final = re.compile(
    r'(?:Operation cannot be fulfilled on )?(?P<resource>[a-z0-9][a-z0-9./-]*) "(?P<name>[^"]*)"'
)
_INVALID: Final = re.compile(
    r'(?P<kind>[A-Z]\w*)(?:\.(?P<group>[\w.-]+))? "(?P<name>[^"]*)" is invalid: (?P<why>.*)',
    re.DOTALL,
)
_FAULT: Final = re.compile(
    rf"(?:^|, )(?P<path>[\w<][^\s:]*): (?P<problem>(?P<word>{'|'.join(_REASONS)}))(?=[:,\]]|$)"
)


def cause_of(problem: str, field: str) -> JsonObject:
    """Return the cause for a faulty field: `Required value`, `Invalid value: "x": must be …`."""
    reason = _REASONS.get(problem.partition(":")[0], "FieldValueInvalid")
    return {"reason": reason, "message": problem, "field": field}


def details_of(message: str) -> JsonObject:
    """Return the object and the causes that a message names; empty if it names none."""
    if match := _INVALID.match(message):
        return {
            "name": match["name"],
            "group": match["group"] or "",
            "kind": match["kind"],
            "causes": _causes(match["why"]),
        }
    if match := _OBJECT.match(message):
        plural, _, group = match["resource"].partition(".")
        return {"name": match["name"], "group": group, "kind": plural}
    return {}


def _causes(why: str) -> list[JsonObject]:
    text = why[1:-1] if why.startswith("[") and why.endswith("]") else why
    starts = list(_FAULT.finditer(text))
    if not starts:
        return [cause_of(text, "")]
    ends = [each.start() for each in starts[1:]] + [len(text)]
    return [
        cause_of(text[start.start("problem") : end], start["path"])
        for start, end in zip(starts, ends, strict=True)
    ]
