import asyncio

import pytest

from karpy.adapters.kube.access import User
from karpy.adapters.kube.api import KubeApi
from karpy.adapters.kube.auth import FixedCredentials, RequestCredentials
from karpy.adapters.kube.retry import TokenBucket
from karpy.errors import (
    AnswerMalformed,
    Forbidden,
    ServerFault,
    Throttled,
    Unauthorized,
    Unreachable,
)
from karpy.model.kinds import NODE, POD
from karpy.ports.objects import Patch, PatchType
from tests.adapters.kube.server import (
    Answer,
    ScriptedServer,
    drop,
    failure,
    json,
    text,
    transport_to,
)

OK = json({"metadata": {"name": "n1"}})


class Rotating:
    """Credentials whose first token is refused."""

    def __init__(self, *tokens: str) -> None:
        self.tokens = list(tokens)

    async def identity(self) -> RequestCredentials:
        return RequestCredentials(f"Bearer {self.tokens[0]}")

    async def renewed(self, refused: RequestCredentials) -> RequestCredentials:
        assert refused == await self.identity()
        self.tokens = self.tokens[1:] or self.tokens
        return await self.identity()


@pytest.mark.parametrize(
    "trouble",
    [
        failure(500, "InternalError"),
        text("bad gateway", 502),
        failure(429, "TooManyRequests"),
        text("", 503, Retry_After="0"),
        drop,
    ],
)
async def test_a_read_is_repeated_while_trouble_passes(
    server: ScriptedServer, api: KubeApi, trouble: Answer
) -> None:
    server.says(trouble, trouble, OK)

    found = await api.get(NODE, "n1")

    assert found == {"metadata": {"name": "n1"}}


async def test_retries_end_after_a_number_of_tries(server: ScriptedServer, api: KubeApi) -> None:
    server.says(failure(503, "ServiceUnavailable", "warming up"))

    with pytest.raises(ServerFault, match="warming up"):
        await api.get(NODE, "n1")

    assert len(server.asked) == 3


async def test_a_refusal_is_not_retried(server: ScriptedServer, api: KubeApi) -> None:
    server.says(failure(403, "Forbidden"))

    with pytest.raises(Forbidden):
        await api.get(NODE, "n1")

    assert len(server.asked) == 1


async def test_a_create_with_an_unknown_outcome_is_not_repeated(
    server: ScriptedServer, api: KubeApi
) -> None:
    server.says(failure(500, "InternalError"), OK)

    with pytest.raises(ServerFault):
        await api.create(NODE, {"metadata": {"name": "n1"}})

    assert len(server.asked) == 1


async def test_a_throttled_create_is_repeated(server: ScriptedServer, api: KubeApi) -> None:
    server.says(failure(429, "TooManyRequests", retryAfterSeconds=0), OK)

    await api.create(NODE, {"metadata": {"name": "n1"}})

    assert len(server.asked) == 2


async def test_an_eviction_refused_by_a_budget_is_raised_at_once(
    server: ScriptedServer, api: KubeApi
) -> None:
    server.says(failure(429, "TooManyRequests"), OK)
    eviction = {"metadata": {"name": "web-1", "namespace": "shop"}}

    with pytest.raises(Throttled):
        await api.create(POD, eviction, subresource="eviction")

    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("kind", "count"), [(PatchType.MERGE, 2), (PatchType.APPLY, 2), (PatchType.JSON, 1)]
)
async def test_only_idempotent_patches_are_repeated(
    server: ScriptedServer, api: KubeApi, kind: PatchType, count: int
) -> None:
    server.says(drop, OK)

    await asyncio.gather(api.patch(NODE, "n1", Patch(kind, {})), return_exceptions=True)

    assert len(server.asked) == count


async def test_a_very_long_retry_after_is_raised(server: ScriptedServer, api: KubeApi) -> None:
    server.says(text("", 503, Retry_After="3600"))

    with pytest.raises(ServerFault) as raised:
        await api.get(NODE, "n1")

    assert raised.value.retry_after == 3600
    assert len(server.asked) == 1


async def test_refused_credentials_are_renewed_once(server: ScriptedServer) -> None:
    server.says(failure(401, "Unauthorized"), OK)
    transport = transport_to(server, Rotating("old", "new"))

    await KubeApi(transport).get(NODE, "n1")
    await transport.close()

    shown = [each.headers["Authorization"] for each in server.asked]
    assert shown == ["Bearer old", "Bearer new"]


@pytest.mark.parametrize(("tokens", "count"), [(("old",), 1), (("old", "new"), 2)])
async def test_credentials_that_stay_refused_are_unauthorized(
    server: ScriptedServer, tokens: tuple[str, ...], count: int
) -> None:
    server.says(failure(401, "Unauthorized"))
    transport = transport_to(server, Rotating(*tokens))

    with pytest.raises(Unauthorized):
        await KubeApi(transport).get(NODE, "n1")
    await transport.close()

    assert len(server.asked) == count


async def test_requests_carry_user_agent_and_impersonation(server: ScriptedServer) -> None:
    server.says(OK)
    user = User(basic=("admin", "x:y"), headers=(("Impersonate-User", "jane"),))
    transport = transport_to(server, FixedCredentials(user))

    await KubeApi(transport).get(NODE, "n1")
    await transport.close()

    headers = server.asked[0].headers
    assert headers["Authorization"] == "Basic YWRtaW46eDp5"
    assert headers["Impersonate-User"] == "jane"
    assert headers["User-Agent"].startswith("karpy/")


async def test_requests_beyond_the_rate_wait(server: ScriptedServer) -> None:
    server.says(OK)
    transport = transport_to(server, limit=TokenBucket(qps=20, burst=2))
    began = asyncio.get_running_loop().time()

    await asyncio.gather(*(KubeApi(transport).get(NODE, "n1") for _ in range(4)))
    await transport.close()

    assert asyncio.get_running_loop().time() - began >= 0.09


async def test_an_address_without_a_server_is_unreachable(
    server: ScriptedServer, api: KubeApi
) -> None:
    await server.stop()

    with pytest.raises(Unreachable, match=f"no connection to {server.url}"):
        await api.get(NODE, "n1")

    await server.start()


async def test_a_server_that_does_not_speak_http_is_named() -> None:
    async def babble(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH\r\n\r\n")
        await writer.drain()
        writer.close()

    other = await asyncio.start_server(babble, "127.0.0.1", 0)
    server = ScriptedServer()
    server.port = other.sockets[0].getsockname()[1]
    transport = transport_to(server)

    with pytest.raises(AnswerMalformed, match="does not speak HTTP"):
        await KubeApi(transport).get(NODE, "n1")

    await transport.close()
    other.close()
    await other.wait_closed()


class Recorder:
    """Records requests and their statuses."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str, int]] = []

    def __call__(self, method: str, path: str, status: int, seconds: float) -> None:
        assert seconds >= 0
        self.heard.append((method, path, status))


async def test_every_request_and_its_status_is_reported(server: ScriptedServer) -> None:
    recorder = Recorder()
    transport = transport_to(server, on_answer=recorder)
    server.says(failure(500, "InternalError"), OK)

    await KubeApi(transport).get(NODE, "n1")
    await transport.close()

    assert recorder.heard == [("GET", "/api/v1/nodes/n1", status) for status in (500, 200)]


async def test_a_request_without_an_answer_is_reported(server: ScriptedServer) -> None:
    recorder = Recorder()
    transport = transport_to(server, on_answer=recorder)
    server.says(drop)

    with pytest.raises(Unreachable):
        await KubeApi(transport).create(NODE, {"metadata": {"name": "n1"}})
    await transport.close()

    assert recorder.heard == [("POST", "/api/v1/nodes", 0)]
