"""Pods are told their nodes just before these open, on virtual time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from karpy.codec.fields import JsonObject
from karpy.controllers.seating import IDLE_SECONDS, LONGEST_SECONDS, Seating
from karpy.core.lifecycle.outcomes import Remark
from karpy.errors import Forbidden
from karpy.model.kinds import POD, Kind
from karpy.ports.objects import Patch
from karpy.sim.objects import EmbeddedObjects
from karpy.sim.world import World
from tests.builders.pods import pod as waiting
from tests.controllers.test_provisioning import pod
from tests.core.test_seating import crowd, decided
from tests.sim.stories import on_virtual_time

MIXED = decided(crowd("large", 40, "3800m", "7500Mi"), crowd("small", 48, "950m", "3900Mi"))
ALIKE = decided(crowd("web", 60, "900m", "1Gi"))
CLAIMS = ("a", "b", "c")


class NoRights(EmbeddedObjects):
    """An API server that lets nobody write."""

    async def patch(
        self,
        kind: Kind,
        name: str,
        patch: Patch,
        *,
        namespace: str = "",
        subresource: str = "",
        dry_run: bool = False,
    ) -> JsonObject:
        del kind, patch, namespace, subresource, dry_run
        raise Forbidden(f"you may not write `{name}`")


class House:
    """Nodes that are about to open, each for one pod of the same name."""

    def __init__(self, *, has_rights: bool = True) -> None:
        self.world = World()
        for name in CLAIMS:
            self.world.store.create(POD, pod(name, "1"))
        objects = self.world.objects if has_rights else NoRights(self.world.store)
        self.remarks: list[Remark] = []
        self.opened: list[tuple[str, float]] = []
        self.seating = Seating(objects, lambda claim: [waiting(claim)], self.remarks.append)
        self.seating.listen(self._open)
        self.seating.hear(*MIXED)
        for claim in CLAIMS:
            self.seating.note(claim)

    def _open(self, claim: str) -> None:
        self.opened.append((claim, asyncio.get_running_loop().time()))

    def names(self) -> dict[str, str]:
        """Return the nodes that pods were told, by the names of the pods."""
        pods = self.world.store.list(POD)
        told = {each["metadata"]["name"]: each.get("status") or {} for each in pods}
        return {
            name: status["nominatedNodeName"]
            for name, status in told.items()
            if "nominatedNodeName" in status
        }


@asynccontextmanager
async def running(house: House) -> AsyncIterator[None]:
    task = asyncio.create_task(house.seating.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@on_virtual_time
async def test_a_pod_knows_its_node_when_that_opens() -> None:
    house = House()

    async with running(house):
        was_open = house.seating.is_open("a")
        house.seating.seat("a", "node-a")
        await asyncio.sleep(0.1)

    assert house.names() == {"a": "node-a"}
    assert house.opened == [("a", 0.0)]
    assert (was_open, house.seating.is_open("a")) == (False, True)


@on_virtual_time
async def test_nodes_that_come_together_open_together() -> None:
    house = House()

    async with running(house):
        house.seating.expect("b")
        house.seating.seat("a", "node-a")
        await asyncio.sleep(1)
        house.seating.seat("b", "node-b")
        await asyncio.sleep(1)

    assert house.opened == [("a", 1.0), ("b", 1.0)]


@on_virtual_time
async def test_who_is_late_is_not_waited_for() -> None:
    house = House()

    async with running(house):
        house.seating.expect("b")
        house.seating.seat("a", "node-a")
        await asyncio.sleep(60)

    assert house.opened == [("a", IDLE_SECONDS)]
    assert IDLE_SECONDS < LONGEST_SECONDS


@on_virtual_time
async def test_a_claim_that_goes_is_not_waited_for() -> None:
    house = House()

    async with running(house):
        house.seating.expect("b")
        house.seating.forget("b")
        house.seating.seat("a", "node-a")
        await asyncio.sleep(60)

    assert house.opened == [("a", 0.0)]


def test_where_any_place_will_do_nobody_is_told() -> None:
    house = House()
    house.seating.hear(*ALIKE)
    house.seating.note("d")

    assert house.seating.is_open("d")
    assert not house.seating.is_open("a")


def test_claims_that_nobody_decided_on_are_open() -> None:
    assert House().seating.is_open("static-1")


@on_virtual_time
async def test_without_the_right_nodes_open_all_the_same_and_it_is_said_once() -> None:
    house = House(has_rights=False)

    async with running(house):
        for claim in CLAIMS:
            house.seating.seat(claim, f"node-{claim}")
        await asyncio.sleep(60)

    assert [claim for claim, _ in house.opened] == list(CLAIMS)
    assert [each.fields["hint"] for each in house.remarks] == [
        "apply deploy/rbac.yaml, or start with --disable-seating"
    ]
    assert house.seating.is_open("never seen")


@on_virtual_time
async def test_who_is_open_waits_for_those_that_came_with_it() -> None:
    house, loop = House(), asyncio.get_running_loop()

    async with running(house):
        for claim in CLAIMS:
            house.seating.seat(claim, f"node-{claim}")
        await asyncio.sleep(1)
        first = asyncio.create_task(house.seating.wait_for_others("a"))
        house.seating.forget("b")
        await asyncio.sleep(0.5)
        was_done = first.done()
        await house.seating.wait_for_others("c")
        await first

    assert (was_done, loop.time()) == (False, 1.5)
