"""Connect to the cluster that a kubeconfig, the environment or the service account names."""

import os
from collections.abc import Mapping
from types import TracebackType
from typing import Final, Self

from msgspec import Struct, structs

from karpy.adapters.clock import WallClock
from karpy.adapters.kube.access import Access
from karpy.adapters.kube.api import KubeApi
from karpy.adapters.kube.auth import Credentials, FileCredentials, FixedCredentials
from karpy.adapters.kube.calls import Call
from karpy.adapters.kube.execplugin import ExecCredentials
from karpy.adapters.kube.feed import KubeFeed, OnTrouble, OnUnreadable
from karpy.adapters.kube.fence import Fence
from karpy.adapters.kube.incluster import is_in_cluster, read_service_account
from karpy.adapters.kube.kubeconfig import kubeconfig_files, read_kubeconfig
from karpy.adapters.kube.proxies import proxy_from_environment
from karpy.adapters.kube.retry import TokenBucket
from karpy.adapters.kube.transport import OnAnswer, Transport
from karpy.adapters.kube.wire import decode_object
from karpy.errors import KubeconfigInvalid
from karpy.ports.clock import Clock


class Rate(Struct, frozen=True):
    """Requests per second in the long run, and requests in a burst."""

    qps: float = 200.0
    burst: int = 300


RATE: Final = Rate()


class Connection:
    """
    A cluster as one user: `objects` reads and writes, `feed` watches.

    Use it with `async with`, or close it. It sends nothing before the first request. With a
    fence, it writes only while the fence is open.
    """

    def __init__(
        self,
        access: Access,
        *,
        rate: Rate | None = RATE,
        on_unreadable: OnUnreadable = lambda *_: None,
        on_trouble: OnTrouble = lambda *_: None,
        on_answer: OnAnswer | None = None,
        fence: Fence | None = None,
    ) -> None:
        limit = None if rate is None else TokenBucket(rate.qps, rate.burst)
        self._transport = Transport(
            access, credentials_of(access, WallClock()), limit=limit, on_answer=on_answer
        )
        if fence is not None:
            self._transport.fence(fence)
        self.access = access
        self.namespace = access.namespace
        self.objects = KubeApi(self._transport)
        self.feed = KubeFeed(self._transport, on_unreadable=on_unreadable, on_trouble=on_trouble)

    async def version(self) -> str:
        """Return the version of the API server, such as `v1.36.3`."""
        call = Call("GET", "/version", "get the version of the server")
        said = decode_object(call.what, await self._transport.send(call))
        return str(said.get("gitVersion") or "")

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()


def connect(context: str | None = None, kubeconfig: str | None = None) -> Connection:
    """
    Return a connection to the cluster that a kubeconfig, the environment or this pod names.

    Leader election needs a connection of its own without a rate, so that no other request delays
    the renewal of the lease: `Connection(find_access(), rate=None)`.
    """
    return Connection(find_access(context, kubeconfig))


def find_access(
    context: str | None = None,
    kubeconfig: str | None = None,
    env: Mapping[str, str] = os.environ,
) -> Access:
    """
    Find a cluster: by the given file, `KUBECONFIG`, the service account, or `~/.kube/config`.

    With a context, the service account is not used.
    """
    is_named = bool(context or kubeconfig or env.get("KUBECONFIG"))
    if not is_named and is_in_cluster(env):
        access = read_service_account(env)
    else:
        files = kubeconfig_files(kubeconfig, env)
        if not files:
            raise KubeconfigInvalid(
                path="~/.kube/config",
                problem="there is none, and this is no pod of a cluster",
                hint="set KUBECONFIG, or start a cluster of your own with `karpy cluster`",
            )
        access = read_kubeconfig(files, context)
    if access.endpoint.proxy:
        return access
    proxy = proxy_from_environment(access.endpoint.server, env)
    return structs.replace(access, endpoint=structs.replace(access.endpoint, proxy=proxy))


def credentials_of(access: Access, clock: Clock) -> Credentials:
    """Return the credentials of a user, which an exec plugin or files may renew."""
    user = structs.replace(access.user, basic=access.user.basic or access.endpoint.login)
    if user.plugin is not None:
        return ExecCredentials(user, access.endpoint, clock)
    if user.token_file or user.cert_file or user.key_file:
        return FileCredentials(user)
    return FixedCredentials(user)
