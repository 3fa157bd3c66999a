"""A cloud provider with NodeOverlays applied to its catalog."""

from collections.abc import Sequence

from karpy.adapters.mirror.mirror import Mirror
from karpy.model.instances import Catalog
from karpy.model.nodes import RepairPolicy
from karpy.model.records import ClaimRecord
from karpy.ports.cloud import CloudProvider, LaunchSpec, Machine


class OverlaidCloud:
    """
    The port CloudProvider on top of another one.

    A launch must see the prices and resources of the decision: a claim may request resources that
    only a NodeOverlay defines.
    """

    def __init__(self, cloud: CloudProvider, mirror: Mirror) -> None:
        self._cloud = cloud
        self._mirror = mirror

    @property
    def name(self) -> str:
        """The name of the provider in metrics and logs."""
        return self._cloud.name

    def start(self) -> None:
        """Start the background work of the provider."""
        self._cloud.start()

    async def close(self) -> None:
        """End the background work of the provider."""
        await self._cloud.close()

    def catalog(self) -> Catalog:
        """Return all instance types, with NodeOverlays applied."""
        return self._mirror.overlaid_catalog()

    async def launch(self, spec: LaunchSpec) -> Machine:
        """Start one machine."""
        return await self._cloud.launch(spec)

    async def terminate(self, provider_id: str) -> None:
        """Request the termination of a machine."""
        await self._cloud.terminate(provider_id)

    async def machine(self, provider_id: str) -> Machine:
        """Return one machine."""
        return await self._cloud.machine(provider_id)

    async def machines(self) -> Sequence[Machine]:
        """List the machines that carry this cluster's tag."""
        return await self._cloud.machines()

    async def drift(self, claim: ClaimRecord) -> str:
        """Return the reason why a claim's machine differs from its node class; empty if not."""
        return await self._cloud.drift(claim)

    @property
    def repair_policies(self) -> tuple[RepairPolicy, ...]:
        """The conditions that call for repair."""
        return self._cloud.repair_policies

    async def reboot(self, provider_id: str, operation: str) -> None:
        """Reboot a machine."""
        await self._cloud.reboot(provider_id, operation)
