"""What an API server says when it says no, in its own words."""

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.errors import AlreadyExists, BadRequest, Conflict, Expired, Forbidden, Invalid, NotFound
from karpy.model.kinds import Kind

_BAD_REQUEST: Final = 400
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_NOT_ALLOWED: Final = 405
_CONFLICT: Final = 409
_GONE: Final = 410
_UNSUPPORTED_MEDIA: Final = 415
_UNPROCESSABLE: Final = 422


class Fault(Struct, frozen=True, gc=False):
    """One thing that is wrong with an object."""

    path: str
    problem: str
    """`Required value`, `Invalid value: "x": must be …`, `Forbidden: …`."""

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"


class FieldsInvalid(Invalid):
    """An object is wrong in these places; `details` go into the Status for foreign clients."""

    def __init__(self, kind: Kind, name: str, faults: Iterable[Fault], *, title: str = "") -> None:
        self.faults = tuple(faults)
        what = ", ".join(dict.fromkeys(str(fault) for fault in self.faults))
        if len(self.faults) > 1:
            what = f"[{what}]"
        super().__init__(
            f'{title or qualified(kind)} "{name}" is invalid: {what}', status=_UNPROCESSABLE
        )
        self.details: JsonObject = {
            "name": name,
            "group": kind.group,
            "kind": kind.name,
            "causes": [
                {"reason": _reason(fault), "message": fault.problem, "field": fault.path}
                for fault in self.faults
            ],
        }


_REASONS: Final = {
    "Required value": "FieldValueRequired",
    "Duplicate value": "FieldValueDuplicate",
    "Unsupported value": "FieldValueNotSupported",
    "Forbidden": "FieldValueForbidden",
    "Not found": "FieldValueNotFound",
}


def _reason(fault: Fault) -> str:
    return _REASONS.get(fault.problem.partition(":")[0], "FieldValueInvalid")


def qualified(kind: Kind) -> str:
    """Name a kind the way messages about invalid objects do: `Deployment.apps`."""
    return f"{kind.name}.{kind.group}" if kind.group else kind.name


def required(path: str, why: str = "") -> Fault:
    """Say that a field must be there."""
    return Fault(path, f"Required value: {why}" if why else "Required value")


def invalid(path: str, value: object, why: str) -> Fault:
    """Say that a field must not have this value."""
    return Fault(path, f"Invalid value: {shown(value)}: {why}")


def unsupported(path: str, value: object, known: Iterable[str]) -> Fault:
    """Say that a field takes only certain words."""
    words = ", ".join(f'"{word}"' for word in known)
    return Fault(path, f"Unsupported value: {shown(value)}: supported values: {words}")


def forbidden_field(path: str, why: str) -> Fault:
    """Say that a field must not be there, or must not be changed."""
    return Fault(path, f"Forbidden: {why}")


def duplicate(path: str, value: object) -> Fault:
    """Say that a value occurs twice."""
    return Fault(path, f"Duplicate value: {shown(value)}")


def shown(value: object) -> str:
    """Write a value the way messages quote it."""
    return msgspec.json.encode(value, order="deterministic").decode()


def not_found(kind: Kind, name: str) -> NotFound:
    """Say that there is no such object."""
    return NotFound(f'{kind.resource} "{name}" not found', status=_NOT_FOUND)


def already_exists(kind: Kind, name: str) -> AlreadyExists:
    """Say that the name is taken."""
    return AlreadyExists(f'{kind.resource} "{name}" already exists', status=_CONFLICT)


def conflict(kind: Kind, name: str, why: str) -> Conflict:
    """Say that a precondition does not hold."""
    return Conflict(
        f'Operation cannot be fulfilled on {kind.resource} "{name}": {why}', status=_CONFLICT
    )


def precondition_failed(kind: Kind, name: str, why: str) -> Conflict:
    """Say that it is not the object, or not the version of it, that was to be deleted."""
    what = f'Operation cannot be fulfilled on {qualified(kind)} "{name}": {why}'
    return Conflict(what, status=_CONFLICT)


def stale(kind: Kind, name: str) -> Conflict:
    """Return the error of a write that another write has overtaken."""
    why = (
        "the object has been modified; please apply your changes to the latest version "
        "and try again"
    )
    return conflict(kind, name, why)


def forbidden(kind: Kind, name: str, why: str) -> Forbidden:
    """Say that an admission rule is against it."""
    return Forbidden(
        f'{kind.resource} "{name}" is forbidden: {why}',
        status=_FORBIDDEN,
        hint="change what the message names, or the object it depends on",
    )


def bad_request(why: str, hint: str = "") -> BadRequest:
    """Say that the request makes no sense."""
    return BadRequest(why, status=_BAD_REQUEST, hint=hint)


def not_allowed(what: str) -> BadRequest:
    """Say that this cannot be done to this kind or subresource."""
    return BadRequest(
        f"the server does not allow this method on the requested resource: {what}",
        status=_NOT_ALLOWED,
    )


def no_such_resource(what: str) -> NotFound:
    """Say that nothing is served there."""
    return NotFound(
        "the server could not find the requested resource",
        status=_NOT_FOUND,
        hint=f"there is no {what}; install its CustomResourceDefinition (`karpy crds` prints ours)",
    )


def too_old(asked: int, oldest: int) -> Expired:
    """Say that history does not reach back so far."""
    return Expired(f"too old resource version: {asked} ({oldest})", status=_GONE)


def continue_too_old() -> Expired:
    """Say that the next page of a list would not go with the first."""
    return Expired(
        "The provided continue parameter is too old to display a consistent list result. You can "
        "start a new list without the continue parameter.",
        status=_GONE,
    )


def unsupported_media_type() -> BadRequest:
    """Say that custom resources know no strategic merge patch."""
    return BadRequest(
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
        status=_UNSUPPORTED_MEDIA,
        hint="use a merge patch for custom resources",
    )


def unreadable(kind: Kind, why: str) -> BadRequest:
    """Say that an object does not have the types of its kind."""
    return BadRequest(
        f'{kind.name} in version "{kind.version}" cannot be handled as a {kind.name}: {why}',
        status=_BAD_REQUEST,
        hint="write the field as the API reference shows it",
    )
