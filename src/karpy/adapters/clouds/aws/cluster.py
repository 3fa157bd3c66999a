"""What EKS says of the cluster: the version of its control plane and the range of its Services."""

from datetime import timedelta
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.adapters.clouds.aws.calls import AwsCalls
from karpy.errors import CloudError

PERIOD: Final = timedelta(minutes=5)


class ClusterFacts(Struct, frozen=True):
    """An EKS cluster; what is not known is empty."""

    kubernetes: str = ""
    """The version of the control plane, such as `1.34`."""
    cidr: str = ""
    """The range of addresses of Services."""
    endpoint: str = ""
    ca_bundle: str = ""
    arn: str = ""


class ClusterWatch:
    """Asks EKS about a cluster now and then; what it said last holds while it cannot be asked."""

    def __init__(self, calls: AwsCalls, name: str) -> None:
        self._calls = calls
        self._name = name
        self.facts = ClusterFacts()

    async def refresh(self) -> None:
        """Ask once; raise CloudError."""
        # Differs: the version of the control plane: Karpenter asks the API server, or EKS where
        # EKS_CONTROL_PLANE is set; Karpy always asks EKS, because it needs the cluster's addresses
        # from there as well.
        answer = await self._calls.describe_cluster(name=self._name)
        self.facts = read_facts(answer.get("cluster") or {})

    async def refresh_if_possible(self) -> CloudError | None:
        """Ask once; return why that was not possible."""
        try:
            await self.refresh()
        except CloudError as error:
            return error
        return None

    def assume(self, **known: str) -> None:
        """Fill in what others know where EKS did not say."""
        missing = {key: value for key, value in known.items() if not getattr(self.facts, key)}
        self.facts = replace(self.facts, **missing)


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
