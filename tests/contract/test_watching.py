"""Watches: their events, their start and expired versions."""

import asyncio
from collections.abc import AsyncIterator

from karpy.adapters.mirror.records import FieldReader
from karpy.errors import Expired
from karpy.model.kinds import CONFIG_MAP, POD
from karpy.ports.objects import Change, EventType, Patch, PatchType, Query, Synced, WatchEvent
from tests.contract.plain import config_map, pod
from tests.contract.worlds import SOON, World, closing, until


async def take(events: AsyncIterator[WatchEvent], count: int) -> list[tuple[str, str]]:
    """Return the next events without bookmarks."""
    taken: list[tuple[str, str]] = []
    async with asyncio.timeout(SOON), closing(events) as stream:
        async for event in stream:
            if event.type is not EventType.BOOKMARK:
                taken.append((event.type.value, event.object["metadata"]["name"]))
            if len(taken) == count:
                break
    return taken


def mine(world: World, labels: str = "") -> Query:
    return Query(world.namespace, labels, "metadata.name!=kube-root-ca.crt")


async def change(world: World, name: str, **data: str) -> None:
    patch = Patch(PatchType.MERGE, {"data": data})
    await world.objects.patch(CONFIG_MAP, name, patch, namespace=world.namespace)


async def test_changes_after_a_version_are_delivered_in_order(world: World) -> None:
    page = await world.objects.list(CONFIG_MAP, mine(world))
    await world.create(CONFIG_MAP, config_map("a"))
    await change(world, "a", x="1")
    await world.objects.delete(CONFIG_MAP, "a", namespace=world.namespace)

    events = await take(world.objects.watch(CONFIG_MAP, mine(world), since=page.version), 3)

    assert events == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


async def test_later_changes_are_delivered_too(world: World) -> None:
    page = await world.objects.list(CONFIG_MAP, mine(world))
    watch = asyncio.create_task(
        take(world.objects.watch(CONFIG_MAP, mine(world), since=page.version), 2)
    )
    await asyncio.sleep(0.05)

    await world.create(CONFIG_MAP, config_map("a"))
    await world.create(CONFIG_MAP, config_map("b"))

    assert await watch == [("ADDED", "a"), ("ADDED", "b")]


async def test_a_watch_resumes_where_another_ended(world: World) -> None:
    made = await world.create(CONFIG_MAP, config_map("a"))
    await world.create(CONFIG_MAP, config_map("b"))

    since = made["metadata"]["resourceVersion"]
    events = await take(world.objects.watch(CONFIG_MAP, mine(world), since=since), 1)

    assert events == [("ADDED", "b")]


async def test_an_object_that_begins_to_match_is_new_and_one_that_ceases_is_gone(
    world: World,
) -> None:
    await world.create(POD, pod("a", labels={"app": "web"}))
    page = await world.objects.list(POD, mine(world))
    patches = ({"app": "db"}, {"app": "web"}, {"app": "web", "x": "y"})
    for labels in patches:
        patch = Patch(PatchType.MERGE, {"metadata": {"labels": labels}})
        await world.objects.patch(POD, "a", patch, namespace=world.namespace)

    events = await take(world.objects.watch(POD, mine(world, "app=web"), since=page.version), 3)

    assert events == [("DELETED", "a"), ("ADDED", "a"), ("MODIFIED", "a")]


async def test_a_deletion_comes_with_its_own_version(world: World) -> None:
    """A watch that resumes from this version must not repeat the deletion."""
    made = await world.create(CONFIG_MAP, config_map("a"))
    await world.objects.delete(CONFIG_MAP, "a", namespace=world.namespace)
    since = made["metadata"]["resourceVersion"]

    async with asyncio.timeout(SOON):
        event = await anext(aiter(world.objects.watch(CONFIG_MAP, mine(world), since=since)))

    assert int(event.version) > int(since)
    assert event.object["metadata"]["resourceVersion"] == event.version


async def test_a_watch_ends_when_its_time_is_over(world: World) -> None:
    page = await world.objects.list(CONFIG_MAP, mine(world))

    async with asyncio.timeout(SOON):
        events = [
            event
            async for event in world.objects.watch(
                CONFIG_MAP, mine(world), since=page.version, seconds=1
            )
        ]

    assert [event.type for event in events] in ([], [EventType.BOOKMARK])


async def test_a_watch_from_a_compacted_version_is_expired(world: World) -> None:
    """A client with such an old version must list again."""
    since = await world.compact()

    async def is_expired() -> bool:
        try:
            async for _ in world.objects.watch(CONFIG_MAP, mine(world), since=since, seconds=1):
                return False
        except Expired as error:
            return error.status == 410
        return False

    assert await until(is_expired)


async def test_a_feed_delivers_all_objects_then_changes(world: World) -> None:
    await world.create(CONFIG_MAP, config_map("a"))
    reader = FieldReader(lambda fields: fields.child("data").text("x"))
    changes: list[tuple[str, str | None] | str] = []

    async with (
        asyncio.timeout(SOON),
        closing(world.feed.follow(CONFIG_MAP, reader, mine(world))) as feed,
    ):
        async for news in feed:
            changes.append(_short(news))
            if isinstance(news, Synced):
                await change(world, "a", x="1")
            elif len(changes) == 3:
                await world.objects.delete(CONFIG_MAP, "a", namespace=world.namespace)
            elif len(changes) == 4:
                break

    key = f"{world.namespace}/a"
    assert changes == [(key, ""), "synced", (key, "1"), (key, None)]


def _short(news: Change[str] | Synced) -> tuple[str, str | None] | str:
    return "synced" if isinstance(news, Synced) else (news.key, news.value)
