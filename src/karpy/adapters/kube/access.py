"""How to reach one cluster as one user, as a kubeconfig or a service account says."""

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
    """A value whose repr shows no field, so that no message, log or traceback holds a secret."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(withheld)"


class Endpoint(Withheld, frozen=True):
    """
    The address of an API server, and how to verify its certificate.

    A name and password in an address are moved to a login, so that messages can show the address.
    """

    server: str
    """Address without a slash at the end."""
    ca_pem: str = ""
    """The authorities to trust, as PEM; empty means those that the machine trusts."""
    is_verified: bool = True
    tls_name: str = ""
    """The host name that the certificate must carry, if it is not the host of the address."""
    proxy: str = ""
    exec_config: JsonObject | None = None
    """The `config` of the cluster, which exec plugins get with its address and certificates."""
    login: Login | None = None
    """Name and password from the address; used if the user has no other credentials."""
    proxy_login: Login | None = None

    def __post_init__(self) -> None:
        for address, login in (("server", "login"), ("proxy", "proxy_login")):
            bare, carried = split_login(getattr(self, address))
            if carried is not None:
                force_setattr(self, address, bare)
                force_setattr(self, login, carried)


class ExecPlugin(Withheld, frozen=True):
    """A command that prints credentials, such as `aws eks get-token`."""

    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    api_version: str = EXEC_V1
    install_hint: str = ""
    interactive_mode: str = IF_AVAILABLE
    has_cluster_info: bool = False
    """Whether the command gets the cluster for which it is run (`provideClusterInfo`)."""


class User(Withheld, frozen=True):
    """The credentials of a user; files are read again from time to time, since they are rotated."""

    token: str = ""
    token_file: str = ""
    basic: Login | None = None
    cert_pem: str = ""
    key_pem: str = ""
    cert_file: str = ""
    key_file: str = ""
    plugin: ExecPlugin | None = None
    headers: tuple[tuple[str, str], ...] = ()
    """The headers that impersonate another user, if there are any."""


class Access(Struct, frozen=True):
    """A cluster, a user and a default namespace."""

    endpoint: Endpoint
    user: User
    namespace: str
    source: str
    """The file that names them, for messages."""
