"""A cloud whose offers are as NodeOverlays have them."""

from collections.abc import Sequence

from karpy.adapters.mirror.mirror import Mirror
from karpy.model.instances import Catalog
from karpy.model.nodes import RepairPolicy
from karpy.model.records import ClaimRecord
from karpy.ports.cloud import CloudProvider, LaunchSpec, Machine


class OverlaidCloud:
    """
    The port CloudProvider on top of another one.

    A launch must see the prices and resources that were decided on: a claim may ask for
    resources of which the cloud knows nothing.
    """

    def __init__(self, cloud: CloudProvider, mirror: Mirror) -> None:
        self._cloud = cloud
        self._mirror = mirror

    @property
    def name(self) -> str:
        """What metrics and logs call the provider."""
        return self._cloud.name

    def start(self) -> None:
        """Begin what the provider does in the background."""
        self._cloud.start()

    async def close(self) -> None:
        """End what `start` began."""
        await self._cloud.close()

    def catalog(self) -> Catalog:
        """Return all instance types, corrected."""
        return self._mirror.overlaid_catalog()

    async def launch(self, spec: LaunchSpec) -> Machine:
        """Start one machine."""
        return await self._cloud.launch(spec)

    async def terminate(self, provider_id: str) -> None:
        """Ask for the end of a machine."""
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
        """Which nodes are called broken."""
        return self._cloud.repair_policies

    async def reboot(self, provider_id: str, operation: str) -> None:
        """Switch a machine off and on again."""
        await self._cloud.reboot(provider_id, operation)
