"""A cloud whose offers are as NodeOverlays have them."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.adapters.mirror.mirror import Mirror
from karpy.codec.memos import Memo
from karpy.core.scheduling.overlays import apply_overlays
from karpy.model.instances import Catalog, InstanceType
from karpy.ports.cloud import CloudProvider, LaunchSpec, Machine

_POOLS_MOST: Final = 256


class _Overlaid(Struct, frozen=True):
    """The types of a pool as overlays have them, and what that was worked out from."""

    types: tuple[InstanceType, ...]
    versions: tuple[int, int]
    made: tuple[InstanceType, ...]


class OverlaidCloud:
    """
    The port CloudProvider on top of another one.

    Whoever launches must see the prices and resources that were decided on: a claim may ask for
    resources of which the cloud knows nothing.
    """

    def __init__(self, cloud: CloudProvider, mirror: Mirror) -> None:
        self._cloud = cloud
        self._mirror = mirror
        self._known: Memo[str, _Overlaid] = Memo(_POOLS_MOST)

    async def catalog(self, pool: str) -> Catalog:
        """List all instance types for a pool, corrected."""
        catalog = await self._cloud.catalog(pool)
        types = self._overlaid(pool, catalog.types_for(pool))
        return replace(catalog, by_pool={**catalog.by_pool, pool: types})

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

    async def drift(self, claim: str) -> str | None:
        """Say how a claim's machine differs from its node class."""
        return await self._cloud.drift(claim)

    def _overlaid(self, pool: str, types: tuple[InstanceType, ...]) -> tuple[InstanceType, ...]:
        mirror = self._mirror
        versions = mirror.pools.version, mirror.overlays.version
        known = self._known.get(pool)
        if known is None or known.types is not types or known.versions != versions:
            # All pools count: an overlay that contradicts another in one of them is in none.
            rest = mirror.catalog()
            whole = replace(rest, by_pool={**rest.by_pool, pool: types})
            pools, overlays = mirror.pools.values.values(), mirror.overlays.values.values()
            made = apply_overlays(whole, tuple(pools), tuple(overlays)).types_for(pool)
            known = self._known.put(pool, _Overlaid(types, versions, made))
        return known.made
