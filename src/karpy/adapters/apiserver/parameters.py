"""The query parameters of requests."""

import json
import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from karpy.adapters.apiserver.statuses import OptionsInvalid, bad_options
from karpy.codec.fields import JsonObject
from karpy.errors import BadRequest
from karpy.ports.objects import Query, Removal

_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DIGITS_MAX: Final = 20
_INT64: Final = 2**63
_UINT64: Final = 2**64
_GRACE_MAX: Final = 2**31 - 1
_MANAGER_MAX: Final = 128
_SHOWN_MAX: Final = 100
_BROKEN: Final = frozenset(map(chr, range(0xDC80, 0xDD00)))
"""The characters into which aiohttp decodes bytes that are not UTF-8."""
_TRUE: Final = frozenset({"1", "true", "t", "True", "TRUE", "T"})
_NOT_OLDER: Final = "NotOlderThan"
_EXACT: Final = "Exact"
_VALIDATIONS: Final = ("", "Ignore", "Strict", "Warn")
NOW: Final = frozenset({"", "0"})
"""Resource versions that mean any version."""


class Listing(Struct, frozen=True):
    """The options of a list."""

    query: Query
    limit: int = 0
    token: str = ""
    version: str = ""
    is_exact: bool = False
    """Whether the list must be as of exactly that version."""


class Watching(Struct, frozen=True):
    """The options of a watch."""

    query: Query
    version: str = ""
    sends_initial: bool | None = None
    has_bookmarks: bool = False
    seconds: float | None = None


class Writing(Struct, frozen=True):
    """The options of a write."""

    manager: str
    validation: str = "Warn"
    is_dry_run: bool = False
    is_forced: bool = False


def check_headers(headers: Mapping[str, str]) -> None:
    """Raise BadRequest for a header that is not UTF-8, which no answer could quote."""
    for name, value in headers.items():
        if not value.isascii() and any(each in _BROKEN for each in value):
            raise BadRequest(f"the header `{name}` is not UTF-8", status=400)


def is_watch(params: Mapping[str, str]) -> bool:
    """Say whether a list request asks for a watch."""
    return _flag(params, "watch")


def read_listing(params: Mapping[str, str], namespace: str) -> Listing:
    """Read the options of a list."""
    version, match = params.get("resourceVersion", ""), params.get("resourceVersionMatch", "")
    token = params.get("continue", "")
    if "sendInitialEvents" in params:
        raise _forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")
    if match and not version:
        why = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        raise _forbidden("resourceVersionMatch", why)
    if match and token:
        why = "resourceVersionMatch is forbidden when continue is provided"
        raise _forbidden("resourceVersionMatch", why)
    if match not in {"", _NOT_OLDER, _EXACT}:
        raise _unsupported("ListOptions", "resourceVersionMatch", match, (_EXACT, _NOT_OLDER, ""))
    if match == _EXACT and version == "0":
        why = 'resourceVersionMatch "Exact" is forbidden for resourceVersion "0"'
        raise _forbidden("resourceVersionMatch", why)
    if token and version not in NOW:
        raise BadRequest(
            "specifying resource version is not allowed when using continue", status=400
        )
    _check_version(version)
    _count(params, "timeoutSeconds")
    return Listing(
        _query(params, namespace), _count(params, "limit"), token, version, match == _EXACT
    )


def read_watching(params: Mapping[str, str], namespace: str) -> Watching:
    """Read the options of a watch."""
    match = params.get("resourceVersionMatch", "")
    sends_initial = _flag(params, "sendInitialEvents") if "sendInitialEvents" in params else None
    if sends_initial is not None and match != _NOT_OLDER:
        why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        raise _forbidden("resourceVersionMatch", why)
    if match and sends_initial is None:
        why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        raise _forbidden("resourceVersionMatch", why)
    seconds = _count(params, "timeoutSeconds")
    version = params.get("resourceVersion", "")
    _check_version(version)
    return Watching(
        _query(params, namespace),
        version,
        sends_initial,
        _flag(params, "allowWatchBookmarks"),
        float(seconds) if seconds else None,
    )


def read_writing(params: Mapping[str, str], agent: str, options: str) -> Writing:
    """Read the options of a write; the default field manager is the client program."""
    validation = params.get("fieldValidation", "")
    if validation not in _VALIDATIONS:
        raise _unsupported(options, "fieldValidation", validation, _VALIDATIONS)
    manager = params.get("fieldManager", "")
    if len(manager) > _MANAGER_MAX:
        problem = f"Too long: may not be more than {_MANAGER_MAX} bytes"
        raise bad_options(options, "fieldManager", problem)
    if not manager.isprintable():
        problem = f"Invalid value: {json.dumps(manager)}: invalid character"
        raise bad_options(options, "fieldManager", problem)
    return Writing(
        manager or agent.partition("/")[0] or "unknown",
        validation or "Warn",
        is_dry(params.get("dryRun", ""), options),
        _flag(params, "force"),
    )


def is_dry(text: str, options: str) -> bool:
    """Say whether a write is a dry run."""
    if text not in {"", "All"}:
        problem = f'Unsupported value: ["{text}"]: supported values: "All"'
        raise OptionsInvalid(options, [("dryRun", problem)])
    return bool(text)


def read_removal(params: Mapping[str, str], body: JsonObject) -> tuple[Removal, bool]:
    """Read the options of a delete, and whether it is a dry run; the body overrides the query."""
    guards = body.get("preconditions") or {}
    grace = body.get("gracePeriodSeconds")
    if grace is None and "gracePeriodSeconds" in params:
        grace = _number(params, "gracePeriodSeconds")
    if grace is not None and grace > _GRACE_MAX:
        problem = f"Invalid value: {grace}: must be less than or equal to {_GRACE_MAX}"
        raise bad_options("DeleteOptions", "gracePeriodSeconds", problem)
    propagation = body.get("propagationPolicy") or params.get("propagationPolicy") or ""
    if propagation not in {"", "Background", "Foreground", "Orphan"}:
        known = ("Background", "Foreground", "Orphan")
        raise _unsupported("DeleteOptions", "propagationPolicy", propagation, known)
    orphans = body.get("orphanDependents")
    if orphans is None and "orphanDependents" in params:
        orphans = _flag(params, "orphanDependents")
    if orphans is not None and not propagation:
        propagation = "Orphan" if orphans else "Background"
    removal = Removal(
        grace_seconds=grace,
        uid=guards.get("uid") or "",
        version=guards.get("resourceVersion") or "",
        propagation=propagation,
    )
    dry = [*(body.get("dryRun") or ()), params.get("dryRun", "")]
    return removal, is_dry(dry[0], "DeleteOptions")


def _query(params: Mapping[str, str], namespace: str) -> Query:
    return Query(namespace, params.get("labelSelector", ""), params.get("fieldSelector", ""))


def _flag(params: Mapping[str, str], name: str) -> bool:
    return params.get(name, "") in _TRUE


def _number(params: Mapping[str, str], name: str) -> int:
    """Read a number as Go does; a missing one is 0."""
    text = params.get(name, "0")
    if problem := _why_no_number(text, -_INT64, _INT64):
        raise BadRequest(f'strconv.ParseInt: parsing "{_cut(text)}": {problem}', status=400)
    return int(text)


def _count(params: Mapping[str, str], name: str) -> int:
    """Read a number that must not be negative."""
    number = _number(params, name)
    if number < 0:
        why = f'"{name}" is {number}: must be greater than or equal to 0'
        raise BadRequest(why, status=400, hint=f"leave `{name}` out for no limit")
    return number


def _check_version(text: str) -> None:
    if text and (problem := _why_no_number(text, 0, _UINT64)):
        shown = _cut(text)
        raise BadRequest(
            f'invalid resource version: resourceVersion: Invalid value: "{shown}": '
            f'strconv.ParseUint: parsing "{shown}": {problem}',
            status=400,
        )


def _why_no_number(text: str, least: int, most: int) -> str:
    if not _INTEGER.fullmatch(text) or (least == 0 and not text.isdecimal()):
        return "invalid syntax"
    is_short = len(text) <= _DIGITS_MAX
    return "" if is_short and least <= int(text) < most else "value out of range"


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"


def _forbidden(field: str, why: str) -> OptionsInvalid:
    return bad_options("ListOptions", field, f"Forbidden: {why}")


def _unsupported(options: str, field: str, value: str, known: tuple[str, ...]) -> OptionsInvalid:
    words = ", ".join(f'"{word}"' for word in known)
    return bad_options(options, field, f'Unsupported value: "{value}": supported values: {words}')
