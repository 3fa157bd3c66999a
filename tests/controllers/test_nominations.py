"""Nominations of pods to NodeClaims and nodes, on virtual time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

import pytest

from karpy.codec.fields import JsonObject
from karpy.controllers.nominations import (
    IDLE_SECONDS,
    LONGEST_SECONDS,
    ClaimNominations,
    NodeNominations,
    NominationWithdrawal,
    PodNominator,
)
from karpy.core.lifecycle.changes import Remark
from karpy.core.lifecycle.registration import GatePolicy
from karpy.errors import Forbidden
from karpy.model.kinds import NODE, NODE_CLAIM, POD, Kind
from karpy.model.verdicts import Launch
from karpy.ports.objects import Patch, PatchType
from karpy.sim.loop import run
from karpy.sim.objects import EmbeddedObjects
from karpy.sim.world import World
from tests.builders.pods import NOON
from tests.builders.pods import pod as waiting
from tests.controllers.operators import Heard, claim, is_ready, node_of, operator, until
from tests.controllers.test_provisioning import pod
from tests.core.test_podnomination import crowd, decided
from tests.sim.stories import on_virtual_time

LAUNCH = Launch("1", "web", ("default/a",), {}, {}, ())
SECOND = timedelta(seconds=1)
MIXED = decided(crowd("large", 60, "3800m", "7500Mi"), crowd("small", 48, "950m", "3900Mi"))
ALIKE = decided(crowd("web", 60, "900m", "1Gi"))
FIRM, FREE = "small-0", "other-0"
"""NodeClaims named after the one pod of each; the pod of the first is nominated."""
FOREIGN = "on-premises-1"


@asynccontextmanager
async def expecting(world: World, lost: list[str]) -> AsyncIterator[ClaimNominations]:
    """Run an operator that has just created a claim for a pod."""
    world.start()
    async with operator(world, Heard()) as context:
        claim_nominations = ClaimNominations(context.records, world.clock, lost.append)
        claim_nominations.note("web-1", LAUNCH)
        yield claim_nominations
    world.stop()


def test_pods_are_on_their_way_until_their_node_was_ready_for_a_while() -> None:
    async def story() -> list[dict[str, str]]:
        world = World()
        world.store.create(POD, pod("a", "300"))
        async with expecting(world, []) as claim_nominations:
            seen = [dict(claim_nominations.places())]
            world.store.create(NODE_CLAIM, claim())
            await asyncio.sleep(1)
            seen.append(dict(claim_nominations.places()))
            await until(lambda: is_ready(world))
            seen.append(dict(claim_nominations.places()))
            await asyncio.sleep(11)
            return [*seen, dict(claim_nominations.places())]

    there = {"default/a": "web-1"}
    assert run(story()) == [there, there, there, {}]


def test_when_a_claim_goes_its_pods_need_another_one() -> None:
    async def story() -> tuple[list[str], dict[str, str], str]:
        world, lost = World(), list[str]()
        world.store.create(POD, pod("a", "300"))
        async with expecting(world, lost) as claim_nominations:
            world.store.create(NODE_CLAIM, claim())
            await until(lambda: is_ready(world))
            world.store.delete(NODE_CLAIM, "web-1")
            await until(lambda: not world.store.list(NODE_CLAIM))
            await asyncio.sleep(1)
            uid = world.store.get(POD, "a", "default")["metadata"]["uid"]
            return lost, dict(claim_nominations.places()), uid

    lost, places, uid = run(story())

    assert lost == [uid]
    assert places == {}


def test_who_finds_room_beside_others_is_expected_as_well() -> None:
    async def story() -> dict[str, str]:
        world = World()
        for name in "abc":
            world.store.create(POD, pod(name, "300"))
        async with expecting(world, []) as claim_nominations:
            await asyncio.sleep(1)
            claim_nominations.add("web-1", ("default/b",))
            claim_nominations.add("web-2", ("default/c",))
            return dict(claim_nominations.places())

    assert run(story()) == {"default/a": "web-1", "default/b": "web-1"}


def test_a_node_is_awaited_until_its_pods_are_there() -> None:
    async def story() -> list[bool]:
        world = World()
        world.store.create(POD, pod("a", "300"))
        async with expecting(world, []) as claim_nominations:
            seen = [
                claim_nominations.has_unbound_pods("web-1"),
                claim_nominations.has_unbound_pods("web-2"),
            ]
            world.store.create(NODE_CLAIM, claim())
            await until(lambda: is_ready(world))
            seen.append(claim_nominations.has_unbound_pods("web-1"))
            await asyncio.sleep(11)
            return [*seen, claim_nominations.has_unbound_pods("web-1")]

    assert run(story()) == [True, False, True, False]


def test_there_is_much_to_do_while_pods_are_on_their_way() -> None:
    async def story() -> list[bool]:
        world = World()
        world.store.create(POD, pod("a", "300"))
        async with expecting(world, []) as claim_nominations:
            seen = [claim_nominations.is_busy()]
            world.store.create(NODE_CLAIM, claim())
            await until(lambda: is_ready(world))
            await asyncio.sleep(21)
            return [*seen, claim_nominations.is_busy()]

    assert run(story()) == [True, False]


def test_claims_of_one_decision_settle_together() -> None:
    """The wait for nodes that open late has an end."""

    async def story() -> list[frozenset[str]]:
        world = World()
        async with expecting(world, []) as claim_nominations:
            claim_nominations.note("web-2", LAUNCH)
            seen = [claim_nominations.settling()]
            world.store.create(NODE_CLAIM, claim())
            world.store.create(NODE_CLAIM, claim("web-2"))
            await asyncio.sleep(1)
            seen.append(claim_nominations.settling())
            await asyncio.sleep(10)
            return [*seen, claim_nominations.settling()]

    assert run(story()) == [frozenset(), frozenset({"web-1", "web-2"}), frozenset()]


class Watch:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.time = NOON

    def now(self) -> datetime:
        return self.time


@pytest.mark.parametrize(("batch", "window"), [(10, 20), (2, 10), (60, 120)])
def test_pods_are_expected_for_two_batches_or_ten_seconds(batch: int, window: int) -> None:
    nominations = NodeNominations(Watch(), batch * SECOND)

    nominations.note("node-1")

    assert nominations.until("node-1") == NOON + window * SECOND


def test_every_nomination_begins_anew() -> None:
    watch = Watch()
    nominations = NodeNominations(watch)

    nominations.note("node-1")
    watch.time += 15 * SECOND
    nominations.note("node-1")

    assert nominations.until("node-1") == NOON + 35 * SECOND


def test_a_node_is_known_by_its_own_name_and_by_that_of_its_claim() -> None:
    watch = Watch()
    nominations = NodeNominations(watch)

    nominations.note("claim-1")
    watch.time += SECOND
    nominations.note("node-1")

    assert nominations.until("claim-1") == NOON + 20 * SECOND
    assert nominations.until("claim-1", "node-1") == NOON + 21 * SECOND
    assert nominations.until("claim-2", "node-2") is None


def test_what_is_over_is_forgotten() -> None:
    watch = Watch()
    nominations = NodeNominations(watch)

    nominations.note("node-1")
    watch.time += 20 * SECOND
    nominations.note("node-2")

    assert nominations.until("node-1") is None


class NoRights(EmbeddedObjects):
    """An API server that refuses all writes."""

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
    """Nodes that are about to open, each for the pod that its claim is named after."""

    def __init__(self, *claims: str, has_rights: bool = True) -> None:
        self.world = World()
        for name in claims:
            self.world.store.create(POD, pod(name, "1"))
        objects = self.world.objects if has_rights else NoRights(self.world.store)
        self.remarks: list[Remark] = []
        self.opened: list[tuple[str, float]] = []
        self.nominator = PodNominator(objects, lambda claim: [waiting(claim)], self.remarks.append)
        self.nominator.listen(self._open)
        self.nominator.on_decision(*MIXED)
        for name in claims:
            self.nominator.note(name, launch(name))

    def _open(self, claim: str) -> None:
        self.opened.append((claim, asyncio.get_running_loop().time()))

    def names(self) -> dict[str, str]:
        """Return the nominated nodes, by the names of the pods."""
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
        before = house.nominator.gate_policy(FIRM)
        house.nominator.note_ready(FIRM, "node-a")
        await asyncio.sleep(0.1)

    assert house.names() == {FIRM: "node-a"}
    assert house.opened == [(FIRM, 0.0)]
    assert (before, house.nominator.gate_policy(FIRM)) == (GatePolicy.HELD, GatePolicy.NOMINATED)


@on_virtual_time
async def test_a_node_that_is_reported_ready_repeatedly_is_opened_once() -> None:
    house = House(FIRM)

    async with running(house):
        house.nominator.note_ready(FIRM, "node-a")
        house.nominator.note_ready(FIRM, "node-a")
        await asyncio.sleep(0.1)
        house.nominator.note_ready(FIRM, "node-a")
        await asyncio.sleep(0.1)

    assert house.opened == [(FIRM, 0.0)]


@on_virtual_time
async def test_nodes_without_nominated_pods_open_last() -> None:
    house = House(FIRM, FREE)

    async with running(house):
        house.nominator.note_ready(FREE, "node-b")
        await asyncio.sleep(1)
        house.nominator.note_ready(FIRM, "node-a")
        await asyncio.sleep(1)
        house.nominator.forget(FIRM)
        await asyncio.sleep(1)

    assert house.opened == [(FIRM, 1.0), (FREE, 2.0)]
    assert house.names() == {FIRM: "node-a"}


@on_virtual_time
async def test_who_is_late_is_not_waited_for() -> None:
    house = House(FIRM, FREE)

    async with running(house):
        house.nominator.note_ready(FREE, "node-b")
        await asyncio.sleep(60)

    assert house.opened == [(FREE, IDLE_SECONDS)]
    assert IDLE_SECONDS < LONGEST_SECONDS


@on_virtual_time
async def test_a_claim_that_goes_is_not_waited_for() -> None:
    house = House(FIRM, FREE)

    async with running(house):
        house.nominator.note_ready(FREE, "node-b")
        house.nominator.forget(FIRM)
        await asyncio.sleep(60)

    assert house.opened == [(FREE, 0.0)]


@on_virtual_time
async def test_a_claim_that_is_dropped_during_nomination_is_not_opened() -> None:
    house = House(FIRM)

    async with running(house):
        house.nominator.note_ready(FIRM, "node-a")
        house.nominator.forget(FIRM)
        await asyncio.sleep(60)

    assert house.opened == []
    assert house.nominator.gate_policy(FIRM) is GatePolicy.FREE


def test_equal_pods_are_not_nominated() -> None:
    house = House(FIRM)
    house.nominator.on_decision(*ALIKE)
    house.nominator.note("web-0", launch("web-0"))

    assert house.nominator.gate_policy("web-0") is GatePolicy.FREE
    assert house.nominator.gate_policy(FIRM) is GatePolicy.HELD


def test_claims_of_no_decision_are_free() -> None:
    assert House().nominator.gate_policy("static-1") is GatePolicy.FREE


@on_virtual_time
async def test_without_the_right_nodes_open_all_the_same_and_it_is_said_once() -> None:
    house = House(FIRM, "small-1", FREE, has_rights=False)

    async with running(house):
        house.nominator.note_ready(FIRM, "node-a")
        house.nominator.note_ready("small-1", "node-b")
        await asyncio.sleep(60)

    assert [claim for claim, _ in house.opened] == [FIRM, "small-1"]
    assert [each.fields["hint"] for each in house.remarks] == [
        "apply deploy/rbac.yaml, or start with --nominate-pods Never"
    ]
    assert house.nominator.gate_policy(FREE) is GatePolicy.FREE


def name_node(world: World, node: str) -> None:
    patch = Patch(PatchType.MERGE, {"status": {"nominatedNodeName": node}})
    world.store.patch(POD, "a", patch, namespace="default", subresource="status")


def named(world: World) -> str:
    status: JsonObject = world.store.get(POD, "a", "default").get("status") or {}
    name: str = status.get("nominatedNodeName", "")
    return name


async def watched(world: World, name: str = "") -> list[str]:
    """Nominate an unbound pod; return its nomination after 15, 35 and 105 seconds."""
    async with operator(world, Heard()) as context:
        if not world.store.list(NODE_CLAIM):
            world.store.create(NODE_CLAIM, claim())
        await until(lambda: is_ready(world))
        spec = {**pod("a", "1")["spec"], "schedulerName": "nobody"}
        world.store.create(POD, {**pod("a", "1"), "spec": spec})
        name_node(world, name or node_of(world))
        task = asyncio.create_task(NominationWithdrawal(context).run())
        seen = []
        for pause in (15, 20, 70):
            await asyncio.sleep(pause)
            seen.append(named(world))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return seen


def test_a_pod_that_waits_in_vain_may_go_elsewhere() -> None:
    async def story() -> tuple[list[str], str]:
        world = World()
        world.start()
        seen = await watched(world)
        world.stop()
        return seen, node_of(world)

    seen, node = run(story())

    assert seen[0] == node
    assert seen[-1] == ""


def test_a_nomination_to_a_deleted_node_is_cleared() -> None:
    async def story() -> list[str]:
        world = World()
        world.start()
        seen = await watched(world, "gone-1")
        world.stop()
        return seen

    assert run(story()) == ["gone-1", "", ""]


def test_what_others_promise_on_their_nodes_is_theirs() -> None:
    async def story() -> list[str]:
        world = World()
        world.start()
        world.store.create(NODE, {"metadata": {"name": FOREIGN}})
        seen = await watched(world, FOREIGN)
        world.stop()
        return seen

    assert run(story()) == [FOREIGN] * 3


def test_a_pod_for_which_another_one_ends_keeps_waiting() -> None:
    async def story() -> tuple[list[str], str]:
        world = World()
        world.start()
        async with operator(world, Heard()):
            world.store.create(NODE_CLAIM, claim())
            await until(lambda: is_ready(world))
        victim = pod("victim", "1")
        meta = {**victim["metadata"], "finalizers": ["example.com/hold"]}
        spec = {**victim["spec"], "nodeName": node_of(world)}
        world.store.create(POD, {"metadata": meta, "spec": spec})
        world.store.delete(POD, "victim", namespace="default")
        seen = await watched(world)
        world.stop()
        return seen, node_of(world)

    seen, node = run(story())

    assert seen == [node] * 3
