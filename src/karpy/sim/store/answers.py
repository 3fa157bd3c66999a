"""The errors of an API server, with its messages."""

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


class FieldFault(Struct, frozen=True, gc=False):
    """One fault of an object: the field and the problem."""

    path: str
    problem: str
    """`Required value`, `Invalid value: "x": must be …`, `Forbidden: …`."""

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"


class FieldsInvalid(Invalid):
    """An object with faults; `details` go into the Status for clients."""

    def __init__(
        self, kind: Kind, name: str, faults: Iterable[FieldFault], *, title: str = ""
    ) -> None:
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


def _reason(fault: FieldFault) -> str:
    return _REASONS.get(fault.problem.partition(":")[0], "FieldValueInvalid")


def qualified(kind: Kind) -> str:
    """Return a kind as messages name it: `Deployment.apps`."""
    return f"{kind.name}.{kind.group}" if kind.group else kind.name


def required(path: str, why: str = "") -> FieldFault:
    """Return the fault of a missing field."""
    return FieldFault(path, f"Required value: {why}" if why else "Required value")


def invalid(path: str, value: object, why: str) -> FieldFault:
    """Return the fault of an invalid value."""
    return FieldFault(path, f"Invalid value: {shown(value)}: {why}")


def unsupported(path: str, value: object, known: Iterable[str]) -> FieldFault:
    """Return the fault of a value outside an enumeration."""
    words = ", ".join(f'"{word}"' for word in known)
    return FieldFault(path, f"Unsupported value: {shown(value)}: supported values: {words}")


def forbidden_field(path: str, why: str) -> FieldFault:
    """Return the fault of a field that must not be set or changed."""
    return FieldFault(path, f"Forbidden: {why}")


def duplicate(path: str, value: object) -> FieldFault:
    """Return the fault of a value that occurs twice."""
    return FieldFault(path, f"Duplicate value: {shown(value)}")


def shown(value: object) -> str:
    """Return a value as messages quote it."""
    return msgspec.json.encode(value, order="deterministic").decode()


def not_found(kind: Kind, name: str) -> NotFound:
    """Return the error of an object that does not exist."""
    return NotFound(f'{kind.resource} "{name}" not found', status=_NOT_FOUND)


def already_exists(kind: Kind, name: str) -> AlreadyExists:
    """Return the error of a name that is taken."""
    return AlreadyExists(f'{kind.resource} "{name}" already exists', status=_CONFLICT)


def conflict(kind: Kind, name: str, why: str) -> Conflict:
    """Return the error of a conflict."""
    return Conflict(
        f'Operation cannot be fulfilled on {kind.resource} "{name}": {why}', status=_CONFLICT
    )


def precondition_failed(kind: Kind, name: str, why: str) -> Conflict:
    """Return the error of a deletion whose precondition on UID or version does not hold."""
    what = f'Operation cannot be fulfilled on {qualified(kind)} "{name}": {why}'
    return Conflict(what, status=_CONFLICT)


def stale(kind: Kind, name: str) -> Conflict:
    """Return the error of a write with an outdated resourceVersion."""
    why = (
        "the object has been modified; please apply your changes to the latest version "
        "and try again"
    )
    return conflict(kind, name, why)


def forbidden(kind: Kind, name: str, why: str) -> Forbidden:
    """Return the error of an admission rule."""
    return Forbidden(
        f'{kind.resource} "{name}" is forbidden: {why}',
        status=_FORBIDDEN,
        hint="change what the message names, or the object it depends on",
    )


def bad_request(why: str, hint: str = "") -> BadRequest:
    """Return the error of an invalid request."""
    return BadRequest(why, status=_BAD_REQUEST, hint=hint)


def not_allowed(what: str) -> BadRequest:
    """Return the error of a verb that a kind or subresource does not support."""
    return BadRequest(
        f"the server does not allow this method on the requested resource: {what}",
        status=_NOT_ALLOWED,
    )


def no_such_resource(what: str) -> NotFound:
    """Return the error of a path that is not served."""
    return NotFound(
        "the server could not find the requested resource",
        status=_NOT_FOUND,
        hint=f"there is no {what}; install its CustomResourceDefinition (`karpy crds` prints ours)",
    )


def too_old(asked: int, oldest: int) -> Expired:
    """Return the error of a version older than the history."""
    return Expired(f"too old resource version: {asked} ({oldest})", status=_GONE)


def continue_too_old() -> Expired:
    """Return the error of a continue token older than the history."""
    return Expired(
        "The provided continue parameter is too old to display a consistent list result. You can "
        "start a new list without the continue parameter.",
        status=_GONE,
    )


def unsupported_media_type() -> BadRequest:
    """Return the error of a strategic merge patch on a custom resource."""
    return BadRequest(
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
        status=_UNSUPPORTED_MEDIA,
        hint="use a merge patch for custom resources",
    )


def unreadable(kind: Kind, why: str) -> BadRequest:
    """Return the error of an object whose fields have wrong types."""
    return BadRequest(
        f'{kind.name} in version "{kind.version}" cannot be handled as a {kind.name}: {why}',
        status=_BAD_REQUEST,
        hint="write the field as the API reference shows it",
    )
