"""The cluster: the version of its control plane, and what EKS says of its addresses."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.adapters.clouds.aws.calls import AwsCalls
from karpy.core.lifecycle.changes import Remark
from karpy.errors import CloudError

PERIOD: Final = timedelta(minutes=5)
_MINORS: Final = range(26, 37)
"""Minor versions of Kubernetes 1 that the provider was made for."""


class ClusterFacts(Struct, frozen=True):
    """An EKS cluster; what is not known is empty."""

    kubernetes: str = ""
    """The version of the control plane, such as `1.34`."""
    cidr: str = ""
    """The range of addresses of Services."""
    endpoint: str = ""
    ca_bundle: str = ""
    arn: str = ""


ServerVersion = Callable[[], Awaitable[str]]
"""Returns the version of the API server, such as `1.34`; empty if it does not say."""


async def _unknown() -> str:
    return ""


class ClusterWatch:
    """
    Asks about a cluster now and then; what was said last holds while nothing can be asked.

    The API server says the version of the control plane; EKS does if the API server does not.
    """

    def __init__(
        self,
        calls: AwsCalls,
        name: str,
        server_version: ServerVersion = _unknown,
        on_remark: Callable[[Remark], None] = lambda _: None,
    ) -> None:
        self._on_remark = on_remark
        self._calls = calls
        self._name = name
        self._server_version = server_version
        self.facts = ClusterFacts()
        self.trouble: CloudError | None = None
        """Why EKS could not be asked the last time."""

    async def refresh(self) -> None:
        """Ask once; raise CloudError if EKS cannot be asked."""
        version = await self._server_version()
        if version:
            self._hear(version)
            self.facts = replace(self.facts, kubernetes=version)
        try:
            answer = await self._calls.describe_cluster(name=self._name)
        except CloudError as error:
            self.trouble = error
            raise
        found, self.trouble = read_facts(answer.get("cluster") or {}), None
        self._hear(version or found.kubernetes)
        self.facts = replace(found, kubernetes=version or found.kubernetes)

    def _hear(self, version: str) -> None:
        """Report a version that is new, and that the provider was not made for."""
        minor = version.partition(".")[2]
        is_known = minor.isdecimal() and int(minor) in _MINORS
        if version and version != self.facts.kubernetes and not is_known:
            fields = {"version": version, "supported": f"1.{_MINORS[0]} to 1.{_MINORS[-1]}"}
            remark = Remark("kubernetes version is not supported", fields, is_error=True)
            self._on_remark(remark)

    async def refresh_if_possible(self) -> CloudError | None:
        """Ask once; return why EKS could not be asked."""
        try:
            await self.refresh()
        except CloudError as error:
            return error
        return None


def read_facts(cluster: dict[str, Any]) -> ClusterFacts:
    """Read what DescribeCluster answers."""
    network = cluster.get("kubernetesNetworkConfig") or {}
    return ClusterFacts(
        kubernetes=cluster.get("version", ""),
        cidr=network.get("serviceIpv4Cidr") or network.get("serviceIpv6Cidr") or "",
        endpoint=cluster.get("endpoint", ""),
        ca_bundle=(cluster.get("certificateAuthority") or {}).get("data", ""),
        arn=cluster.get("arn", ""),
    )
