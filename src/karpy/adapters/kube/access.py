"""How to reach one cluster as one user, wherever that was written."""

from typing import Final

from msgspec import Struct

from karpy.codec.fields import JsonObject

EXEC_V1: Final = "client.authentication.k8s.io/v1"
EXEC_V1BETA1: Final = "client.authentication.k8s.io/v1beta1"

NEVER: Final = "Never"
IF_AVAILABLE: Final = "IfAvailable"
ALWAYS: Final = "Always"


class Endpoint(Struct, frozen=True):
    """Where an API server is, and how to know that it is the right one."""

    server: str
    """Address without a slash at the end."""
    ca_pem: str = ""
    """Certificates to trust; empty means those that the machine trusts."""
    is_verified: bool = True
    tls_name: str = ""
    """Name the certificate must carry, if not the one in the address."""
    proxy: str = ""
    exec_config: JsonObject | None = None
    """What an exec plugin is told about the cluster besides."""


class ExecPlugin(Struct, frozen=True):
    """A command that gives credentials, such as `aws eks get-token`."""

    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    api_version: str = EXEC_V1
    install_hint: str = ""
    interactive_mode: str = IF_AVAILABLE
    has_cluster_info: bool = False
    """Whether it is told which cluster it is asked for."""


class User(Struct, frozen=True):
    """Who asks; files are read again from time to time, since others rotate what is in them."""

    token: str = ""
    token_file: str = ""
    basic: tuple[str, str] | None = None
    """Name and password."""
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
