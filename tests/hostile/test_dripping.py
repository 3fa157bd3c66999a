"""Servers whose answers drip byte by byte, or never end: calls end all the same."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
from aiohttp import web

from karpy.adapters.kube import transport as transport_module
from karpy.adapters.kube.api import KubeApi
from karpy.adapters.kube.auth import FixedCredentials
from karpy.adapters.kube.calls import Call
from karpy.adapters.kube.transport import Timeouts, Transport
from karpy.errors import AnswerMalformed, Unreachable
from karpy.model.kinds import NODE, POD
from tests.adapters.kube.server import (
    NOBODY,
    PATIENCE,
    Answer,
    ScriptedServer,
    access_to,
    json,
    serving,
    stream,
)

LANES = 32
WHOLE = 1.0
OK = json({"metadata": {"name": "n1"}})
WATCH = Call("GET", "/api/v1/pods", "watch pods", (("watch", "true"),))


def dripping(status: int = 200, *, piece: bytes = b" ", pause: float = 0.05) -> Answer:
    """Answer without an end."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=status)
        response.enable_chunked_encoding()
        await response.prepare(request)
        with suppress(ConnectionError):
            while True:
                await response.write(piece)
                await asyncio.sleep(pause)
        return response

    return answer


async def drip_the_head(request: web.Request) -> web.StreamResponse:
    """Answer with headers without an end."""
    assert request.transport is not None
    request.transport.write(b"HTTP/1.1 200 OK\r\n")
    while not request.transport.is_closing():
        request.transport.write(b"X-More: more\r\n")
        await asyncio.sleep(0.05)
    return web.Response()


def transport_for(server: ScriptedServer) -> Transport:
    timeouts = Timeouts(connect=5.0, silent=20.0, total=WHOLE)
    access = access_to(server)
    return Transport(access, FixedCredentials(NOBODY), patience=PATIENCE, timeouts=timeouts)


async def failure_of(ask: Callable[[Transport], Awaitable[object]], answer: Answer) -> Exception:
    """Return what a call fails with; it must do so within ten times its limit."""
    async with serving() as server, asyncio.timeout(10 * WHOLE):
        server.says(answer)
        transport = transport_for(server)
        try:
            await ask(transport)
        except (Unreachable, AnswerMalformed) as error:
            return error
        finally:
            await transport.close()
    raise AssertionError(answer)


async def get(transport: Transport) -> object:
    return await KubeApi(transport).get(NODE, "n1")


async def watch(transport: Transport) -> object:
    return [line async for line in transport.lines(WATCH, 20.0)]


async def test_answers_that_drip_free_their_lanes() -> None:
    async with serving() as server, asyncio.timeout(20 * WHOLE):
        server.says(*[dripping()] * LANES, OK)
        transport = transport_for(server)
        api = KubeApi(transport)
        waiting = [asyncio.create_task(api.get(NODE, "n1")) for _ in range(LANES)]
        await asyncio.sleep(WHOLE / 4)
        got = await api.get(NODE, "n1")
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        await transport.close()

    assert got == {"metadata": {"name": "n1"}}
    assert {type(each) for each in outcomes} == {Unreachable}


@pytest.mark.parametrize("ask", [get, watch])
@pytest.mark.parametrize("answer", [dripping(), dripping(500), drip_the_head])
async def test_whatever_drips_a_call_ends(
    ask: Callable[[Transport], Awaitable[object]], answer: Answer
) -> None:
    error = await failure_of(ask, answer)

    assert "did not answer in full within 1 s" in str(error)


async def test_a_call_that_took_all_its_time_is_not_tried_again() -> None:
    async with serving() as server:
        server.says(dripping(), OK)
        transport = transport_for(server)
        with pytest.raises(Unreachable):
            await KubeApi(transport).get(NODE, "n1")
        await transport.close()

    assert len(server.asked) == 1


async def test_a_watch_whose_lines_are_whole_may_last_longer() -> None:
    lines = dripping(piece=b'{"type":"BOOKMARK"}\n', pause=WHOLE / 5)
    async with serving() as server:
        server.says(lines)
        transport = transport_for(server)
        stream_of_lines = transport.lines(WATCH, 20.0)
        got = [await anext(stream_of_lines) for _ in range(10)]
        await stream_of_lines.aclose()
        await transport.close()

    assert got == [b'{"type":"BOOKMARK"}'] * 10


@pytest.mark.parametrize("status", [200, 500])
async def test_an_answer_without_end_does_not_take_all_memory(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport_module, "_ANSWER_BYTES_MAX", 2**20)

    error = await failure_of(get, dripping(status, piece=b" " * 2**16, pause=0.0))

    assert "cannot get nodes `n1`: the answer has more than 1,048,576 bytes" in str(error)


async def test_a_silent_server_is_given_up_on() -> None:
    async with serving() as server:
        server.says(stream(then="hang"))
        transport = transport_for(server)
        with pytest.raises(Unreachable):
            await KubeApi(transport).list(POD)
        await transport.close()
