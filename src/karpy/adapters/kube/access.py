"""How to reach one cluster as one user, wherever that was written."""

from typing import Final

from msgspec import Struct
from msgspec.structs import force_setattr

from karpy.adapters.kube.addresses import Login, split_login
from karpy.codec.fields import JsonObject

EXEC_V1: Final = "client.authentication.k8s.io/v1"
EXEC_V1BETA1: Final = "client.authentication.k8s.io/v1beta1"

NEVER: Final = "Never"
IF_AVAILABLE: Final = "IfAvailable"
ALWAYS: Final = "Always"


class Withheld(Struct, frozen=True):
    """A value of which no message, log or traceback shows anything."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(withheld)"


class Endpoint(Withheld, frozen=True):
    """
    Where an API server is, and how to know that it is the right one.

    A name and password in an address are taken out of it, so that messages can show the address.
    """

    server: str
    """Address without a slash at the end."""
    ca_pem: str = ""
    """Certificates to trust; empty means those that the machine trusts."""
    is_verified: bool = True
    tls_name: str = ""
    """Name the certificate must carry, if not the one in the address."""
    proxy: str = ""
    exec_config: JsonObject | None = None
    """What an exec plugin gets about the cluster besides."""
    login: Login | None = None
    """What the address of the server carried; counts if the user has no other credentials."""
    proxy_login: Login | None = None

    def __post_init__(self) -> None:
        for address, login in (("server", "login"), ("proxy", "proxy_login")):
            bare, carried = split_login(getattr(self, address))
            if carried is not None:
                force_setattr(self, address, bare)
                force_setattr(self, login, carried)


class ExecPlugin(Withheld, frozen=True):
    """A command that gives credentials, such as `aws eks get-token`."""

    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    api_version: str = EXEC_V1
    install_hint: str = ""
    interactive_mode: str = IF_AVAILABLE
    has_cluster_info: bool = False
    """Whether it gets the cluster that it is called for."""


class User(Withheld, frozen=True):
    """Who asks; files are read again from time to time, since others rotate what is in them."""

    token: str = ""
    token_file: str = ""
    basic: Login | None = None
    cert_pem: str = ""
    key_pem: str = ""
    cert_file: str = ""
    key_file: str = ""
    plugin: ExecPlugin | None = None
    headers: tuple[tuple[str, str], ...] = ()
    """On whose behalf, if not the user's own."""


class Access(Struct, frozen=True):
    """One cluster, one user, one namespace to begin with."""

    endpoint: Endpoint
    user: User
    namespace: str
    source: str
    """The file this was read from, for messages."""
