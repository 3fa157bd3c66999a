from collections.abc import Awaitable, Callable

import pytest

from karpy.adapters.telemetry.measuredcloud import MeasuredCloud, Meter
from karpy.errors import (
    CloudError,
    CloudUnavailable,
    MachineNotFound,
    NoCapacity,
    NodeClassNotReady,
)
from karpy.model.instances import Catalog
from karpy.model.nodes import RepairPolicy
from karpy.model.records import ClaimRecord
from karpy.ports.cloud import CloudProvider, LaunchSpec, Machine
from tests.adapters.telemetry.books import Book
from tests.builders import NOON
from tests.core.lifecycle.scenes import PROVIDER_ID, claim

SPEC = LaunchSpec("web-1", "uid", "web", "default", ())
MACHINE = Machine(PROVIDER_ID, "web-1", "small", "zone-a", "spot", NOON)


class SmallCloud:
    """Does what it is asked, or fails in one way."""

    def __init__(self, error: CloudError | None = None) -> None:
        self._error = error
        self.has_started = False

    def _answer(self) -> None:
        if self._error is not None:
            raise self._error

    name = "kwok"
    repair_policies: tuple[RepairPolicy, ...] = ()

    def start(self) -> None:
        self.has_started = True

    async def close(self) -> None:
        self.has_started = False

    def catalog(self) -> Catalog:
        return Catalog()

    async def launch(self, spec: LaunchSpec) -> Machine:
        del spec
        self._answer()
        return MACHINE

    async def terminate(self, provider_id: str) -> None:
        del provider_id
        self._answer()

    async def machine(self, provider_id: str) -> Machine:
        del provider_id
        self._answer()
        return MACHINE

    async def machines(self) -> tuple[Machine, ...]:
        self._answer()
        return (MACHINE,)

    async def drift(self, claim: ClaimRecord) -> str:
        self._answer()
        return f"{claim.name} drifted"

    async def reboot(self, provider_id: str, operation: str) -> None:
        del provider_id, operation
        self._answer()


def cloud_of(book: Book, cloud: CloudProvider) -> MeasuredCloud:
    book.put_claim(claim())
    ticks = iter(range(100))
    meter = Meter(book.metrics, book.records, lambda: float(next(ticks)))
    return MeasuredCloud(cloud, meter, "nodeclaim.lifecycle")


CALLS: dict[str, tuple[Callable[[MeasuredCloud], Awaitable[object]], object, str]] = {
    "Create": (lambda cloud: cloud.launch(SPEC), MACHINE, "web"),
    "Delete": (lambda cloud: cloud.terminate(PROVIDER_ID), None, "web"),
    "Get": (lambda cloud: cloud.machine(PROVIDER_ID), MACHINE, ""),
    "List": (lambda cloud: cloud.machines(), (MACHINE,), ""),
    "IsDrifted": (lambda cloud: cloud.drift(claim()), "web-1 drifted", "web"),
    "Reboot": (lambda cloud: cloud.reboot(PROVIDER_ID, "op-1"), None, "web"),
}


@pytest.mark.parametrize("method", CALLS)
async def test_a_call_is_passed_on_and_measured(method: str) -> None:
    book = Book()
    call, expected, _ = CALLS[method]

    answer = await call(cloud_of(book, SmallCloud()))

    assert answer == expected
    assert book.told("cloudprovider_duration_seconds_sum", "controller", "method", "provider") == {
        f"nodeclaim.lifecycle {method} kwok": 1.0
    }
    assert book.told("cloudprovider_errors_total", "method") == {}


@pytest.mark.parametrize("method", CALLS)
async def test_a_call_that_fails_is_counted_and_fails(method: str) -> None:
    book = Book()
    call, _, pool = CALLS[method]

    with pytest.raises(MachineNotFound):
        await call(cloud_of(book, SmallCloud(MachineNotFound(provider_id=PROVIDER_ID))))

    errors = book.told("cloudprovider_errors_total", "method", "error", "nodepool")
    assert errors == {f"{method} NodeClaimNotFoundError {pool}": 1.0}
    assert book.told("cloudprovider_duration_seconds_count", "method") == {method: 1.0}


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (NoCapacity(claim="web-1", options=3), "InsufficientCapacityError"),
        (NodeClassNotReady(name="default", problem="gone"), "NodeClassNotReadyError"),
        (CloudUnavailable(call="launch", problem="busy"), "unknown"),
    ],
)
async def test_errors_have_karpenters_names(error: CloudError, expected: str) -> None:
    book = Book()

    with pytest.raises(CloudError):
        await cloud_of(book, SmallCloud(error)).launch(SPEC)

    assert book.told("cloudprovider_errors_total", "error") == {expected: 1.0}


def test_what_is_on_sale_is_measured_and_passed_on() -> None:
    book = Book()
    cloud = cloud_of(book, SmallCloud())

    assert cloud.catalog() == Catalog()
    assert (cloud.name, cloud.repair_policies) == ("kwok", ())
    assert book.told("cloudprovider_duration_seconds_count", "method") == {"GetInstanceTypes": 1.0}


async def test_start_and_close_are_passed_on() -> None:
    small = SmallCloud()
    cloud = cloud_of(Book(), small)

    cloud.start()
    assert small.has_started
    await cloud.close()
    assert not small.has_started
