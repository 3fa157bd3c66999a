"""Until when a leader may write, on a clock that continues while the process is frozen."""

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
    """Return seconds that also count while the process is stopped and while the machine sleeps."""
    return time.clock_gettime(_CLOCK)


class Fence:
    """
    Allows writes until the deadline that the last renewal of the lease has set.

    An election moves the deadline, and each connection of the leader checks it right before a
    write is sent. The fence is closed until the lease is held for the first time.
    """

    def __init__(self, now: Callable[[], float] = elapsed) -> None:
        self.now = now
        self._open_until = -inf

    def open(self, until: float) -> None:
        """Allow writes until a moment of the fence's clock."""
        self._open_until = until

    def close(self) -> None:
        """Allow no write from now on."""
        self._open_until = -inf

    def check(self, method: str, path: str) -> None:
        """Raise LeadershipUncertain unless a write may be sent now."""
        if self.now() >= self._open_until:
            raise LeadershipUncertain(
                f"did not send {method} {path}: the lease was not renewed in time, "
                "another replica may lead by now"
            )


def fenced_request(fence: Fence) -> type[aiohttp.ClientRequest]:
    """Return a request class that checks the fence right before its bytes are sent, every time."""

    class FencedRequest(aiohttp.ClientRequest):
        async def send(self, conn: Connection) -> aiohttp.ClientResponse:
            # After this line a write waits for nothing: not for the rate, for credentials, for a
            # connection or for a first try, which aiohttp may repeat by itself.
            self._check()
            return await super().send(conn)

        async def write_bytes(
            self,
            writer: AbstractStreamWriter,
            conn: Connection,
            content_length: int | None = None,
        ) -> None:
            # Headers of a request with a body are sent with the body, in a later turn of the event
            # loop: the process may have been frozen in between.
            try:
                self._check()
            except LeadershipUncertain as error:
                if conn.protocol is not None:
                    # Raise the error where the request awaits its answer.
                    conn.protocol.set_exception(error)
                return
            await super().write_bytes(writer, conn, content_length)

        def _check(self) -> None:
            if self.method not in _READS:
                fence.check(self.method, self.url.path)

    return FencedRequest
