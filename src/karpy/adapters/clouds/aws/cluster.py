"""Facts about the EKS cluster: version of the control plane, endpoint, addresses of Services."""

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
"""The minor versions of Kubernetes 1 that the provider supports."""


class ClusterFacts(Struct, frozen=True):
    """Facts about an EKS cluster; an unknown fact is empty."""

    kubernetes: str = ""
    """The version of the control plane, such as `1.34`."""
    cidr: str = ""
    """The range of addresses of Services."""
    endpoint: str = ""
    ca_bundle: str = ""
    arn: str = ""


ServerVersion = Callable[[], Awaitable[str]]
"""Returns the version of the API server, such as `1.34`; empty if it is unknown."""


async def _unknown() -> str:
    return ""


class ClusterWatch:
    """
    Keeps the facts about a cluster up to date; after a failed refresh the last facts remain.

    The version comes from the API server, or from EKS if the API server does not answer.
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
        """Why the last call to EKS failed; None if it succeeded."""

    async def refresh(self) -> None:
        """Read the facts once; raise CloudError if the call to EKS fails."""
        version = await self._server_version()
        if version:
            self._check_version(version)
            self.facts = replace(self.facts, kubernetes=version)
        try:
            answer = await self._calls.describe_cluster(name=self._name)
        except CloudError as error:
            self.trouble = error
            raise
        found, self.trouble = read_facts(answer.get("cluster") or {}), None
        self._check_version(version or found.kubernetes)
        self.facts = replace(found, kubernetes=version or found.kubernetes)

    def _check_version(self, version: str) -> None:
        """Report a version that has changed and that the provider does not support."""
        minor = version.partition(".")[2]
        is_known = minor.isdecimal() and int(minor) in _MINORS
        if version and version != self.facts.kubernetes and not is_known:
            fields = {"version": version, "supported": f"1.{_MINORS[0]} to 1.{_MINORS[-1]}"}
            remark = Remark("kubernetes version is not supported", fields, is_error=True)
            self._on_remark(remark)

    async def refresh_if_possible(self) -> CloudError | None:
        """Read the facts once; return the error of a failed call to EKS."""
        try:
            await self.refresh()
        except CloudError as error:
            return error
        return None


def read_facts(cluster: dict[str, Any]) -> ClusterFacts:
    """Read the answer of DescribeCluster."""
    network = cluster.get("kubernetesNetworkConfig") or {}
    return ClusterFacts(
        kubernetes=cluster.get("version", ""),
        cidr=network.get("serviceIpv4Cidr") or network.get("serviceIpv6Cidr") or "",
        endpoint=cluster.get("endpoint", ""),
        ca_bundle=(cluster.get("certificateAuthority") or {}).get("data", ""),
        arn=cluster.get("arn", ""),
    )
