"""A cloud provider that passes calls on to another one, and measures them."""

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from msgspec import Struct

from karpy.adapters.telemetry.metrics import Metrics
from karpy.core.lifecycle.changes import Count
from karpy.errors import CloudError, MachineNotFound, NoCapacity, NodeClassNotReady
from karpy.model.instances import Catalog
from karpy.model.nodes import RepairPolicy
from karpy.model.records import ClaimRecord
from karpy.ports.cloud import CloudProvider, LaunchSpec, Machine
from karpy.ports.records import Records

T = TypeVar("T")

_DURATION: Final = "cloudprovider_duration_seconds"
_ERRORS: Final = "cloudprovider_errors_total"
_NAMES: Final = {
    NoCapacity: "InsufficientCapacityError",
    MachineNotFound: "NodeClaimNotFoundError",
    NodeClassNotReady: "NodeClassNotReadyError",
}
_OTHER: Final = "unknown"
_ALL_POOLS: Final = ""


class Meter(Struct, frozen=True):
    """The instruments that measure the calls to a cloud."""

    metrics: Metrics
    records: Records
    """The NodeClaims by which the NodePool of a machine is found."""
    now: Callable[[], float] = time.perf_counter


class MeasuredCloud:
    """The port CloudProvider on top of another one; counts durations and errors."""

    def __init__(self, cloud: CloudProvider, meter: Meter, controller: str) -> None:
        self._cloud = cloud
        self._meter = meter
        self._labels = {"controller": controller, "provider": cloud.name}

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
        """Return all instance types."""
        meter, began = self._meter, self._meter.now()
        catalog = self._cloud.catalog()
        labels = {**self._labels, "method": "GetInstanceTypes"}
        meter.metrics.count(Count(_DURATION, labels, meter.now() - began))
        return catalog

    async def launch(self, spec: LaunchSpec) -> Machine:
        """Start one machine."""
        return await self._measure("Create", self._cloud.launch(spec), lambda: spec.pool)

    async def terminate(self, provider_id: str) -> None:
        """Request the termination of a machine."""
        call = self._cloud.terminate(provider_id)
        await self._measure("Delete", call, lambda: self._pool_of(provider_id))

    async def machine(self, provider_id: str) -> Machine:
        """Return one machine."""
        # Parity: the metric of a cloud call that gets one machine: as in Karpenter, the label for
        # the NodePool is empty, because the NodePool is known only from the answer.
        return await self._measure("Get", self._cloud.machine(provider_id), lambda: _ALL_POOLS)

    async def machines(self) -> Sequence[Machine]:
        """List the machines that carry this cluster's tag."""
        return await self._measure("List", self._cloud.machines(), lambda: _ALL_POOLS)

    async def drift(self, claim: ClaimRecord) -> str:
        """Return the reason why a claim's machine differs from its node class; empty if not."""
        return await self._measure("IsDrifted", self._cloud.drift(claim), lambda: claim.pool)

    @property
    def repair_policies(self) -> tuple[RepairPolicy, ...]:
        """The conditions that call for repair."""
        return self._cloud.repair_policies

    async def reboot(self, provider_id: str, operation: str) -> None:
        """Reboot a machine."""
        call = self._cloud.reboot(provider_id, operation)
        await self._measure("Reboot", call, lambda: self._pool_of(provider_id))

    async def _measure(self, method: str, call: Awaitable[T], pool: Callable[[], str]) -> T:
        meter, labels = self._meter, {**self._labels, "method": method}
        began = meter.now()
        try:
            return await call
        except CloudError as error:
            with_error = {**labels, "error": _name(error), "nodepool": pool()}
            meter.metrics.count(Count(_ERRORS, with_error))
            raise
        finally:
            meter.metrics.count(Count(_DURATION, labels, meter.now() - began))

    def _pool_of(self, provider_id: str) -> str:
        claims = self._meter.records.claims.by_index(provider_id)
        return next((kept.record.pool for kept in claims), "")


def _name(error: CloudError) -> str:
    return next((name for kind, name in _NAMES.items() if isinstance(error, kind)), _OTHER)
