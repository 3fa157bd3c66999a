"""Until when a leader may write: a moment on a clock that goes on while the process is frozen."""

import time
from collections.abc import Callable
from math import inf
from typing import Final

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from aiohttp.connector import Connection

from karpy.errors import LeadershipUncertain

_CLOCK: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_READS: Final = frozenset({"GET", "HEAD", "OPTIONS", "CONNECT"})


def elapsed() -> float:
    """Return seconds that go on while the process is stopped and while the machine sleeps."""
    return time.clock_gettime(_CLOCK)


class Fence:
    """
    Lets writes pass until the moment that the last renewal of the lease has moved it to.

    An election moves it, and each connection of the leader asks it right before a write is sent. It
    is closed until the lease is held for the first time.
    """

    def __init__(self, now: Callable[[], float] = elapsed) -> None:
        self.now = now
        self._open_until = -inf

    def open(self, until: float) -> None:
        """Let writes pass until a moment of its own clock."""
        self._open_until = until

    def close(self) -> None:
        """Let no write pass from now on."""
        self._open_until = -inf

    def check(self, method: str, path: str) -> None:
        """Raise LeadershipUncertain unless a write may be sent now."""
        if self.now() >= self._open_until:
            raise LeadershipUncertain(
                f"did not send {method} {path}: the lease was not renewed in time, "
                "another replica may lead by now"
            )


def fenced_request(fence: Fence) -> type[aiohttp.ClientRequest]:
    """Return a request that asks the fence right before its bytes go, each time it is sent."""

    class FencedRequest(aiohttp.ClientRequest):
        async def send(self, conn: Connection) -> aiohttp.ClientResponse:
            # Whatever a write waited for is over here: its turn, credentials, a connection, the
            # first try of one that aiohttp sends again by itself.
            self._check()
            return await super().send(conn)

        async def write_bytes(
            self,
            writer: AbstractStreamWriter,
            conn: Connection,
            content_length: int | None = None,
        ) -> None:
            # Where a request has a body its headers wait for that, and the body for its turn on
            # the event loop: the process may have stood still in between.
            try:
                self._check()
            except LeadershipUncertain as error:
                if conn.protocol is not None:
                    # The request that waits for the answer gets the reason.
                    conn.protocol.set_exception(error)
                return
            await super().write_bytes(writer, conn, content_length)

        def _check(self) -> None:
            if self.method not in _READS:
                fence.check(self.method, self.url.path)

    return FencedRequest
