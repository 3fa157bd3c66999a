"""A proxy on loopback."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Proxy:
    """Opens tunnels, or refuses."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.heads: list[str] = []
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.heads.append(head)
        writer.write(f"HTTP/1.1 {self.answer}\r\n\r\n".encode())
        if self.answer.startswith("200"):
            host, _, port = head.split()[1].partition(":")
            there, back = await asyncio.open_connection(host, int(port))
            await asyncio.gather(_pump(reader, back), _pump(there, writer))
        writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
    writer.close()


@asynccontextmanager
async def proxying(answer: str = "200 OK") -> AsyncIterator[Proxy]:
    proxy = Proxy(answer)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        server.close()
        await server.wait_closed()
