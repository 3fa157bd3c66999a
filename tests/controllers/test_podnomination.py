"""Pods are told their nodes just before these open, on virtual time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from karpy.codec.fields import JsonObject
from karpy.controllers.podnomination import IDLE_SECONDS, LONGEST_SECONDS, PodNominator
from karpy.core.lifecycle.changes import Remark
from karpy.core.lifecycle.registration import GatePolicy
from karpy.errors import Forbidden
from karpy.model.kinds import POD, Kind
from karpy.model.verdicts import Launch
from karpy.ports.objects import Patch
from karpy.sim.objects import EmbeddedObjects
from karpy.sim.world import World
from tests.builders.pods import pod as waiting
from tests.controllers.test_provisioning import pod
from tests.core.test_podnomination import crowd, decided
from tests.sim.stories import on_virtual_time

MIXED = decided(crowd("large", 60, "3800m", "7500Mi"), crowd("small", 48, "950m", "3900Mi"))
ALIKE = decided(crowd("web", 60, "900m", "1Gi"))
FIRM, FREE = "small-0", "other-0"
"""NodeClaims by the one pod that each is for; pods of the first are told."""


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
    """Nodes that are about to open, each for the pod whose name its claim has."""

    def __init__(self, *claims: str, has_rights: bool = True) -> None:
        self.world = World()
        for name in claims:
            self.world.store.create(POD, pod(name, "1"))
        objects = self.world.objects if has_rights else NoRights(self.world.store)
        self.remarks: list[Remark] = []
        self.called: list[tuple[str, float]] = []
        self.nominator = PodNominator(objects, lambda claim: [waiting(claim)], self.remarks.append)
        self.nominator.listen(self._call)
        self.nominator.hear(*MIXED)
        for claim in claims:
            self.nominator.note(claim, launch(claim))

    def _call(self, claim: str) -> None:
        self.called.append((claim, asyncio.get_running_loop().time()))

    def names(self) -> dict[str, str]:
        """Return the nodes that pods were told, by the names of the pods."""
        pods = self.world.store.list(POD)
        told = {each["metadata"]["name"]: each.get("status") or {} for each in pods}
        return {
            name: status["nominatedNodeName"]
            for name, status in told.items()
            if "nominatedNodeName" in status
        }


def launch(pod_name: str) -> Launch:
    return Launch("new-1", "default", (waiting(pod_name).key,), {}, {}, ())


@asynccontextmanager
async def running(house: House) -> AsyncIterator[None]:
    task = asyncio.create_task(house.nominator.run())
    await asyncio.sleep(0)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@on_virtual_time
async def test_a_pod_knows_its_node_when_that_opens() -> None:
    house = House(FIRM)

    async with running(house):
        before = house.nominator.door(FIRM)
        house.nominator.arrive(FIRM, "node-a")
        await asyncio.sleep(0.1)

    assert house.names() == {FIRM: "node-a"}
    assert house.called == [(FIRM, 0.0)]
    assert (before, house.nominator.door(FIRM)) == (GatePolicy.HELD, GatePolicy.CALLED)


@on_virtual_time
async def test_who_arrives_again_and_again_is_told_once() -> None:
    house = House(FIRM)

    async with running(house):
        house.nominator.arrive(FIRM, "node-a")
        house.nominator.arrive(FIRM, "node-a")
        await asyncio.sleep(0.1)
        house.nominator.arrive(FIRM, "node-a")
        await asyncio.sleep(0.1)

    assert house.called == [(FIRM, 0.0)]


@on_virtual_time
async def test_nodes_with_nobody_to_tell_open_after_the_others() -> None:
    house = House(FIRM, FREE)

    async with running(house):
        house.nominator.arrive(FREE, "node-b")
        await asyncio.sleep(1)
        house.nominator.arrive(FIRM, "node-a")
        await asyncio.sleep(1)
        house.nominator.forget(FIRM)
        await asyncio.sleep(1)

    assert house.called == [(FIRM, 1.0), (FREE, 2.0)]
    assert house.names() == {FIRM: "node-a"}


@on_virtual_time
async def test_who_is_late_is_not_waited_for() -> None:
    house = House(FIRM, FREE)

    async with running(house):
        house.nominator.arrive(FREE, "node-b")
        await asyncio.sleep(60)

    assert house.called == [(FREE, IDLE_SECONDS)]
    assert IDLE_SECONDS < LONGEST_SECONDS


@on_virtual_time
async def test_a_claim_that_goes_is_not_waited_for() -> None:
    house = House(FIRM, FREE)

    async with running(house):
        house.nominator.arrive(FREE, "node-b")
        house.nominator.forget(FIRM)
        await asyncio.sleep(60)

    assert house.called == [(FREE, 0.0)]


@on_virtual_time
async def test_a_claim_that_goes_while_its_pods_are_told_is_not_called_upon() -> None:
    house = House(FIRM)

    async with running(house):
        house.nominator.arrive(FIRM, "node-a")
        house.nominator.forget(FIRM)
        await asyncio.sleep(60)

    assert house.called == []
    assert house.nominator.door(FIRM) is GatePolicy.FREE


def test_where_any_place_will_do_nobody_is_told() -> None:
    house = House(FIRM)
    house.nominator.hear(*ALIKE)
    house.nominator.note("web-0", launch("web-0"))

    assert house.nominator.door("web-0") is GatePolicy.FREE
    assert house.nominator.door(FIRM) is GatePolicy.HELD


def test_claims_that_nobody_decided_on_are_free() -> None:
    assert House().nominator.door("static-1") is GatePolicy.FREE


@on_virtual_time
async def test_without_the_right_nodes_open_all_the_same_and_it_is_said_once() -> None:
    house = House(FIRM, "small-1", FREE, has_rights=False)

    async with running(house):
        house.nominator.arrive(FIRM, "node-a")
        house.nominator.arrive("small-1", "node-b")
        await asyncio.sleep(60)

    assert [claim for claim, _ in house.called] == [FIRM, "small-1"]
    assert [each.fields["hint"] for each in house.remarks] == [
        "apply deploy/rbac.yaml, or start with --nominate-pods Never"
    ]
    assert house.nominator.door(FREE) is GatePolicy.FREE
