"""The time zone of an answer."""

import os
from collections.abc import Mapping
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec import Struct

from karpy.errors import OptionInvalid

_LOCAL: Final = Path("/etc/localtime")
_FOLDER: Final = "zoneinfo/"


class Zone(Struct, frozen=True):
    """A time zone and its name."""

    name: str
    info: tzinfo


GREENWICH: Final = Zone("UTC", UTC)


def find_zone(name: str | None, environ: Mapping[str, str] = os.environ) -> Zone:
    """Return a time zone by name, by default the machine's; raise OptionInvalid."""
    if name is None:
        return _zone_of(_local_name(environ)) or GREENWICH
    found = _zone_of(name)
    if found is None:
        raise OptionInvalid(
            name="--timezone",
            problem=f"is `{name}`, which is no time zone known here",
            hint="write a name such as Europe/Berlin, or UTC",
        )
    return found


def _zone_of(name: str) -> Zone | None:
    if name in {"", "UTC", "Etc/UTC"}:
        return GREENWICH
    try:
        return Zone(name, ZoneInfo(name))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _local_name(environ: Mapping[str, str]) -> str:
    """Return the name of the time zone of environment or machine; empty if it is unknown."""
    named = environ.get("TZ", "").removeprefix(":")
    if named:
        return named
    try:
        _, is_found, name = str(_LOCAL.readlink()).partition(_FOLDER)
    except OSError:
        return ""
    return name if is_found else ""
