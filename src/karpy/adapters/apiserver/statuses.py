"""Status objects for errors and deletions, and common errors."""

from collections.abc import Mapping, Sequence
from typing import Final

from karpy.adapters.apiserver.causes import cause_of, details_of
from karpy.codec.fields import JsonObject
from karpy.errors import (
    AlreadyExists,
    BadRequest,
    ClusterError,
    Conflict,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
    ServerFault,
    Throttled,
    TlsRefused,
    Unauthorized,
    Unreachable,
)
from karpy.model.kinds import Kind

_BY_ERROR: Final[Mapping[type[ClusterError], tuple[int, str]]] = {
    Unreachable: (503, "ServiceUnavailable"),
    TlsRefused: (503, "ServiceUnavailable"),
    Unauthorized: (401, "Unauthorized"),
    Forbidden: (403, "Forbidden"),
    NotFound: (404, "NotFound"),
    AlreadyExists: (409, "AlreadyExists"),
    Conflict: (409, "Conflict"),
    Expired: (410, "Expired"),
    Invalid: (422, "Invalid"),
    Throttled: (429, "TooManyRequests"),
    BadRequest: (400, "BadRequest"),
    ServerFault: (500, "InternalError"),
}
_BY_CODE: Final[Mapping[int, str]] = {
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    501: "NotImplemented",
    503: "ServiceUnavailable",
    504: "Timeout",
}
_FAULT: Final = 500


def failure(error: ClusterError, kind: Kind | None = None, name: str = "") -> JsonObject:
    """Return the Status for an error, with its object if that is known."""
    code, reason = _code_and_reason(error)
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": error.message,
        "reason": reason,
        # kubectl reads `details` without a check, so an empty one is needed.
        "details": _details(error, kind, name),
        "code": code,
    }


def success(kind: Kind, obj: JsonObject) -> JsonObject:
    """Return the Status for a deleted object."""
    meta = obj["metadata"]
    details = {"name": meta["name"], "group": kind.group, "kind": kind.plural, "uid": meta["uid"]}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {key: value for key, value in details.items() if value},
    }


def nothing_there() -> NotFound:
    """Return the error for a path at which nothing is served."""
    return NotFound("the server could not find the requested resource", status=404)


def not_allowed() -> BadRequest:
    """Return the error for a verb that the resource does not support."""
    return BadRequest("the server does not allow this method on the requested resource", status=405)


def bad_options(options: str, field: str, problem: str) -> "OptionsInvalid":
    """Return the error for an invalid parameter of a request."""
    return OptionsInvalid(options, [(field, problem)])


class OptionsInvalid(Invalid):
    """Parameters of a request are invalid; `details` go into the Status."""

    def __init__(self, options: str, faults: Sequence[tuple[str, str]]) -> None:
        what = ", ".join(f"{field}: {problem}" for field, problem in faults)
        super().__init__(f'{options}.meta.k8s.io "" is invalid: {what}', status=422)
        self.details: JsonObject = {
            "group": "meta.k8s.io",
            "kind": options,
            "causes": [cause_of(problem, field) for field, problem in faults],
        }


def _code_and_reason(error: ClusterError) -> tuple[int, str]:
    code, reason = next(
        (found for each, found in _BY_ERROR.items() if isinstance(error, each)),
        (_FAULT, "InternalError"),
    )
    if error.status and error.status != code:
        return error.status, _BY_CODE.get(error.status, reason)
    return code, reason


def _details(error: ClusterError, kind: Kind | None, name: str) -> JsonObject:
    given = getattr(error, "details", None)
    details: JsonObject = dict(given) if isinstance(given, dict) else {}
    if not details and isinstance(error, _ABOUT_OBJECTS):
        details = details_of(error.message) or (_target(kind, name) if kind is not None else {})
    if error.retry_after is not None:
        details["retryAfterSeconds"] = int(error.retry_after)
    return {key: value for key, value in details.items() if value not in ("", None)}


def _target(kind: Kind, name: str) -> JsonObject:
    return {"name": name, "group": kind.group, "kind": kind.plural}


_ABOUT_OBJECTS: Final = (NotFound, AlreadyExists, Conflict, Forbidden, Invalid)
