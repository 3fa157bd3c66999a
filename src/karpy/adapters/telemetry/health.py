"""`/healthz` and `/readyz`, as kubelets and people ask for them."""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from aiohttp import web
from aiohttp.typedefs import Handler

Check: TypeAlias = Callable[[], str]
"""Says why something is not well; empty if it is."""

_OK: Final = "ok"
_FAILED: Final = 500
_NOT_FOUND: Final = 404


def ping() -> str:
    """Be well: whoever can ask gets an answer, so the loop runs."""
    return ""


def health_application(
    ready: Mapping[str, Check], alive: Mapping[str, Check] | None = None
) -> web.Application:
    """
    Serve `/healthz` and `/readyz`, and each check alone as `/readyz/crd`.

    A probe gets 200 if every check is well and 500 if not, with a line for each check then, or if
    it asks for `?verbose`.
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
