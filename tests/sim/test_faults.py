import asyncio
from collections.abc import Callable

import pytest

from karpy.codec.fields import JsonObject
from karpy.errors import (
    CloudUnavailable,
    Conflict,
    Expired,
    KarpyError,
    NoCapacity,
    NotFound,
    ServerFault,
    Throttled,
    Unreachable,
)
from karpy.model.kinds import CONFIG_MAP, NODE, POD
from karpy.model.records import ClaimRecord, Identity
from karpy.ports.cloud import CloudProvider
from karpy.ports.objects import Change, EventType, Feed, Objects, Patch, PatchType, Synced
from karpy.sim.faults import (
    WRITES,
    Faults,
    InjectedFault,
    cloud_unavailable,
    conflict,
    no_capacity,
    server_fault,
    throttled,
    unreachable,
)
from karpy.sim.faultyports import FaultyCloud, FaultyFeed, FaultyObjects
from karpy.sim.world import World
from tests.sim.stories import bare_world, launch_spec, on_virtual_time


def _config(name: str) -> JsonObject:
    return {"metadata": {"name": name, "namespace": "default"}, "data": {"a": "1"}}


def _objects(world: World, *faults: InjectedFault, seed: int = 0) -> Objects:
    return FaultyObjects(world.objects, Faults(*faults, seed=seed))


class _Names:
    """Reads the name of an object."""

    def from_object(self, obj: JsonObject) -> str:
        return str(obj["metadata"]["name"])

    def from_bytes(self, data: bytes) -> str:
        raise NotImplementedError


@on_virtual_time
async def test_without_faults_everything_goes_well() -> None:
    with bare_world() as world:
        objects = _objects(world)

        made = await objects.create(CONFIG_MAP, _config("a"))
        replaced = await objects.replace(CONFIG_MAP, {**made, "data": {"a": "2"}})
        patch = Patch(PatchType.MERGE, {"data": {"a": "3"}})
        await objects.patch(CONFIG_MAP, "a", patch, namespace="default")
        found = await objects.get(CONFIG_MAP, "a", "default")
        page = await objects.list(CONFIG_MAP)
        await objects.delete(CONFIG_MAP, "a", namespace="default")

        assert (replaced["data"], found["data"]) == ({"a": "2"}, {"a": "3"})
        assert page.items == (found,)
        assert world.store.list(CONFIG_MAP) == []


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (conflict, Conflict),
        (server_fault, ServerFault),
        (unreachable, Unreachable),
        (throttled, Throttled),
        (cloud_unavailable, CloudUnavailable),
        (no_capacity, NoCapacity),
    ],
)
@on_virtual_time
async def test_a_fault_raises_its_error_and_nothing_is_done(
    error: Callable[[], KarpyError], kind: type[KarpyError]
) -> None:
    with bare_world() as world:
        objects = _objects(world, InjectedFault(error))

        with pytest.raises(kind):
            await objects.create(CONFIG_MAP, _config("a"))

        assert world.store.list(CONFIG_MAP) == []


@on_virtual_time
async def test_an_answer_may_be_lost_though_the_call_was_done() -> None:
    with bare_world() as world:
        objects = _objects(world, InjectedFault(unreachable, is_answer_lost=True))

        with pytest.raises(Unreachable):
            await objects.create(CONFIG_MAP, _config("a"))

        assert len(world.store.list(CONFIG_MAP)) == 1


@on_virtual_time
async def test_only_the_nth_call_of_its_name_and_kind_fails() -> None:
    with bare_world() as world:
        faults = Faults(InjectedFault(server_fault, ("create",), CONFIG_MAP, nth=2))
        objects = FaultyObjects(world.objects, faults)
        await objects.create(NODE, {"metadata": {"name": "n1"}})
        await objects.create(CONFIG_MAP, _config("a"))
        await objects.list(CONFIG_MAP)

        with pytest.raises(ServerFault):
            await objects.create(CONFIG_MAP, _config("b"))

        await objects.create(CONFIG_MAP, _config("c"))
        assert faults.history == [
            "create nodes",
            "create configmaps",
            "list configmaps",
            "create configmaps: ServerFault",
            "create configmaps",
        ]


def _which_fail(seed: int) -> list[bool]:
    faults = Faults(InjectedFault(conflict, WRITES, percent=30), seed=seed)
    return [faults.strike("patch", POD) is not None for _ in range(200)]


def test_faults_happen_by_seed() -> None:
    first = _which_fail(1)

    assert first == _which_fail(1)
    assert first != _which_fail(2)
    assert 30 < sum(first) < 90


def test_reads_are_spared_by_faults_of_writes() -> None:
    faults = Faults(InjectedFault(conflict, WRITES))

    assert faults.strike("get", POD) is None


def test_faults_come_and_go() -> None:
    faults = Faults()
    before = faults.strike("get", POD)
    faults.add(InjectedFault(server_fault))
    during = faults.strike("get", POD)
    faults.clear()

    assert before is None
    assert during is not None
    assert faults.strike("get", POD) is None


@on_virtual_time
async def test_an_answer_may_be_late() -> None:
    with bare_world() as world:
        objects = _objects(world, InjectedFault(delay_seconds=30))

        await objects.list(POD)

        assert asyncio.get_running_loop().time() == 30


@on_virtual_time
async def test_a_gap_drops_events_and_ends_the_watch() -> None:
    with bare_world() as world:
        objects = _objects(world, InjectedFault(calls=("event",), nth=2))
        watch = objects.watch(CONFIG_MAP, since=world.store.version)
        world.store.create(CONFIG_MAP, _config("a"))
        world.store.create(CONFIG_MAP, _config("b"))

        first = await anext(watch)

        assert (first.type, first.object["metadata"]["name"]) == (EventType.ADDED, "a")
        with pytest.raises(Expired):
            await anext(watch)


@on_virtual_time
async def test_bookmarks_are_no_events_that_could_be_lost() -> None:
    with bare_world() as world:
        objects = _objects(world, InjectedFault(calls=("event",)))

        event = await anext(objects.watch(CONFIG_MAP, since=world.store.version))

        assert event.type is EventType.BOOKMARK


@on_virtual_time
async def test_a_watch_may_break_or_not_begin_at_all() -> None:
    with bare_world() as world:
        world.store.create(CONFIG_MAP, _config("a"))
        broken = _objects(world, InjectedFault(unreachable, ("event",)))
        refused = _objects(world, InjectedFault(server_fault, ("watch",)))

        with pytest.raises(Unreachable):
            await anext(broken.watch(CONFIG_MAP, since="0"))
        with pytest.raises(ServerFault):
            await anext(refused.watch(CONFIG_MAP, since="0"))


@on_virtual_time
async def test_events_may_be_late() -> None:
    with bare_world() as world:
        world.store.create(CONFIG_MAP, _config("a"))
        objects = _objects(world, InjectedFault(calls=("event",), delay_seconds=5))

        await anext(objects.watch(CONFIG_MAP, since="0"))

        assert asyncio.get_running_loop().time() == 5


@on_virtual_time
async def test_a_feed_lags_and_loses_nothing() -> None:
    with bare_world() as world:
        world.store.create(CONFIG_MAP, _config("a"))
        faults = Faults(InjectedFault(calls=("event",), nth=1, delay_seconds=5))
        feed: Feed = FaultyFeed(world.objects, faults)

        stream = feed.follow(CONFIG_MAP, _Names())
        first, second = await anext(stream), await anext(stream)

        assert isinstance(first, Change)
        assert (first.value, second) == ("a", Synced())
        assert asyncio.get_running_loop().time() == 5


@on_virtual_time
async def test_a_cloud_fails_like_an_api_server() -> None:
    with bare_world() as world:
        faults = Faults(InjectedFault(cloud_unavailable, ("launch",), nth=1))
        cloud: CloudProvider = FaultyCloud(world.cloud, faults)

        with pytest.raises(CloudUnavailable):
            await cloud.launch(launch_spec())
        machine = await cloud.launch(launch_spec())

        assert await cloud.machines() == [machine]
        assert await cloud.machine(machine.provider_id) == machine
        assert not await cloud.drift(ClaimRecord(Identity("c1")))
        assert cloud.catalog().types
        await cloud.terminate(machine.provider_id)
        assert (await cloud.machine(machine.provider_id)).is_terminating


@on_virtual_time
async def test_errors_of_the_world_pass_through() -> None:
    with bare_world() as world:
        with pytest.raises(NotFound):
            await _objects(world).get(CONFIG_MAP, "nobody", "default")

        assert world.store.list(CONFIG_MAP) == []
