import asyncio
from collections.abc import Callable

import pytest

from karpy.codec.fields import JsonObject
from karpy.model.kinds import Kind
from karpy.ports.objects import WatchEvent
from karpy.sim.world import World
from tests.adapters.apiserver.stranger import (
    CONFIG_MAPS,
    METADATA,
    PODS,
    TABLE,
    Stranger,
    config_map,
)

Callback = Callable[[WatchEvent, JsonObject | None], None]

WATCH = f"{CONFIG_MAPS}?watch=true"
INITIAL = f"{WATCH}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"


def summary_of(event: JsonObject) -> tuple[str, str]:
    return event["type"], event["object"]["metadata"].get("name", "")


async def test_a_watch_delivers_existing_objects_and_changes(client: Stranger) -> None:
    await client.post(CONFIG_MAPS, config_map("a"))

    async with client.watch(WATCH) as lines:
        await lines.next()
        await client.post(CONFIG_MAPS, config_map("b"))
        event = await lines.next()

    assert summary_of(event) == ("ADDED", "b")
    assert event["object"]["kind"] == "ConfigMap"


async def test_a_watch_begins_after_a_version(client: Stranger) -> None:
    made = await client.post(CONFIG_MAPS, config_map("a"))
    version = made.body["metadata"]["resourceVersion"]
    await client.ask("DELETE", f"{CONFIG_MAPS}/a")

    async with client.watch(f"{WATCH}&resourceVersion={version}&timeoutSeconds=1") as lines:
        events = await lines.rest()

    assert [summary_of(each) for each in events] == [("DELETED", "a")]


async def test_initial_events_end_with_a_bookmark(client: Stranger, world: World) -> None:
    await client.post_all(CONFIG_MAPS, config_map("a"), config_map("b"))

    async with client.watch(f"{INITIAL}&allowWatchBookmarks=true") as lines:
        events = await lines.take(3)

    assert [summary_of(each) for each in events] == [
        ("ADDED", "a"),
        ("ADDED", "b"),
        ("BOOKMARK", ""),
    ]
    assert events[2]["object"] == {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {
            "resourceVersion": world.store.version,
            "annotations": {"k8s.io/initial-events-end": "true"},
        },
    }


async def test_without_initial_events_a_watch_begins_now(client: Stranger) -> None:
    await client.post(CONFIG_MAPS, config_map("a"))

    async with client.watch(INITIAL.replace("true&r", "false&r")) as lines:
        await client.post(CONFIG_MAPS, config_map("b"))
        event = await lines.next()

    assert summary_of(event) == ("ADDED", "b")


async def test_bookmarks_are_sent_only_on_request(client: Stranger) -> None:
    async with client.watch(f"{WATCH}&timeoutSeconds=1") as lines:
        without = await lines.rest()
    async with client.watch(f"{WATCH}&timeoutSeconds=1&allowWatchBookmarks=true") as lines:
        events = await lines.rest()

    assert without == []
    assert [each["type"] for each in events] == ["BOOKMARK"]


async def test_an_expired_version_is_an_error_in_the_stream(client: Stranger) -> None:
    await client.post_all(CONFIG_MAPS, *(config_map(f"a{number}") for number in range(110)))

    async with client.watch(f"{WATCH}&resourceVersion=1") as lines:
        events = await lines.rest()

    assert [each["type"] for each in events] == ["ERROR"]
    assert (events[0]["object"]["code"], events[0]["object"]["reason"]) == (410, "Expired")
    assert events[0]["object"]["kind"] == "Status"


async def test_a_watch_of_tables_has_column_definitions_once(client: Stranger) -> None:
    async with client.watch(WATCH, TABLE) as lines:
        await client.post_all(CONFIG_MAPS, config_map("a", x="1"), config_map("b"))
        first, second = await lines.take(2)

    assert [each["name"] for each in first["object"]["columnDefinitions"]][:2] == ["Name", "Data"]
    assert first["object"]["rows"][0]["cells"][:2] == ["a", 1]
    assert second["object"]["columnDefinitions"] is None
    assert second["object"]["rows"][0]["cells"][:2] == ["b", 0]


async def test_a_bookmark_is_a_row_of_a_table(client: Stranger) -> None:
    async with client.watch(f"{INITIAL}&allowWatchBookmarks=1", TABLE) as lines:
        event = await lines.next()

    meta = event["object"]["rows"][0]["object"]["metadata"]
    assert (event["type"], event["object"]["kind"]) == ("BOOKMARK", "Table")
    assert meta["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert event["object"]["metadata"]["resourceVersion"]


async def test_a_watch_may_deliver_metadata_only(client: Stranger) -> None:
    await client.post(CONFIG_MAPS, config_map("a", x="1"))

    async with client.watch(WATCH, METADATA) as lines:
        event = await lines.next()

    assert event["object"]["kind"] == "PartialObjectMetadata"


async def test_selectors_narrow_a_watch(client: Stranger) -> None:
    async with client.watch(f"{WATCH}&fieldSelector=metadata.name%3Db") as lines:
        await client.post_all(CONFIG_MAPS, config_map("a"), config_map("b"))
        event = await lines.next()

    assert summary_of(event) == ("ADDED", "b")


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        ("labelSelector=a%20b", 400, "unable to parse requirement"),
        ("resourceVersion=abc", 400, "abc"),
        ("sendInitialEvents=true", 422, "requires setting resourceVersionMatch"),
        ("resourceVersionMatch=NotOlderThan", 422, "forbidden for watch"),
        ("timeoutSeconds=soon", 400, "invalid syntax"),
    ],
)
async def test_a_watch_with_invalid_options_is_refused_before_it_begins(
    client: Stranger, query: str, status: int, message: str
) -> None:
    reply = await client.get(f"{WATCH}&{query}")

    assert reply.status == status
    assert message in reply.message


async def test_a_watch_from_a_future_version_is_refused(client: Stranger) -> None:
    reply = await client.get(f"{INITIAL}&resourceVersion=999999")

    assert (reply.status, reply.body["reason"]) == (504, "Timeout")


async def test_a_client_that_disconnects_is_forgotten(
    client: Stranger, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_ended = asyncio.Event()
    subscribe = world.store.subscribe

    def noting(kind: Kind, callback: Callback) -> Callable[[], None]:
        subscribe(kind, callback)
        return has_ended.set

    monkeypatch.setattr(world.store, "subscribe", noting)

    async with client.watch(f"{PODS}?watch=1"):
        is_ended_early = has_ended.is_set()
    async with asyncio.timeout(5):
        await has_ended.wait()

    assert not is_ended_early
