"""Proxies from the environment: `HTTPS_PROXY`, `NO_PROXY`, read as Go programs read them."""

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from karpy.adapters.kube.addresses import ADDRESS_HINT, is_address
from karpy.errors import OptionInvalid


def proxy_from_environment(server: str, env: Mapping[str, str]) -> str:
    """Return the proxy for a server, or an empty text for none; raise OptionInvalid."""
    parts = urlsplit(server)
    name = f"{parts.scheme.upper()}_PROXY"
    proxy = _first(env, name, name.lower())
    host = parts.hostname or ""
    if not proxy or host == "localhost" or _is_loopback(host):
        return ""
    exceptions = _first(env, "NO_PROXY", "no_proxy").split(",")
    if any(_covers(each.strip().lower(), host, parts.port) for each in exceptions):
        return ""
    address = proxy if "://" in proxy else f"http://{proxy}"
    if not is_address(address):
        problem = "is no address of an http:// or https:// proxy"
        raise OptionInvalid(name=name, problem=problem, hint=ADDRESS_HINT)
    return address


def _first(env: Mapping[str, str], *names: str) -> str:
    return next((env[name] for name in names if env.get(name)), "")


def _covers(exception: str, host: str, port: int | None) -> bool:
    if not exception:
        return False
    if exception == "*":
        return True
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(exception, strict=False)
    except ValueError:
        pass
    name, _, only_port = exception.partition(":")
    if only_port and only_port != str(port):
        return False
    name = name.removeprefix("*")
    if name.startswith("."):
        return host.endswith(name)
    return host == name or host.endswith(f".{name}")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
