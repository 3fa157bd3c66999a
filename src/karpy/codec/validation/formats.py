"""Formats of texts that an API server checks; unknown formats are ignored, here as there."""

import base64
import binascii
import re
from collections.abc import Callable
from datetime import date, datetime
from ipaddress import IPv4Address, IPv6Address, ip_network
from typing import Final

_TIME: Final = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt](\d{2}:\d{2}:\d{2})(\.\d+)?([Zz]|[+-]\d{2}:\d{2})", re.ASCII
)
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_DURATION: Final = re.compile(r"[-+]?(0|((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)", re.ASCII)
_LEADING_ZEROS: Final = re.compile(r"\b0+(?=\d)", re.ASCII)
_UUID: Final = re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE | re.ASCII)


def _is_time(text: str) -> bool:
    found = _TIME.fullmatch(text)
    return found is not None and _parses(datetime.fromisoformat, f"{found[1]}T{found[2]}")


def _is_date(text: str) -> bool:
    return bool(_DATE.fullmatch(text)) and _parses(date.fromisoformat, text)


def _is_ipv4(text: str) -> bool:
    """Accept leading zeros too, as an API server does for compatibility."""
    return _parses(IPv4Address, _LEADING_ZEROS.sub("", text))


def _is_base64(text: str) -> bool:
    return _parses(lambda each: base64.b64decode(each, validate=True), text)


def _parses(read: Callable[[str], object], text: str) -> bool:
    try:
        read(text)
    except (ValueError, binascii.Error):
        return False
    return True


FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    "date-time": _is_time,
    "datetime": _is_time,
    "date": _is_date,
    "duration": lambda text: bool(_DURATION.fullmatch(text)),
    "byte": _is_base64,
    "uuid": lambda text: bool(_UUID.fullmatch(text)),
    "ipv4": _is_ipv4,
    "ipv6": lambda text: _parses(IPv6Address, text),
    "cidr": lambda text: "/" in text and _parses(lambda each: ip_network(each, False), text),
}
