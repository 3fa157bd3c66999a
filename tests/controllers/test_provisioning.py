"""Pending pods on the embedded cluster become NodeClaims, on virtual time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from karpy.adapters.mirror.cluster import MirroredCluster
from karpy.adapters.mirror.mirror import Mirror
from karpy.codec.catalogs import kwok_catalog
from karpy.codec.fields import JsonObject
from karpy.controllers.provisioning import Batcher, ProvisioningController
from karpy.errors import KarpyError
from karpy.model.kinds import NODE_CLAIM, NODE_POOL, POD
from karpy.model.notices import Notice
from karpy.model.settings import Settings
from karpy.model.snapshot import Snapshot, VainLaunches
from karpy.model.verdicts import Launch, Nomination, Verdict
from karpy.sim.loop import run
from karpy.sim.world import World

NODE_CLASS = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}


class Heard:
    """Records all events, counts, remarks and verdicts."""

    def __init__(self) -> None:
        self.notices: list[Notice] = []
        self.verdicts: list[Verdict] = []
        self.expecting: list[str] = []
        self.failures: list[str] = []

    def emit(self, notice: Notice) -> None:
        self.notices.append(notice)

    def deciding(self, snapshot: Snapshot) -> None:
        del snapshot

    def decided(self, snapshot: Snapshot, verdict: Verdict, duration: timedelta) -> None:
        del snapshot, duration
        self.verdicts.append(verdict)

    def vain_launches(self, snapshot: Snapshot) -> tuple[VainLaunches, ...]:
        del snapshot
        return ()

    def nominated(self, nomination: Nomination, claim: str) -> None:
        del claim
        self.expecting.append(nomination.node)

    def launched(self, claim: str, launch: Launch) -> None:
        del launch
        self.expecting.append(claim)

    def failed(self, launch: Launch, error: KarpyError) -> None:
        del error
        self.failures.append(launch.name)

    @property
    def told(self) -> list[tuple[str, str, str]]:
        return [(each.subject.name, each.reason, each.note) for each in self.notices]


@asynccontextmanager
async def provisioning(world: World, heard: Heard) -> AsyncIterator[ProvisioningController]:
    """Return a world and a controller with a synced mirror."""
    mirror = Mirror(world.objects, world.clock, kwok_catalog, Settings())
    world.start()
    task = asyncio.create_task(mirror.run())
    await mirror.wait_until_listed()
    try:
        yield ProvisioningController(
            MirroredCluster(mirror, world.objects),
            Batcher(),
            heard,
            world.clock,
            heard,
        )
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        world.stop()


def pool(name: str = "default", **spec: object) -> JsonObject:
    template = {"spec": {"requirements": [], "nodeClassRef": NODE_CLASS}}
    return {"metadata": {"name": name}, "spec": {"template": template, **spec}}


def pod(name: str, cpu: str) -> JsonObject:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container]},
    }


def test_a_pending_pod_gets_a_claim_and_hears_of_it() -> None:
    heard = Heard()

    async def story() -> list[JsonObject]:
        world = World()
        world.store.create(NODE_POOL, pool())
        async with provisioning(world, heard) as controller:
            world.store.create(POD, pod("web", "3"))
            await asyncio.sleep(5)
            await controller.reconcile()
            return world.store.list(NODE_CLAIM)

    (claim,) = run(story())

    name = claim["metadata"]["name"]
    assert name.startswith("default-")
    assert heard.told == [("web", "Nominated", f"Pod should schedule on: nodeclaim/{name}")]
    assert heard.expecting == [name]
    assert len(heard.verdicts) == 1


def test_while_a_claim_has_no_machine_nothing_is_decided() -> None:
    """Another decision might launch the same a second time."""
    heard = Heard()

    async def story() -> tuple[Verdict | None, int]:
        world = World()
        world.store.create(NODE_POOL, pool())
        async with provisioning(world, heard) as controller:
            world.store.create(POD, pod("web", "3"))
            await asyncio.sleep(5)
            await controller.reconcile()
            again = await controller.reconcile()
            return again, len(world.store.list(NODE_CLAIM))

    assert run(story()) == (None, 1)


def test_a_pod_that_fits_nowhere_hears_which_constraint_decided() -> None:
    heard = Heard()

    async def story() -> None:
        world = World()
        world.store.create(NODE_POOL, pool())
        async with provisioning(world, heard) as controller:
            world.store.create(POD, pod("huge", "4000"))
            await asyncio.sleep(5)
            await controller.reconcile()

    run(story())

    ((name, reason, note),) = heard.told
    assert (name, reason) == ("huge", "FailedScheduling")
    assert note.startswith("Failed to schedule pod, no node has room and no NodePool can make one")
    assert "NodePool default: a resource does not suffice (cpu: 4000 asked" in note


def test_a_launch_that_fails_does_not_stop_the_others() -> None:
    heard = Heard()

    async def story() -> int:
        world = World()
        world.store.create(NODE_POOL, pool("a", weight=10, limits={"cpu": "4"}))
        world.store.create(NODE_POOL, pool("b"))
        async with provisioning(world, heard) as controller:
            world.store.create(POD, pod("web-1", "3"))
            world.store.create(POD, pod("web-2", "3"))
            await asyncio.sleep(5)
            world.store.delete(NODE_POOL, "a")
            # The watch has not delivered the claim to the mirror yet.
            await controller.reconcile()
            return len(world.store.list(NODE_CLAIM))

    made = run(story())

    assert made == 1
    assert len(heard.failures) == 1


async def waited(batcher: Batcher) -> tuple[frozenset[str], float]:
    loop = asyncio.get_running_loop()
    began = loop.time()
    return await batcher.wait(), loop.time() - began


def test_one_trigger_waits_for_company() -> None:
    async def story() -> tuple[frozenset[str], float]:
        batcher = Batcher()
        batcher.trigger("a")
        return await waited(batcher)

    assert run(story()) == (frozenset({"a"}), 1.0)


def test_each_newcomer_prolongs_the_wait_up_to_an_end() -> None:
    async def story() -> tuple[frozenset[str], float]:
        batcher, loop = Batcher(), asyncio.get_running_loop()
        for number in range(20):
            loop.call_later(number * 0.9, batcher.trigger, f"pod-{number}")
        await asyncio.sleep(0)
        return await waited(batcher)

    batch, seconds = run(story())

    assert seconds == 10.0
    assert len(batch) == 12


def test_a_trigger_that_comes_twice_prolongs_nothing() -> None:
    async def story() -> tuple[frozenset[str], float]:
        batcher, loop = Batcher(), asyncio.get_running_loop()
        batcher.trigger("a")
        loop.call_later(0.5, batcher.trigger, "a")
        return await waited(batcher)

    assert run(story()) == (frozenset({"a"}), 1.0)


def test_a_window_forgets_who_triggered_it() -> None:
    async def story() -> list[frozenset[str]]:
        batcher = Batcher()
        batcher.trigger("a")
        first = await batcher.wait()
        batcher.trigger("a")
        return [first, await batcher.wait()]

    assert run(story()) == [frozenset({"a"}), frozenset({"a"})]


def test_without_a_trigger_nothing_happens() -> None:
    async def story() -> tuple[frozenset[str], float]:
        batcher, loop = Batcher(), asyncio.get_running_loop()
        loop.call_later(100.0, batcher.trigger, "late")
        return await waited(batcher)

    assert run(story()) == (frozenset({"late"}), 101.0)


def test_who_rides_along_prolongs_a_window_and_opens_none() -> None:
    async def story() -> tuple[frozenset[str], float]:
        batcher, loop = Batcher(), asyncio.get_running_loop()
        batcher.prolong("early")
        loop.call_later(1.0, batcher.trigger, "a")
        loop.call_later(1.8, batcher.prolong, "rides")
        return await waited(batcher)

    batch, seconds = run(story())

    assert batch == frozenset({"a", "rides"})
    assert round(seconds, 6) == 2.8
