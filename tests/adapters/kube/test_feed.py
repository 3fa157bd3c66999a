import asyncio
from contextlib import aclosing
from typing import Final

import msgspec
import pytest

from karpy.adapters.kube.auth import RequestCredentials
from karpy.adapters.kube.feed import KubeFeed, Pace
from karpy.adapters.kube.transport import Transport
from karpy.codec.fields import FieldInvalid, JsonObject
from karpy.errors import CredentialsRefused
from karpy.model.kinds import POD, Kind
from karpy.ports.objects import Change, Query, Synced, Unreadable
from tests.adapters.kube.server import (
    Answer,
    ScriptedServer,
    bookmark,
    drop,
    event,
    failure,
    page,
    pod,
    status,
    stream,
    text,
    transport_to,
)

PACE: Final = Pace(page=2, watch=20, idle=0.8, first_pause=0.01, longest_pause=0.05)
MORE: Final = "more"


class Label:
    """Reads the label `is` of an object; an object without it is unreadable."""

    def from_object(self, obj: JsonObject) -> str:
        raise NotImplementedError

    def from_bytes(self, data: bytes) -> str:
        obj = msgspec.json.decode(data)
        if "is" not in obj:
            raise FieldInvalid("is", "is missing", "add it")
        return str(obj["is"])


class Follower:
    """Follows pods on a scripted server, and records unreadable objects and failures."""

    def __init__(self, transport: Transport) -> None:
        self.unreadable: list[tuple[str, str]] = []
        self.troubles: list[str] = []
        self.has_two = asyncio.Event()
        self._feed = KubeFeed(
            transport, on_unreadable=self._unread, on_trouble=self._trouble, pace=PACE
        )

    def _unread(self, kind: Kind, key: str, error: Exception) -> None:
        assert kind == POD
        self.unreadable.append((key, str(error)))

    def _trouble(self, kind: Kind, error: Exception) -> None:
        self.troubles.append(f"{kind}: {type(error).__name__}")

    async def take(self, count: int, query: Query | None = None) -> list[Change[str] | Synced]:
        """Return the first `count` changes."""
        changes: list[Change[str] | Synced] = []
        async with asyncio.timeout(5):
            async with aclosing(self._feed.follow(POD, Label(), query or Query())) as following:
                async for each in following:
                    changes.append(each)
                    if len(changes) == 2:
                        self.has_two.set()
                    if len(changes) == count:
                        break
        return changes


@pytest.fixture
def follower(transport: Transport) -> Follower:
    return Follower(transport)


def web(name: str, version: str, label: str = "up") -> JsonObject:
    return {**pod(name, version), "is": label}


def now(name: str, version: str, label: str | None = "up") -> Change[str]:
    return Change(f"shop/{name}", label, version)


def unreadable(name: str, version: str) -> Change[str]:
    problem = Unreadable("`is` is missing", pod(name, version))
    return Change(f"shop/{name}", None, version, problem)


async def test_objects_are_delivered_then_synced_then_every_change(
    server: ScriptedServer, follower: Follower
) -> None:
    server.says(
        page(web("a", "1"), web("b", "2"), version="9", token=MORE),
        page(web("c", "3"), version="9"),
        stream(
            event("ADDED", web("d", "10")),
            event("MODIFIED", web("a", "11", "down")),
            event("DELETED", web("b", "12")),
            then="hang",
        ),
    )

    changes = await follower.take(7, Query("shop", "app=web"))

    assert changes == [
        now("a", "1"),
        now("b", "2"),
        now("c", "3"),
        Synced(),
        now("d", "10"),
        now("a", "11", "down"),
        now("b", "12", None),
    ]
    assert server.asked[0].params == {"labelSelector": "app=web", "limit": "2"}
    assert server.asked[1].params == {"labelSelector": "app=web", "limit": "2", "continue": MORE}
    watched = server.asked[2].params
    assert 20 <= int(watched.pop("timeoutSeconds")) <= 40
    assert watched == {
        "labelSelector": "app=web",
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": "9",
    }


async def test_an_empty_list_is_synced_too(server: ScriptedServer, follower: Follower) -> None:
    server.says(page(version="9"), stream(then="hang"))

    assert await follower.take(1) == [Synced()]


async def test_a_watch_that_ends_goes_on_from_the_last_event_or_bookmark(
    server: ScriptedServer, follower: Follower
) -> None:
    server.says(
        page(version="9"),
        stream(event("ADDED", web("a", "10"))),
        stream(bookmark("15")),
        stream(event("ADDED", web("b", "16")), then="hang"),
    )

    changes = await follower.take(3)

    assert changes == [Synced(), now("a", "10"), now("b", "16")]
    since = [each.params["resourceVersion"] for each in server.asked[1:]]
    assert since == ["9", "10", "15"]
    assert follower.troubles == []


async def test_after_an_expired_version_a_list_delivers_only_differences(
    server: ScriptedServer, follower: Follower
) -> None:
    server.says(
        page(web("a", "1"), web("b", "2"), web("c", "3"), version="9"),
        stream(event("ERROR", status(410, "Expired"))),
        page(web("a", "1"), web("c", "30", "down"), web("d", "31"), version="40"),
        stream(then="hang"),
    )

    changes = await follower.take(7)

    assert changes[4:] == [now("c", "30", "down"), now("d", "31"), now("b", "40", None)]


async def test_a_watch_refused_as_expired_leads_to_a_list(
    server: ScriptedServer, follower: Follower
) -> None:
    server.says(
        page(version="9"),
        failure(410, "Expired"),
        page(web("a", "20"), version="20"),
        stream(then="hang"),
    )

    assert await follower.take(2) == [Synced(), now("a", "20")]


async def test_repeated_expired_versions_lead_to_pauses(
    server: ScriptedServer, follower: Follower
) -> None:
    server.says(
        page(version="9"), failure(410, "Expired"), page(version="9"), failure(410, "Expired")
    )

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await follower.take(2)

    assert len(server.asked) < 60


async def test_pages_that_expire_while_they_are_read_are_taken_all_at_once(
    server: ScriptedServer, follower: Follower
) -> None:
    server.says(
        page(web("a", "1"), web("b", "2"), version="9", token=MORE),
        failure(410, "Expired"),
        page(web("a", "1"), web("b", "2"), web("c", "3"), version="12"),
        stream(then="hang"),
    )

    changes = await follower.take(4)

    assert changes == [now("a", "1"), now("b", "2"), now("c", "3"), Synced()]
    assert server.asked[2].params == {}


async def test_a_connection_cut_amid_an_event_loses_nothing(
    server: ScriptedServer, follower: Follower
) -> None:
    half = msgspec.json.encode(event("ADDED", web("b", "11")))[:40]
    server.says(
        page(version="9"),
        stream(event("ADDED", web("a", "10")), half, then="cut"),
        stream(event("ADDED", web("b", "11")), then="hang"),
    )

    changes = await follower.take(3)

    assert changes == [Synced(), now("a", "10"), now("b", "11")]
    assert server.asked[2].params["resourceVersion"] == "10"
    assert follower.troubles == ["pods: Unreachable"]


async def test_a_silent_server_is_left_and_asked_again(
    server: ScriptedServer, follower: Follower
) -> None:
    server.says(
        page(version="9"),
        stream(then="hang"),
        stream(event("ADDED", web("a", "10")), then="hang"),
    )

    changes = await follower.take(2)

    assert changes == [Synced(), now("a", "10")]
    assert follower.troubles == ["pods: Unreachable"]


async def test_a_server_that_restarts_is_found_again(
    server: ScriptedServer, follower: Follower
) -> None:
    server.says(page(version="9"), stream(event("ADDED", web("a", "10")), then="hang"))
    taking = asyncio.create_task(follower.take(3))
    await follower.has_two.wait()
    await server.stop()
    server.says(stream(event("ADDED", web("b", "11")), then="hang"))
    await asyncio.sleep(0.1)
    await server.start()

    changes = await taking

    assert changes == [Synced(), now("a", "10"), now("b", "11")]
    assert set(follower.troubles) == {"pods: Unreachable"}


@pytest.mark.parametrize(
    "trouble",
    [
        failure(500, "InternalError"),
        failure(403, "Forbidden"),
        failure(404, "NotFound"),
        text("<html>", 200),
        drop,
    ],
)
async def test_a_failed_list_is_reported_and_retried(
    server: ScriptedServer, follower: Follower, trouble: Answer
) -> None:
    server.says(*[trouble] * 12, page(web("a", "1"), version="9"), stream(then="hang"))

    changes = await follower.take(2)

    assert changes == [now("a", "1"), Synced()]
    assert follower.troubles


async def test_a_version_that_the_server_does_not_know_leads_to_a_list(
    server: ScriptedServer, follower: Follower
) -> None:
    """After a restore from a backup, the resource version is newer than the server's."""
    too_large = failure(504, "Timeout", "Too large resource version: 900, current: 9")
    server.says(
        page(web("a", "800"), version="900"),
        too_large,
        too_large,
        too_large,
        page(web("a", "8"), version="9"),
        stream(then="hang"),
    )

    changes = await follower.take(3)

    assert changes == [now("a", "800"), Synced(), now("a", "8")]


class NoCredentials:
    """Credentials that are always refused."""

    async def identity(self) -> RequestCredentials:
        raise CredentialsRefused(source="aws", problem="no", hint="sign in")

    async def renewed(self, refused: RequestCredentials) -> RequestCredentials:
        raise NotImplementedError


async def test_refused_credentials_are_reported_and_retried(server: ScriptedServer) -> None:
    follower = Follower(transport_to(server, NoCredentials()))

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await follower.take(1)

    assert follower.troubles[:2] == ["pods: CredentialsRefused"] * 2


async def test_an_unreadable_object_is_delivered_as_such_and_reported(
    server: ScriptedServer, follower: Follower
) -> None:
    server.says(
        page(web("a", "1"), pod("b", "2"), version="9"),
        stream(
            event("MODIFIED", pod("a", "10")),
            event("DELETED", pod("b", "11")),
            event("MODIFIED", web("a", "12", "again")),
            then="hang",
        ),
    )

    changes = await follower.take(6)

    assert changes == [
        now("a", "1"),
        unreadable("b", "2"),
        Synced(),
        unreadable("a", "10"),
        now("b", "11", None),
        now("a", "12", "again"),
    ]
    assert follower.unreadable == [
        ("shop/b", "`is` is missing"),
        ("shop/a", "`is` is missing"),
    ]


async def test_an_object_without_a_name_is_reported(
    server: ScriptedServer, follower: Follower
) -> None:
    server.says(
        page({"metadata": {"resourceVersion": "1"}}, {"metadata": 3}, web("a", "1"), version="9"),
        stream(then="hang"),
    )

    assert await follower.take(2) == [now("a", "1"), Synced()]
    assert [key for key, _ in follower.unreadable] == ["", ""]


async def test_events_of_an_unknown_type_are_ignored(
    server: ScriptedServer, follower: Follower
) -> None:
    server.says(
        page(version="9"),
        stream(event("PONDERED", {}), event("ADDED", web("a", "10")), then="hang"),
    )

    assert await follower.take(2) == [Synced(), now("a", "10")]


async def test_a_large_list_leaves_the_loop_free(server: ScriptedServer) -> None:
    """A task that renews a lease must run meanwhile."""
    many = [web(f"p{number}", str(number), "x" * 1000) for number in range(3000)]
    server.says(page(*many, version="9"), stream(then="hang"))
    transport = transport_to(server)
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count_turns())
    await asyncio.sleep(0)
    changes = await Follower(transport).take(3001)
    counting.cancel()
    await transport.close()

    assert changes[-1] == Synced()
    assert turns > 30
