"""`/debug/pprof`: what the process is doing right now; off unless asked for."""

import asyncio
import cProfile
import faulthandler
import io
import pstats
from tempfile import TemporaryFile
from typing import Final

from aiohttp import web

_SECONDS: Final = 30.0
_SECONDS_MAX: Final = 300.0
_ROWS: Final = 60
_INDEX: Final = """\
/debug/pprof/profile?seconds=30  where the time of the event loop goes
/debug/pprof/goroutine           what every task and thread waits for
"""


def add_profiling(application: web.Application) -> None:
    """Serve profiles as text, under the paths that Go programs have them."""
    application.router.add_get("/debug/pprof/", _index)
    application.router.add_get("/debug/pprof/profile", _profile)
    application.router.add_get("/debug/pprof/goroutine", _stacks)


async def _index(_request: web.Request) -> web.Response:
    return web.Response(text=_INDEX)


async def _profile(request: web.Request) -> web.Response:
    try:
        seconds = float(request.query.get("seconds", _SECONDS))
    except ValueError:
        return web.Response(text="seconds must be a number\n", status=400)
    profile = cProfile.Profile()
    try:
        profile.enable()
    except ValueError:
        return web.Response(text="somebody else is profiling now; try again later\n", status=409)
    try:
        await asyncio.sleep(min(max(seconds, 0.0), _SECONDS_MAX))
    finally:
        profile.disable()
    text = io.StringIO()
    pstats.Stats(profile, stream=text).sort_stats("cumulative").print_stats(_ROWS)
    return web.Response(text=text.getvalue())


async def _stacks(_request: web.Request) -> web.Response:
    text = io.StringIO()
    for task in sorted(asyncio.all_tasks(), key=lambda each: each.get_name()):
        task.print_stack(file=text)
    with TemporaryFile("w+b") as threads:
        faulthandler.dump_traceback(threads, all_threads=True)
        threads.seek(0)
        text.write(threads.read().decode(errors="replace"))
    return web.Response(text=text.getvalue())
