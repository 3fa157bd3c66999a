"""A leader that was frozen: whatever was on its way, nothing is written after the deadline."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from itertools import chain, repeat
from threading import Event, Thread

import pytest
from aiohttp import web

from karpy.adapters.clock import WallClock
from karpy.adapters.kube.api import KubeApi
from karpy.adapters.kube.auth import RequestCredentials
from karpy.adapters.kube.connection import Connection, find_access
from karpy.adapters.kube.fence import Fence
from karpy.adapters.kube.leases import Candidacy, Election, Timing
from karpy.adapters.kube.retry import Patience
from karpy.errors import ClusterError, LeadershipUncertain
from karpy.model.kinds import LEASE, NAMESPACE, NODE
from karpy.ports.objects import Patch, PatchType
from karpy.sim.world import World
from karpy.wiring.embedded import ServedCluster, embedded_world, serve
from tests.adapters.kube.clocks import SetClock, run
from tests.adapters.kube.server import (
    Answer,
    ScriptedServer,
    drop,
    failure,
    json,
    serving,
    transport_to,
)
from tests.adapters.kube.smallstore import SmallStore

OK = json({"metadata": {"name": "n1"}})
PATCH = Patch(PatchType.MERGE, {})
TIMING = Timing(lease=2, renew_deadline=1.0, retry=0.1)
FROZEN_SECONDS = 5.0
Write = Callable[[KubeApi], Awaitable[object]]

WITH_A_BODY: list[Write] = [
    lambda api: api.create(NODE, {"metadata": {"name": "n1"}}),
    lambda api: api.replace(NODE, {"metadata": {"name": "n1"}}),
    lambda api: api.patch(NODE, "n1", PATCH),
]
writes = pytest.mark.parametrize("write", [*WITH_A_BODY, lambda api: api.delete(NODE, "n1")])


class Leader:
    """A fence that is open for ten seconds, and a clock that jumps as over a freeze."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.fence = Fence(lambda: self.seconds)
        self.fence.open(10.0)

    def freeze(self) -> None:
        self.seconds = 18.0

    def freezes_before(self, answer: Answer) -> Answer:
        async def answered(request: web.Request) -> web.StreamResponse:
            self.freeze()
            return await answer(request)

        return answered


class SlowCredentials:
    """Credentials for which the leader waits as long as it is frozen."""

    def __init__(self, leader: Leader) -> None:
        self._leader = leader

    async def identity(self) -> RequestCredentials:
        self._leader.freeze()
        return RequestCredentials()

    async def renewed(self, refused: RequestCredentials) -> RequestCredentials:
        return refused


async def attempt(
    leader: Leader, server: ScriptedServer, *write: Write, waits: bool = False
) -> list[str]:
    """Write one after the other; return what the server got, and the last outcome."""
    patience = Patience(tries=3, first_seconds=0.001, longest_seconds=0.002)
    credentials = SlowCredentials(leader) if waits else None
    transport = transport_to(server, credentials, patience=patience)
    transport.fence(leader.fence)
    outcome = "written"
    for each in write:
        try:
            await each(KubeApi(transport))
        except ClusterError as error:
            outcome = type(error).__name__
    await transport.close()
    return [*(each.method for each in server.asked), outcome]


@writes
async def test_before_the_deadline_a_write_is_sent(write: Write) -> None:
    async with serving() as server:
        server.says(OK)
        *asked, outcome = await attempt(Leader(), server, write)

    assert (len(asked), outcome) == (1, "written")


@writes
async def test_after_the_deadline_no_write_is_sent(write: Write) -> None:
    leader = Leader()
    leader.freeze()
    async with serving() as server:
        server.says(OK)
        asked = await attempt(leader, server, write)

    assert asked == ["LeadershipUncertain"]


async def test_after_the_deadline_reads_go_on() -> None:
    leader = Leader()
    leader.freeze()
    async with serving() as server:
        server.says(OK)
        asked = await attempt(leader, server, lambda api: api.get(NODE, "n1"))

    assert asked == ["GET", "written"]


@pytest.mark.parametrize("trouble", [failure(503, "ServiceUnavailable"), drop])
async def test_a_write_that_failed_before_the_freeze_is_not_tried_again_after_it(
    trouble: Answer,
) -> None:
    leader = Leader()
    async with serving() as server:
        server.says(leader.freezes_before(trouble), OK)
        asked = await attempt(leader, server, lambda api: api.patch(NODE, "n1", PATCH))

    assert asked == ["PATCH", "LeadershipUncertain"]


async def test_a_write_on_a_connection_that_broke_is_not_sent_anew_by_the_http_client() -> None:
    """aiohttp sends a PUT or a DELETE again by itself if its connection was used before."""
    leader = Leader()
    async with serving() as server:
        server.says(OK, leader.freezes_before(drop), OK)
        asked = await attempt(
            leader, server, lambda api: api.get(NODE, "n1"), lambda api: api.delete(NODE, "n1")
        )

    assert asked == ["GET", "DELETE", "LeadershipUncertain"]


async def test_a_write_that_waited_for_credentials_is_not_sent_after_the_deadline() -> None:
    async with serving() as server:
        server.says(OK)
        asked = await attempt(
            Leader(), server, lambda api: api.patch(NODE, "n1", PATCH), waits=True
        )

    assert asked == ["LeadershipUncertain"]


@pytest.mark.parametrize("write", WITH_A_BODY)
async def test_a_write_that_waited_for_its_turn_on_the_loop_is_not_sent_after_the_deadline(
    write: Write,
) -> None:
    """Once a request has its connection, aiohttp leaves its body to a task of its own."""
    leader = Leader()
    leader.fence.now = partial(next, chain([0.0], repeat(18.0)))
    async with serving() as server, asyncio.timeout(10):
        server.says(OK)
        asked = await attempt(leader, server, write)

    assert asked == ["LeadershipUncertain"]


async def forever() -> None:
    await asyncio.Event().wait()


def test_the_deadline_counts_from_the_start_of_the_last_renewal_that_succeeded() -> None:
    def is_open(fence: Fence) -> bool:
        with suppress(LeadershipUncertain):
            fence.check("PATCH", "/")
            return True
        return False

    async def story() -> list[bool]:
        store, loop = SmallStore(), asyncio.get_running_loop()
        fence = Fence(loop.time)
        candidate = Election(
            store, SetClock(), Candidacy("kube-system", identity="a"), fence=fence, dice=lambda: 0.0
        )
        states = [is_open(fence)]
        leading = asyncio.create_task(candidate.lead(forever))
        await asyncio.sleep(20)
        states.append(is_open(fence))
        store.is_failing = True
        await asyncio.sleep(7.5)
        states.append(is_open(fence))
        await asyncio.sleep(3)
        states.append(is_open(fence))
        await leading
        return states

    assert run(story()) == [False, True, True, False]


def test_a_lease_that_another_holds_closes_the_fence_at_once() -> None:
    async def story() -> None:
        store, fence = SmallStore(), Fence()
        leading = asyncio.create_task(
            Election(store, SetClock(), Candidacy("kube-system", identity="a"), fence=fence).lead(
                forever
            )
        )
        await asyncio.sleep(20)
        lease = store.objects["karpenter-leader-election"]
        await store.replace(LEASE, {**lease, "spec": {**lease["spec"], "holderIdentity": "thief"}})
        await leading
        fence.check("PATCH", "/")

    with pytest.raises(LeadershipUncertain, match="did not send PATCH /"):
        run(story())


class Candidate:
    """A candidate that writes without pause while it leads, in a thread that can be frozen."""

    def __init__(self, served: ServedCluster, name: str) -> None:
        self._served = served
        self._name = name
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[None] | None = None
        self._thread = Thread(target=self._run, daemon=True)
        self.has_thawed = Event()

    def start(self) -> None:
        self._thread.start()

    def freeze(self, seconds: float) -> None:
        def stand_still() -> None:
            time.sleep(seconds)
            self.has_thawed.set()

        self._loop.call_soon_threadsafe(stand_still)

    def stop(self) -> None:
        assert self._task is not None
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join()

    def _run(self) -> None:
        async def live() -> None:
            self._task = asyncio.current_task()
            try:
                await self._live()
            finally:
                # Connections that were closed say so to the loop a moment later.
                await asyncio.sleep(0.1)

        with suppress(asyncio.CancelledError):
            self._loop.run_until_complete(live())
        self._loop.close()

    async def _live(self) -> None:
        fence = Fence()
        access = find_access(kubeconfig=str(self._served.kubeconfig))
        async with (
            Connection(access, rate=None) as own,
            Connection(access, rate=None, fence=fence) as connection,
        ):
            candidacy = Candidacy("default", identity=self._name, timing=TIMING)
            election = Election(own.objects, WallClock(), candidacy, fence=fence)

            async def write_on() -> None:
                writers = [self._write(connection.objects, each) for each in range(8)]
                await asyncio.gather(*writers)

            await election.lead(write_on)
            # A leader that goes on although it has lost is the worst there can be.
            await write_on()

    async def _write(self, objects: KubeApi, writer: int) -> None:
        for number in range(10**9):
            name = f"{self._name}-{writer}-{number}"
            with suppress(LeadershipUncertain):
                await objects.create(NAMESPACE, {"metadata": {"name": name}})
            await asyncio.sleep(0.01)


def written_by(world: World, name: str) -> set[str]:
    names = (each["metadata"]["name"] for each in world.store.list(NAMESPACE))
    return {each for each in names if each.startswith(f"{name}-")}


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(1500):
        if holds():
            return
        await asyncio.sleep(0.02)
    raise TimeoutError


async def test_a_leader_that_stood_still_writes_nothing_once_the_next_leads() -> None:
    async with embedded_world() as world, serve(world) as served:
        first, second = Candidate(served, "first"), Candidate(served, "second")
        first.start()
        await until(lambda: len(written_by(world, "first")) > 8)
        second.start()
        first.freeze(FROZEN_SECONDS)
        await until(lambda: len(written_by(world, "second")) > 8)
        before = written_by(world, "first")
        await until(first.has_thawed.is_set)
        await asyncio.sleep(1)
        after = written_by(world, "first")
        await asyncio.to_thread(first.stop)
        await asyncio.to_thread(second.stop)

    assert after == before
