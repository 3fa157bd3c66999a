import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from karpy.adapters.kube.api import KubeApi
from karpy.adapters.kube.auth import FixedCredentials
from karpy.adapters.kube.proxies import proxy_from_environment
from karpy.adapters.kube.transport import Transport
from karpy.errors import Unreachable
from karpy.model.kinds import NODE
from tests.adapters.kube.certificates import Authority, server_context
from tests.adapters.kube.server import NOBODY, PATIENCE, TIMEOUTS, access_to, json, serving


class Proxy:
    """A proxy that opens tunnels, or says no."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.asked: list[str] = []
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.asked.append(head.splitlines()[0])
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


async def test_a_server_behind_a_proxy_is_reached(tmp_path: Path) -> None:
    authority = Authority()
    context = server_context(authority.sign("server"), tmp_path)
    async with proxying() as proxy, serving(context) as server:
        server.says(json({"metadata": {"name": "n1"}}))
        access = access_to(server, ca_pem=authority.pem, proxy=proxy.url)
        transport = Transport(access, FixedCredentials(NOBODY), timeouts=TIMEOUTS)

        found = await KubeApi(transport).get(NODE, "n1")
        await transport.close()

        assert found == {"metadata": {"name": "n1"}}
        assert proxy.asked == [f"CONNECT 127.0.0.1:{server.port} HTTP/1.1"]


async def test_a_proxy_that_says_no_is_named(tmp_path: Path) -> None:
    context = server_context(Authority().sign("server"), tmp_path)
    async with proxying("407 Proxy Authentication Required") as proxy, serving(context) as server:
        access = access_to(server, proxy=proxy.url)
        transport = Transport(
            access, FixedCredentials(NOBODY), timeouts=TIMEOUTS, patience=PATIENCE
        )

        with pytest.raises(Unreachable, match="the proxy says 407"):
            await KubeApi(transport).get(NODE, "n1")

        await transport.close()


async def test_a_proxy_that_is_not_there_is_named(tmp_path: Path) -> None:
    context = server_context(Authority().sign("server"), tmp_path)
    async with proxying() as proxy:
        gone = proxy.url
    async with serving(context) as server:
        transport = Transport(
            access_to(server, proxy=gone),
            FixedCredentials(NOBODY),
            timeouts=TIMEOUTS,
            patience=PATIENCE,
        )

        with pytest.raises(Unreachable, match=r"the proxy to .* does not answer"):
            await KubeApi(transport).get(NODE, "n1")

        await transport.close()


@pytest.mark.parametrize(
    ("server", "env", "proxy"),
    [
        ("https://api.example:6443", {}, ""),
        ("https://api.example:6443", {"HTTPS_PROXY": "http://p:3128"}, "http://p:3128"),
        ("https://api.example:6443", {"https_proxy": "p:3128"}, "http://p:3128"),
        ("https://api.example:6443", {"HTTP_PROXY": "http://p:3128"}, ""),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": "http://p:3128"}, ""),
        ("https://localhost:6443", {"HTTPS_PROXY": "http://p:3128"}, ""),
    ],
)
def test_the_environment_names_a_proxy(server: str, env: dict[str, str], proxy: str) -> None:
    assert proxy_from_environment(server, env) == proxy


@pytest.mark.parametrize(
    ("server", "no_proxy"),
    [
        ("https://10.0.0.1:443", "example.com, 10.0.0.0/8"),
        ("https://10.0.0.1:443", "10.0.0.1"),
        ("https://api.example:443", "*"),
        ("https://api.example:443", "example"),
        ("https://api.example:443", ".example"),
        ("https://api.example:443", "*.example"),
        ("https://api.example:443", "api.example:443"),
    ],
)
def test_exceptions_need_no_proxy(server: str, no_proxy: str) -> None:
    env = {"HTTPS_PROXY": "http://p:3128", "NO_PROXY": no_proxy}

    assert proxy_from_environment(server, env) == ""


@pytest.mark.parametrize("no_proxy", ["", "ample", "api.example:8443", "10.0.0.0/8", "other"])
def test_exceptions_cover_no_more_than_they_say(no_proxy: str) -> None:
    env = {"HTTPS_PROXY": "http://p:3128", "NO_PROXY": no_proxy}

    assert proxy_from_environment("https://api.example:443", env) == "http://p:3128"
