"""`/healthz` and `/readyz`, and the check that controllers make progress."""

import time
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from aiohttp import web
from aiohttp.typedefs import Handler

from karpy.ports.observers import Observer, ReconcileResult

Check: TypeAlias = Callable[[], str]
"""Returns why a check fails; empty if it passes."""
_OK: Final = "ok"
_FAILED: Final = 500
_NOT_FOUND: Final = 404
PATIENCE_SECONDS: Final = 300.0
"""A controller is stuck if it has work and finishes no reconcile for this time."""


def ping() -> str:
    """Pass always: an answer proves that the event loop runs."""
    return ""


def health_application(
    ready: Mapping[str, Check], alive: Mapping[str, Check] | None = None
) -> web.Application:
    """
    Serve `/healthz` and `/readyz`, and each check alone under its name, such as `/readyz/crd`.

    A probe gets 200 if every check passes, else 500. After a failure, and with `?verbose`, the
    answer has a line for each check.
    """
    application = web.Application()
    for path, checks in {
        "/healthz": alive or {"ping": ping},
        "/readyz": {**ready, "readyz": ping},
    }.items():
        application.router.add_get(path, _all_of(path, checks))
        application.router.add_get(path + "/{check}", _one_of(checks))
    return application


def _all_of(path: str, checks: Mapping[str, Check]) -> Handler:
    name = path.removeprefix("/")

    async def answer(request: web.Request) -> web.Response:
        problems = {check: ask() for check, ask in checks.items()}
        is_well = not any(problems.values())
        if is_well and "verbose" not in request.query:
            return web.Response(text=_OK)
        lines = [
            f"[-]{check} failed: {problem}" if problem else f"[+]{check} ok"
            for check, problem in problems.items()
        ]
        lines.append(f"{name} check {'passed' if is_well else 'failed'}")
        return web.Response(text="\n".join(lines) + "\n", status=200 if is_well else _FAILED)

    return answer


def _one_of(checks: Mapping[str, Check]) -> Handler:
    async def answer(request: web.Request) -> web.Response:
        check = checks.get(request.match_info["check"])
        if check is None:
            return web.Response(text=f"use one of: {', '.join(checks)}\n", status=_NOT_FOUND)
        problem = check()
        return web.Response(text=problem or _OK, status=_FAILED if problem else 200)

    return answer


class ProgressCheck:
    """A check that every controller makes progress."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._watched: dict[str, _Watched] = {}

    def of(self, controller: str, observer: Observer) -> Observer:
        """Return an observer of a controller that passes all calls on to the given one."""
        watched = self._watched[controller] = _Watched(observer, self._now)
        return watched

    def check(self) -> str:
        """Name the controllers that are stuck; empty if none is."""
        stuck = [
            f"{controller} has finished nothing for {idle:.0f} s, with {work} at work or waiting"
            for controller, watched in sorted(self._watched.items())
            for idle, work in [watched.backlog()]
            if idle > PATIENCE_SECONDS
        ]
        return "; ".join(stuck)


class _Watched:
    """The port Observer: remembers open keys, and when the last reconcile finished."""

    def __init__(self, observer: Observer, now: Callable[[], float]) -> None:
        self._observer = observer
        self._now = now
        self._open: dict[str, float] = {}
        """When each key was queued that is not reconciled yet, the oldest first."""
        self._finished = 0.0

    def backlog(self) -> tuple[float, int]:
        """Return for how many seconds open keys saw no reconcile finish, and their number."""
        if not self._open:
            return 0.0, 0
        since = next(iter(self._open.values()))
        return self._now() - max(since, self._finished), len(self._open)

    def set_workers(self, workers: int) -> None:
        self._observer.set_workers(workers)

    def add(self, key: str) -> None:
        self._open.setdefault(key, self._now())
        self._observer.add(key)

    def take(self, key: str) -> None:
        self._open.setdefault(key, self._now())
        self._observer.take(key)

    def finish(self, key: str, result: ReconcileResult) -> None:
        self._open.pop(key, None)
        self._finished = self._now()
        self._observer.finish(key, result)

    def put_off(self, key: str) -> None:
        self._observer.put_off(key)
