"""Small HTTP servers for those who watch us."""

import asyncio
import errno
import socket
from types import TracebackType
from typing import Final, Self

from aiohttp import web

from karpy.adapters.telemetry.metrics import CONTENT_TYPE, Metrics
from karpy.errors import OptionInvalid

_SECONDS_TO_END: Final = 1.0
_BACKLOG: Final = 128
_NOT_OURS: Final = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})
"""What a machine says of an address that it does not have."""


class Site:
    """
    Serves an application for as long as it is entered; port 0 is any free one.

    Without a host it is served on all addresses. Requests under way may end when it is left. `flag`
    is what a user would change the port with.
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
    """Open one socket for both kinds of addresses, or for IPv4 where there is no other."""
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
        # In a thread: a hundred thousand series take a second, and nobody should wait for that.
        body = await asyncio.to_thread(metrics.prepare())
        response = web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})
        response.enable_compression()
        return response

    application = web.Application()
    application.router.add_get("/metrics", answer)
    return application
