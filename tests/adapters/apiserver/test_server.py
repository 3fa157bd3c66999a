import asyncio
import socket
import ssl
from io import BytesIO

import aiohttp
import pytest

from karpy.errors import FileUnwritable, Unreachable
from karpy.sim.world import World
from karpy.wiring.embedded import ServedCluster, serve
from tests.adapters.apiserver.stranger import PODS, Stranger

TOKEN = "0" * 8


@pytest.mark.parametrize(
    "path", ["/healthz", "/livez", "/readyz", "/readyz?verbose", "/livez/ping"]
)
async def test_health_needs_no_token(served: ServedCluster, path: str) -> None:
    async with Stranger(served.url, served.authority) as nobody:
        reply = await nobody.get(path)

    assert (reply.status, reply.body) == (200, "ok")


async def test_the_version_needs_no_token(served: ServedCluster) -> None:
    async with Stranger(served.url, served.authority) as nobody:
        reply = await nobody.get("/version")

    assert (reply.status, reply.body["major"], reply.body["minor"]) == (200, "1", "36")


@pytest.mark.parametrize("path", [PODS, "/", "/api", "/apis", "/openapi/v3", "/api/v1", "/nowhere"])
@pytest.mark.parametrize("token", ["", "wrong"])
async def test_everything_else_needs_a_token(served: ServedCluster, path: str, token: str) -> None:
    async with Stranger(served.url, served.authority, token) as nobody:
        reply = await nobody.get(path)

    assert (reply.status, reply.body["reason"]) == (401, "Unauthorized")


async def test_the_certificate_is_not_taken_on_trust(served: ServedCluster) -> None:
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await session.get(f"{served.url}/healthz")


async def test_the_certificate_is_for_localhost_too(served: ServedCluster) -> None:
    url = served.url.replace("127.0.0.1", "localhost")
    trust = ssl.create_default_context(cadata=served.authority)
    # The server listens on IPv4 only, and `localhost` may be an IPv6 address.
    connector = aiohttp.TCPConnector(ssl=trust, family=socket.AF_INET)

    async with aiohttp.ClientSession(connector=connector) as session:
        response = await session.get(f"{url}/healthz")

    assert response.status == 200


async def test_a_port_that_is_taken_is_an_error(world: World, served: ServedCluster) -> None:
    port = int(served.url.rpartition(":")[2])

    with pytest.raises(Unreachable, match=f"cannot listen on 127.0.0.1:{port}"):
        async with serve(world, port=port):
            pass


async def test_a_kubeconfig_that_cannot_be_written_is_an_error(
    world: World, tmp_path_factory: pytest.TempPathFactory
) -> None:
    nowhere = tmp_path_factory.mktemp("a") / "missing" / "kubeconfig"

    with pytest.raises(FileUnwritable, match="No such file"):
        async with serve(world, kubeconfig=nowhere):
            pass


async def test_the_kubeconfig_is_for_its_owner_and_goes_with_the_server(world: World) -> None:
    async with serve(world, token=TOKEN) as served:
        mode = served.kubeconfig.stat().st_mode & 0o777
        text = served.kubeconfig.read_text()

    assert mode == 0o600
    assert f'"token": "{TOKEN}"' in text
    assert not served.kubeconfig.exists()


async def test_a_server_that_ends_ends_its_watches(world: World) -> None:
    async with serve(world) as served:
        client = Stranger(served.url, served.authority, served.token)
        watching = client.watch(f"{PODS}?watch=1")
        await watching.__aenter__()
        begun = asyncio.get_running_loop().time()

    assert asyncio.get_running_loop().time() - begun < 5
    await client.__aexit__()


async def test_a_bug_is_reported_to_client_and_server(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistakes: list[BaseException] = []
    monkeypatch.setattr(world.store, "list", lambda *_: 1 / 0)

    async with (
        serve(world, report=mistakes.append) as served,
        Stranger(served.url, served.authority, served.token) as client,
    ):
        reply = await client.get(PODS)

    assert (reply.status, reply.body["reason"]) == (500, "InternalError")
    assert "ZeroDivisionError" in reply.message
    assert [type(each) for each in mistakes] == [ZeroDivisionError]


async def test_a_body_may_not_be_endless(client: Stranger) -> None:
    reply = await client.ask("POST", PODS, stream=BytesIO(b" " * 4_000_000))

    assert (reply.status, reply.body["reason"]) == (413, "RequestEntityTooLarge")
