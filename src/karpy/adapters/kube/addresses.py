"""Addresses of servers and proxies, and the name and password that an address may carry."""

from base64 import b64encode
from typing import Final, TypeAlias
from urllib.parse import quote, unquote, urlsplit, urlunsplit

Login: TypeAlias = tuple[str, str]
"""Name and password."""

ADDRESS_HINT: Final = (
    "write it as `https://HOST:PORT`; in a password write `@` as `%40` and `/` as `%2F`"
)
_SCHEMES: Final = ("http://", "https://")


def is_address(text: str) -> bool:
    """Say whether a text is the http:// or https:// address of a host."""
    try:
        parts = urlsplit(text)
        is_host = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    # An `@` after the host means that the password holds a `/`: messages would show its rest.
    is_plain = "@" not in parts.path + parts.query + parts.fragment
    return text.startswith(_SCHEMES) and is_host and is_plain


def split_login(address: str) -> tuple[str, Login | None]:
    """Return an address without its login, and the login."""
    parts = urlsplit(address)
    login, has_login, host = parts.netloc.rpartition("@")
    if not has_login:
        return address, None
    name, _, password = login.partition(":")
    return urlunsplit(parts._replace(netloc=host)), (unquote(name), unquote(password))


def join_login(address: str, login: Login | None) -> str:
    """Return an address with a login in it, for programs that take both as one text."""
    if login is None:
        return address
    parts = urlsplit(address)
    name, password = (quote(each, safe="") for each in login)
    return urlunsplit(parts._replace(netloc=f"{name}:{password}@{parts.netloc}"))


def basic_authorization(login: Login) -> str:
    """Return the value of the Authorization header for a login."""
    return f"Basic {b64encode(':'.join(login).encode()).decode()}"
