"""Functions that Kubernetes adds to CEL: IP addresses, networks, URLs."""

from collections.abc import Callable
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_interface,
)
from typing import Final
from urllib.parse import SplitResult, parse_qs, quote, urlsplit

from karpy.codec.fields import JsonObject
from karpy.codec.validation.cellibrary import CelFunction, method

_Address = IPv4Address | IPv6Address
_Network = IPv4Network | IPv6Network


def _succeeds(read: Callable[[str], object]) -> Callable[[str], bool]:
    def call(text: str) -> bool:
        try:
            read(text)
        except ValueError:
            return False
        return True

    return call


def _address(text: str) -> _Address:
    address = ip_address(text)
    if isinstance(address, IPv6Address) and (address.ipv4_mapped or address.scope_id):
        msg = f"{text!r} is an IPv4 address in disguise, or has a zone"
        raise ValueError(msg)
    return address


def _as_object(address: _Address) -> JsonObject:
    return {"ip": str(address)}


def _ip(text: str) -> JsonObject:
    return _as_object(_address(text))


def _of(ip: JsonObject) -> _Address:
    return ip_address(ip["ip"])


def _is_canonical(text: str) -> bool:
    return str(_address(text)) == text


def _is_global(address: _Address) -> bool:
    return not (
        address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or address.is_link_local
        or str(address) == "255.255.255.255"
    )


def _is_local_multicast(address: _Address) -> bool:
    return address.exploded.startswith(("224.0.0.", "ff02:"))


def _cidr(text: str) -> JsonObject:
    address, _, length = text.partition("/")
    if not length.isdecimal() or (length != "0" and length.startswith("0")):
        msg = f"{text!r} has no length of its prefix"
        raise ValueError(msg)
    _address(address)
    return {"cidr": str(ip_interface(text))}


def _network(cidr: JsonObject) -> _Network:
    return ip_interface(cidr["cidr"]).network


def _contains(cidr: JsonObject, other: JsonObject | str) -> bool:
    if isinstance(other, str):
        other = _cidr(other) if "/" in other else _ip(other)
    if "ip" in other:
        return _of(other) in _network(cidr)
    return _is_within(_network(other), _network(cidr))


def _is_within(inner: _Network, outer: _Network) -> bool:
    return (
        inner.version == outer.version
        and inner.prefixlen >= outer.prefixlen
        and inner.network_address in outer
    )


def _url(text: str) -> JsonObject:
    """Accept what Go's url.ParseRequestURI accepts: an absolute URL or an absolute path."""
    parts = urlsplit(text)
    if not (parts.scheme or text.startswith("/")) or any(sign < " " for sign in text):
        msg = f"{text!r} is no URL"
        raise ValueError(msg)
    _ = parts.port
    return {"url": text}


def _parts(url: JsonObject) -> SplitResult:
    return urlsplit(url["url"])


def _host_name(url: JsonObject) -> str:
    host = _parts(url).netloc.rpartition("@")[2]
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


_IP: Final = ("object",)

ADDRESS_FUNCTIONS: Final = (
    CelFunction("isIP", ("string",), "bool", _succeeds(_address)),
    CelFunction("ip", ("string",), "object", _ip),
    CelFunction("ip.isCanonical", ("string",), "bool", _is_canonical),
    method("family", _IP, "int", lambda ip: _of(ip).version),
    method("isUnspecified", _IP, "bool", lambda ip: _of(ip).is_unspecified),
    method("isLoopback", _IP, "bool", lambda ip: _of(ip).is_loopback),
    method("isLinkLocalMulticast", _IP, "bool", lambda ip: _is_local_multicast(_of(ip))),
    method("isLinkLocalUnicast", _IP, "bool", lambda ip: _of(ip).is_link_local),
    method("isGlobalUnicast", _IP, "bool", lambda ip: _is_global(_of(ip))),
    CelFunction("isCIDR", ("string",), "bool", _succeeds(_cidr)),
    CelFunction("cidr", ("string",), "object", _cidr),
    method("containsIP", ("object", "object"), "bool", _contains),
    method("containsIP", ("object", "string"), "bool", _contains),
    method("containsCIDR", ("object", "object"), "bool", _contains),
    method("containsCIDR", ("object", "string"), "bool", _contains),
    method("ip", ("object",), "object", lambda cidr: _as_object(ip_interface(cidr["cidr"]).ip)),
    method("prefixLength", ("object",), "int", lambda cidr: _network(cidr).prefixlen),
    method("masked", ("object",), "object", lambda cidr: {"cidr": str(_network(cidr))}),
    CelFunction("isURL", ("string",), "bool", _succeeds(_url)),
    CelFunction("url", ("string",), "object", _url),
    method("getScheme", ("object",), "string", lambda url: _parts(url).scheme),
    method("getHost", ("object",), "string", lambda url: _parts(url).netloc.rpartition("@")[2]),
    method("getHostname", ("object",), "string", _host_name),
    method("getPort", ("object",), "string", lambda url: str(_parts(url).port or "")),
    method(
        "getEscapedPath",
        ("object",),
        "string",
        lambda url: quote(_parts(url).path, "/%:@!$&'()*+,;=~"),
    ),
    method("getQuery", ("object",), "object", lambda url: parse_qs(_parts(url).query, True)),
)
