"""Settings of the AWS provider, from flags and environment."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from karpy.model.ec2 import Ec2Settings


class AwsSettings(Struct, frozen=True, kw_only=True):
    """Settings of the provider; names and defaults are Karpenter's."""

    cluster_name: str = ""
    cluster_endpoint: str = ""
    """Empty means the endpoint that EKS returns."""
    ca_bundle: str = ""
    """Base64; empty means the CA of the kubeconfig."""
    isolated_vpc: bool = False
    eks_control_plane: bool = False
    disable_dry_run: bool = False
    enable_zonal_shift: bool = False
    vm_memory_overhead: float = 0.075
    interruption_queue: str = ""
    reserved_enis: int = 0
    image_refresh: timedelta = timedelta(minutes=1)
    subnet_refresh: timedelta = timedelta(minutes=1)
    keeps_min_values: bool = True
    """Whether a launch that cannot satisfy minValues is refused: MIN_VALUES_POLICY."""
    reserves: bool = True
    """The feature gate ReservedCapacity."""
    dns_address: str = ""
    """The cluster IP of the Service kube-dns; empty if it is not known."""

    def filled(self, **found: str) -> "AwsSettings":
        """Return the settings with empty fields replaced by these values."""
        missing = {key: value for key, value in found.items() if not getattr(self, key)}
        return replace(self, **missing)

    def types(self) -> Ec2Settings:
        """Return the settings that change instance types."""
        return Ec2Settings(self.vm_memory_overhead, self.reserved_enis)


def read_settings(
    values: Mapping[str, Any], *, reserves: bool, keeps_min_values: bool = True
) -> AwsSettings:
    """Make settings from the values of the provider's flags."""
    return AwsSettings(**values, reserves=reserves, keeps_min_values=keeps_min_values)
