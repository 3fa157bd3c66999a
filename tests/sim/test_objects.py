import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from itertools import islice

import pytest

from karpy.codec.fields import FieldInvalid, JsonObject
from karpy.errors import Expired
from karpy.model.kinds import NODE, POD, Kind
from karpy.ports.objects import (
    Change,
    EventType,
    Feed,
    Objects,
    Patch,
    PatchType,
    Query,
    Removal,
    Synced,
    WatchEvent,
)
from karpy.sim.clock import LoopClock
from karpy.sim.loop import run
from karpy.sim.objects import EmbeddedObjects
from karpy.sim.store.store import Store

START = datetime(2026, 1, 1, tzinfo=UTC)


class Colors:
    """Reads the color of a node; one without cannot be read."""

    def from_object(self, obj: JsonObject) -> str:
        color = (obj["metadata"].get("labels") or {}).get("color")
        if color is None:
            raise FieldInvalid("metadata.labels.color", "is missing", "add it")
        return str(color)

    def from_bytes(self, data: bytes) -> str:
        raise NotImplementedError


class CountingStore(Store):
    """A store that counts who listens."""

    listeners = 0

    def subscribe(
        self, kind: Kind, callback: Callable[[WatchEvent, JsonObject | None], None]
    ) -> Callable[[], None]:
        self.listeners += 1
        end = super().subscribe(kind, callback)

        def leave() -> None:
            self.listeners -= 1
            end()

        return leave


def a_node(name: str, color: str = "red") -> JsonObject:
    return {"metadata": {"name": name, "labels": {"color": color}}}


def color_of(color: str | None) -> Patch:
    return Patch(PatchType.MERGE, {"metadata": {"labels": {"color": color}}})


@pytest.fixture
def store() -> Store:
    return Store(LoopClock(START), history=10)


@pytest.fixture
def objects(store: Store) -> EmbeddedObjects:
    return EmbeddedObjects(store)


async def taken(stream: AsyncIterator[object], count: int) -> list[object]:
    found: list[object] = []
    async for each in stream:
        found.append(each)
        if len(found) == count:
            break
    return found


def types_and_names(events: list[object]) -> list[tuple[EventType, str | None]]:
    return [
        (each.type, each.object["metadata"].get("name"))
        for each in events
        if isinstance(each, WatchEvent)
    ]


def test_embedded_objects_implement_the_ports(objects: EmbeddedObjects) -> None:
    ports: tuple[Objects, Feed] = (objects, objects)

    assert ports == (objects, objects)


def test_objects_can_be_written_and_read(objects: EmbeddedObjects) -> None:
    async def work() -> list[JsonObject]:
        made = await objects.create(NODE, a_node("n"))
        same = await objects.get(NODE, "n")
        blue = await objects.patch(NODE, "n", color_of("blue"))
        green = await objects.replace(NODE, {**blue, "spec": {"unschedulable": True}})
        page = await objects.list(NODE)
        await objects.delete(NODE, "n", removal=Removal(uid=made["metadata"]["uid"]))
        return [made, same, green, *page.items, *(await objects.list(NODE)).items]

    made, same, green, listed = run(work())

    assert made is same
    assert green is listed
    assert green["metadata"]["labels"] == {"color": "blue"}


def test_a_list_comes_in_pages(objects: EmbeddedObjects) -> None:
    async def work() -> list[str]:
        await objects.create(NODE, a_node("a"))
        await objects.create(NODE, a_node("b"))
        one = await objects.list(NODE, limit=1)
        two = await objects.list(NODE, limit=1, token=one.token)
        return [each["metadata"]["name"] for page in (one, two) for each in page.items]

    assert run(work()) == ["a", "b"]


def test_a_watch_delivers_history_first_and_then_live_events(
    store: Store, objects: EmbeddedObjects
) -> None:
    async def work() -> list[object]:
        since = store.version
        store.create(NODE, a_node("old"))
        watching = asyncio.ensure_future(taken(objects.watch(NODE, since=since), 3))
        await asyncio.sleep(1)
        store.create(NODE, a_node("new"))
        await asyncio.sleep(1)
        store.delete(NODE, "old")
        return await watching

    assert types_and_names(run(work())) == [
        (EventType.ADDED, "old"),
        (EventType.ADDED, "new"),
        (EventType.DELETED, "old"),
    ]


def test_a_watch_without_a_version_begins_with_the_existing_objects(
    store: Store, objects: EmbeddedObjects
) -> None:
    store.create(NODE, a_node("old"))

    events = run(taken(objects.watch(NODE, since="0"), 1))

    assert types_and_names(events) == [(EventType.ADDED, "old")]


def test_a_watch_with_a_selector_sees_objects_come_and_go(
    store: Store, objects: EmbeddedObjects
) -> None:
    async def work() -> list[object]:
        red = objects.watch(NODE, Query(labels="color=red"), since=store.version, seconds=5)
        watching = asyncio.ensure_future(taken(red, 3))
        await asyncio.sleep(1)
        store.create(NODE, a_node("n", "blue"))
        store.patch(NODE, "n", color_of("red"))
        store.patch(NODE, "n", color_of("blue"))
        store.delete(NODE, "n")
        return await watching

    assert types_and_names(run(work())) == [
        (EventType.ADDED, "n"),
        (EventType.DELETED, "n"),
        (EventType.BOOKMARK, None),
    ]


def test_a_quiet_watch_gets_a_bookmark_every_minute_and_one_at_the_end(
    store: Store, objects: EmbeddedObjects
) -> None:
    async def work() -> tuple[list[object], float]:
        found = await taken(objects.watch(NODE, since=store.version, seconds=150), 9)
        return found, asyncio.get_running_loop().time()

    events, seconds = run(work())

    assert types_and_names(events) == [(EventType.BOOKMARK, None)] * 3
    assert {each.version for each in events if isinstance(each, WatchEvent)} == {store.version}
    assert seconds == 150


def test_a_watch_from_too_long_ago_is_refused(store: Store, objects: EmbeddedObjects) -> None:
    since = store.version
    made = [store.create(NODE, a_node(f"n{number}")) for number in range(30)]

    with pytest.raises(Expired):
        run(taken(objects.watch(NODE, since=since), 1))

    assert len(made) == 30


def test_a_watch_that_is_given_up_listens_no_more() -> None:
    store = CountingStore(LoopClock(START))

    async def work() -> list[int]:
        watch = EmbeddedObjects(store).watch(NODE, since=store.version)
        waiting = asyncio.ensure_future(taken(watch, 1))
        await asyncio.sleep(1)
        meanwhile = store.listeners
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        return [meanwhile, store.listeners]

    assert run(work()) == [1, 0]


def test_a_follower_gets_all_objects_then_synced_then_changes(
    store: Store, objects: EmbeddedObjects
) -> None:
    store.create(NODE, a_node("a"))
    version = store.version

    async def work() -> list[object]:
        following = asyncio.ensure_future(taken(objects.follow(NODE, Colors()), 4))
        await asyncio.sleep(1)
        store.patch(NODE, "a", color_of("blue"))
        store.delete(NODE, "a")
        return await following

    number = int(version)
    assert run(work()) == [
        Change("a", "red", version),
        Synced(),
        Change("a", "blue", str(number + 1)),
        Change("a", None, str(number + 2)),
    ]


def test_an_unreadable_object_is_delivered_as_such_and_reported(store: Store) -> None:
    reported: list[tuple[Kind, str]] = []
    objects = EmbeddedObjects(store, unreadable=lambda kind, key, _: reported.append((kind, key)))
    store.create(NODE, a_node("a"))
    store.create(NODE, {"metadata": {"name": "b"}})

    async def work() -> list[object]:
        following = asyncio.ensure_future(taken(objects.follow(NODE, Colors()), 4))
        await asyncio.sleep(1)
        store.patch(NODE, "a", color_of(None))
        return await following

    changes = run(work())

    assert reported == [(NODE, "b"), (NODE, "a")]
    delivered = [each for each in changes if isinstance(each, Change)]
    assert [(each.key, each.value, each.unreadable is not None) for each in delivered] == [
        ("a", "red", False),
        ("b", None, True),
        ("a", None, True),
    ]


def test_a_follower_that_fell_behind_heals(
    store: Store, objects: EmbeddedObjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("karpy.sim.objects._LAG_MAX", 2)
    store.create(NODE, a_node("gone"))
    store.create(NODE, a_node("same"))

    async def work() -> list[object]:
        following = asyncio.ensure_future(taken(objects.follow(NODE, Colors()), 8))
        await asyncio.sleep(1)
        for name in ("a", "b", "c", "d"):
            store.create(NODE, a_node(name))
        store.delete(NODE, "gone")
        return await following

    changes = [each for each in run(work()) if isinstance(each, Change)]

    assert [(each.key, each.value) for each in islice(changes, 2, None)] == [
        ("a", "red"),
        ("b", "red"),
        ("c", "red"),
        ("d", "red"),
        ("gone", None),
    ]


def test_keys_of_namespaced_objects_carry_the_namespace(
    store: Store, objects: EmbeddedObjects
) -> None:
    class Names:
        def from_object(self, obj: JsonObject) -> str:
            return str(obj["metadata"]["name"])

        def from_bytes(self, data: bytes) -> str:
            raise NotImplementedError

    pod = {
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    store.create(POD, pod)

    (change,) = run(taken(objects.follow(POD, Names()), 1))

    assert isinstance(change, Change)
    assert (change.key, change.value) == ("default/p", "p")


def test_watches_go_on_though_their_timers_ring_a_rounding_error_too_early(
    store: Store, objects: EmbeddedObjects
) -> None:
    """Two of them that are out of step would keep each other busy at one instant for ever."""

    async def first_bookmark(kind: Kind) -> float:
        version = (await objects.list(kind)).version
        async for event in objects.watch(kind, since=version):
            if event.type is EventType.BOOKMARK:
                break
        return asyncio.get_running_loop().time()

    async def work() -> list[float]:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(0.6)
        # 60 seconds after 0.6 is a little more than what is left after 18.7 of them.
        loop.call_later(18.7, int)
        watches = [asyncio.ensure_future(first_bookmark(kind)) for kind in (NODE, POD)]
        await asyncio.sleep(0)
        loop.call_later(60, lambda: loop.call_soon(store.create, NODE, a_node("n1")))
        return await asyncio.gather(*watches)

    assert run(work(), steps_max=1000) == pytest.approx([60.6, 60.6])
