"""The API server on a socket: TLS on loopback, with a bearer token."""

import asyncio
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import Final, Self

from aiohttp import web

from karpy.adapters.apiserver.application import HttpApi, Report
from karpy.adapters.apiserver.backend import Backend
from karpy.adapters.apiserver.credentials import make_identity
from karpy.adapters.apiserver.kubeconfigs import write_kubeconfig
from karpy.errors import FileUnwritable, Unreachable
from karpy.ports.clock import Clock

HOST: Final = "127.0.0.1"
_SECONDS_TO_END: Final = 1.0
_LINE_MAX: Final = 2**20
"""Longest path with query, and longest header, in bytes, as in kube-apiserver."""


class ApiServer:
    """
    Serves a backend on loopback while the context is open.

    Port 0 picks a free port. A request with the token may do everything; without the token only
    health and version are served.
    """

    def __init__(
        self,
        backend: Backend,
        clock: Clock,
        *,
        port: int = 0,
        token: str = "",
        report: Report | None = None,
    ) -> None:
        self.token = token or token_hex(16)
        self._port = port
        self._identity = make_identity()
        http_api = HttpApi(backend, clock, self.token, report)
        self._runner = web.AppRunner(
            http_api.application(),
            access_log=None,
            handler_cancellation=True,
            max_line_size=_LINE_MAX,
            max_field_size=_LINE_MAX,
            shutdown_timeout=_SECONDS_TO_END,
        )

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        site = web.TCPSite(self._runner, HOST, self._port, ssl_context=self._identity.context())
        try:
            await site.start()
        except (OSError, OverflowError) as error:
            await self._runner.cleanup()
            raise Unreachable(
                f"cannot listen on {HOST}:{self._port}: {error}",
                hint="choose another port, or none to get one that is free",
            ) from error
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._end()

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"https://{HOST}:{self._port}"

    @property
    def authority(self) -> str:
        """The authority of the server's certificate, as PEM."""
        return self._identity.authority

    async def _end(self) -> None:
        server = self._runner.server
        open_ones = [each.transport for each in server.connections] if server else []
        await self._runner.cleanup()
        for transport in open_ones:
            # TLS waits for the client to confirm the close, which an idle client does not do.
            if transport is not None:
                transport.abort()
        await asyncio.sleep(0)

    def write_kubeconfig(self, path: Path) -> None:
        """Write a kubeconfig; raise FileUnwritable."""
        try:
            write_kubeconfig(path, server=self.url, authority=self.authority, token=self.token)
        except OSError as error:
            raise FileUnwritable(path=str(path), problem=error.strerror or str(error)) from error
