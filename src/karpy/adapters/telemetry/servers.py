"""HTTP servers for metrics, health checks and profiles."""

import asyncio
import cProfile
import errno
import faulthandler
import io
import pstats
import re
import socket
from tempfile import TemporaryFile
from types import TracebackType
from typing import Final, Self

from aiohttp import web

from karpy.adapters.telemetry.metrics import CONTENT_TYPE, Metrics
from karpy.errors import OptionInvalid

_SECONDS_TO_END: Final = 1.0
_BACKLOG: Final = 128
_NOT_OURS: Final = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})
"""Errors of the socket for an address that the machine does not have."""
# Differs: profiling: Karpenter serves profiles on the metrics port to every pod that can reach it;
# Karpy serves them on loopback alone, because profiles show what the process does.
HOST: Final = "127.0.0.1"
_SECONDS: Final = "30"
_SECONDS_MAX: Final = 300.0
_DECIMAL: Final = re.compile(r"[0-9]{1,4}(\.[0-9]{1,3})?")
_ROWS: Final = 60
_BUSY: Final = "a profile is under way; try again later\n"
_INDEX: Final = """\
/debug/pprof/profile?seconds=30  where the time of the event loop goes
/debug/pprof/goroutine           what every task and thread waits for
"""


class HttpServer:
    """
    A context manager that serves an application; port 0 chooses any free port.

    Without a host it listens on all addresses. On exit, requests under way may end. `flag` is the
    option that sets the port, for the error message.
    """

    def __init__(
        self, application: web.Application, port: int, *, flag: str, host: str = ""
    ) -> None:
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=_SECONDS_TO_END)
        self._flag = flag
        self._host = host
        self.port = port

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        try:
            await web.SockSite(self._runner, self._listen()).start()
        except (OSError, OverflowError) as error:
            await self._runner.cleanup()
            raise self._why_not(error) from error
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._runner.cleanup()

    def _listen(self) -> socket.socket:
        if not self._host:
            return _listen_everywhere(self.port)
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        return socket.create_server((self._host, self.port), family=family, backlog=_BACKLOG)

    def _why_not(self, error: OSError | OverflowError) -> OptionInvalid:
        problem = getattr(error, "strerror", None) or str(error)
        if self._host and getattr(error, "errno", 0) in _NOT_OURS:
            return OptionInvalid(
                name="--bind-address",
                problem=f"is {self._host}, where we cannot listen: {problem}",
                hint="choose an address of this machine, or none to listen on all of them",
            )
        return OptionInvalid(
            name=self._flag,
            problem=f"is {self.port}, where we cannot listen: {problem}",
            hint="choose another port, or end the program that has this one",
        )


def _listen_everywhere(port: int) -> socket.socket:
    """Open one socket for IPv6 and IPv4, or for IPv4 on a machine without IPv6."""
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(
                ("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=_BACKLOG
            )
        except OSError as error:
            if error.errno not in _NOT_OURS:
                raise
    return socket.create_server(("", port), backlog=_BACKLOG)


def metrics_application(metrics: Metrics) -> web.Application:
    """Serve `/metrics`."""

    async def answer(_request: web.Request) -> web.Response:
        # In a thread: a hundred thousand series take a second, too long for the event loop.
        body = await asyncio.to_thread(metrics.prepare())
        response = web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})
        response.enable_compression()
        return response

    application = web.Application()
    application.router.add_get("/metrics", answer)
    return application


def profiling_application() -> web.Application:
    """Serve profiles as text, under the paths of Go's pprof."""
    turn = asyncio.Lock()

    async def profile(request: web.Request) -> web.Response:
        seconds = _seconds(request.query.get("seconds", _SECONDS))
        if seconds is None:
            problem = f"seconds must be a number from 0 to {_SECONDS_MAX:.0f}\n"
            return web.Response(text=problem, status=400)
        if turn.locked():
            return web.Response(text=_BUSY, status=409)
        async with turn:
            return await _profile(seconds)

    application = web.Application()
    application.router.add_get("/debug/pprof/", _index)
    application.router.add_get("/debug/pprof/profile", profile)
    application.router.add_get("/debug/pprof/goroutine", _stacks)
    return application


async def _index(_request: web.Request) -> web.Response:
    return web.Response(text=_INDEX)


async def _profile(seconds: float) -> web.Response:
    profile = cProfile.Profile()
    try:
        profile.enable()
    except ValueError:
        # Since Python 3.12, `enable` fails while another tool profiles this process.
        return web.Response(text=_BUSY, status=409)
    try:
        await asyncio.sleep(seconds)
    finally:
        profile.disable()
    text = io.StringIO()
    pstats.Stats(profile, stream=text).sort_stats("cumulative").print_stats(_ROWS)
    return web.Response(text=text.getvalue())


def _seconds(text: str) -> float | None:
    """Read the duration of a profile; None if it is not a number, or too long."""
    if not _DECIMAL.fullmatch(text):
        return None
    seconds = float(text)
    return seconds if seconds <= _SECONDS_MAX else None


async def _stacks(_request: web.Request) -> web.Response:
    text = io.StringIO()
    for task in sorted(asyncio.all_tasks(), key=lambda each: each.get_name()):
        task.print_stack(file=text)
    with TemporaryFile("w+b") as threads:
        faulthandler.dump_traceback(threads, all_threads=True)
        threads.seek(0)
        text.write(threads.read().decode(errors="replace"))
    return web.Response(text=text.getvalue())
