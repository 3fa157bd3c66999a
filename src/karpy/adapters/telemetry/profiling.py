"""`/debug/pprof`: what the process is doing right now; off unless asked for, and on loopback."""

import asyncio
import cProfile
import faulthandler
import io
import pstats
import re
from tempfile import TemporaryFile
from typing import Final

from aiohttp import web

# Differs: Karpenter serves profiles on the metrics port, to every pod that can reach it.
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


def profiling_application() -> web.Application:
    """Serve profiles as text, under the paths that Go programs have them."""
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
        # From Python 3.12 on another tool of this process may be profiling it.
        return web.Response(text=_BUSY, status=409)
    try:
        await asyncio.sleep(seconds)
    finally:
        profile.disable()
    text = io.StringIO()
    pstats.Stats(profile, stream=text).sort_stats("cumulative").print_stats(_ROWS)
    return web.Response(text=text.getvalue())


def _seconds(text: str) -> float | None:
    """Read how long to look; None if it is no number, or too long."""
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
