"""A plain HTTP client, independent of Karpy's client for Kubernetes."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from io import BytesIO
from typing import Any, NamedTuple, Self

import aiohttp

from karpy.codec.fields import JsonObject

SOON = 10.0


class Reply(NamedTuple):
    """The answer to a request."""

    status: int
    body: Any
    headers: Mapping[str, str]

    @property
    def message(self) -> str:
        return str(self.body["message"])


class Lines:
    """The lines of a watch, read with a timeout."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def next(self) -> JsonObject:
        async with asyncio.timeout(SOON):
            line = await self._response.content.readline()
        assert line, "the watch has ended"
        event: JsonObject = json.loads(line)
        return event

    async def take(self, count: int) -> list[JsonObject]:
        return [await self.next() for _ in range(count)]

    async def rest(self) -> list[JsonObject]:
        """Read until the server ends the answer."""
        async with asyncio.timeout(SOON):
            text = await self._response.content.read()
        return [json.loads(line) for line in text.splitlines()]


class Stranger:
    """Sends requests over TLS, with a token."""

    def __init__(self, url: str, authority: str, token: str = "") -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._url = url
        self._session = aiohttp.ClientSession(
            headers=headers,
            connector=aiohttp.TCPConnector(ssl=ssl.create_default_context(cadata=authority)),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        data: bytes | None = None,
        stream: BytesIO | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send a request; a body goes as JSON unless `data` is given."""
        sent = (stream or data) if body is None else json.dumps(body).encode()
        given = {"Content-Type": "application/json"} if sent is not None else {}
        async with self._session.request(
            method, self._url + path, data=sent, headers={**given, **(headers or {})}
        ) as response:
            text = await response.read()
            is_json = response.content_type == "application/json"
            return Reply(
                response.status, json.loads(text) if is_json else text.decode(), response.headers
            )

    async def get(self, path: str, accept: str = "application/json") -> Reply:
        return await self.ask("GET", path, headers={"Accept": accept})

    async def post(self, path: str, body: object) -> Reply:
        return await self.ask("POST", path, body)

    async def post_all(self, path: str, *bodies: object) -> None:
        for body in bodies:
            reply = await self.post(path, body)
            assert reply.status == 201, reply.message

    async def patch(self, path: str, body: object, media: str) -> Reply:
        return await self.ask("PATCH", path, body, headers={"Content-Type": media})

    @asynccontextmanager
    async def watch(self, path: str, accept: str = "application/json") -> AsyncIterator[Lines]:
        async with self._session.get(self._url + path, headers={"Accept": accept}) as response:
            assert response.status == 200, await response.text()
            yield Lines(response)


TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
NODE_POOLS = "/apis/karpenter.sh/v1/nodepools"


def config_map(name: str, **data: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def pod(name: str, **spec: object) -> JsonObject:
    containers = [{"name": "main", "image": "registry.example/app:1"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": containers, **spec},
    }


def node_pool(name: str, **spec: object) -> JsonObject:
    template = {
        "spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "any"},
            "requirements": [{"key": "kubernetes.io/arch", "operator": "Exists"}],
        }
    }
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {"template": template, **spec},
    }
