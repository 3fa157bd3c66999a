"""Raw HTTP requests, so that malformed ones can be sent, with the expected answers."""

import asyncio
import json
import ssl
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from karpy.codec.fields import JsonObject

JSON: Final = {"Content-Type": "application/json"}
YAML: Final = {"Content-Type": "application/yaml"}
MERGE: Final = {"Content-Type": "application/merge-patch+json"}
STRATEGIC: Final = {"Content-Type": "application/strategic-merge-patch+json"}
OPERATIONS: Final = {"Content-Type": "application/json-patch+json"}
APPLY: Final = {"Content-Type": "application/apply-patch+yaml"}
CONFIG_MAPS: Final = "/api/v1/namespaces/default/configmaps"
PODS: Final = "/api/v1/namespaces/default/pods"
DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/default/deployments"
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TRIED: Final = "?dryRun=All"
"""The query of a dry run: nothing is stored."""
REASONS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
}
_PATIENCE: Final = 60.0


class Row(NamedTuple):
    """A request with the expected status of its answer."""

    name: str
    method: str
    target: str | bytes
    status: int
    body: bytes = b""
    headers: Mapping[str, str | bytes] = JSON
    real: int = 0
    """The status of kube-apiserver, if it differs."""


class Reply(NamedTuple):
    """An HTTP answer."""

    status: int
    body: bytes

    @property
    def reason(self) -> str:
        """The reason of the Status, empty if the body is no Status."""
        try:
            return str(json.loads(self.body)["reason"])
        except (ValueError, KeyError, TypeError):
            return ""


class Wire:
    """Sends requests byte for byte."""

    def __init__(self, url: str, authority: str, token: str) -> None:
        self._address = urlsplit(url)
        self._context = ssl.create_default_context(cadata=authority)
        self._token = token

    async def ask(self, row: Row) -> Reply:
        """Send a request and read the answer."""
        address = self._address
        reader, writer = await asyncio.open_connection(
            address.hostname, address.port, ssl=self._context
        )
        async with asyncio.timeout(_PATIENCE):
            try:
                writer.write(self._bytes(row))
                return _reply(await reader.read())
            finally:
                writer.close()

    async def make(self, path: str, obj: JsonObject) -> None:
        """Create an object, unless it exists."""
        reply = await self.ask(Row("made", "POST", path, 201, dump(obj)))
        assert reply.status in {201, 409}, reply

    def _bytes(self, row: Row) -> bytes:
        headers: dict[str, str | bytes] = {
            "Host": "localhost",
            "Authorization": f"Bearer {self._token}",
            "Connection": "close",
            "Content-Length": str(len(row.body)),
            **row.headers,
        }
        lines = [b"%s: %s\r\n" % (_as_bytes(key), _as_bytes(headers[key])) for key in headers]
        start = b"%s %s HTTP/1.1\r\n" % (_as_bytes(row.method), _as_bytes(row.target))
        return b"".join([start, *lines, b"\r\n", row.body])


def _as_bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


def _reply(data: bytes) -> Reply:
    head, _, rest = data.partition(b"\r\n\r\n")
    if b"transfer-encoding: chunked" in head.lower():
        rest = _unchunked(rest)
    return Reply(int(head.split()[1]), rest)


def _unchunked(data: bytes) -> bytes:
    parts = []
    while data:
        size, _, data = data.partition(b"\r\n")
        parts.append(data[: int(size, 16)])
        data = data[int(size, 16) + 2 :]
    return b"".join(parts)


def dump(obj: object) -> bytes:
    return json.dumps(obj).encode()


def deep(levels: int) -> bytes:
    """Return deeply nested JSON objects."""
    return b'{"a":' * levels + b"1" + b"}" * levels


def config_map(name: str = "a", **fields: object) -> JsonObject:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **fields}


def pod(requests: JsonObject | None = None, **spec: object) -> JsonObject:
    container = {"name": "main", "image": "registry.example/app:1"}
    return {
        "metadata": {"name": "a"},
        "spec": {"containers": [{**container, "resources": {"requests": requests or {}}}], **spec},
    }


def deployment(replicas: bytes, name: str = "a") -> bytes:
    """Return a Deployment with a number as it stands."""
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}, "spec": pod()["spec"]}
    spec = {"replicas": "?", "selector": {"matchLabels": labels}, "template": template}
    return dump({"metadata": {"name": name}, "spec": spec}).replace(b'"?"', replicas)


def definition(name: str = "things", **properties: object) -> JsonObject:
    """Return a CustomResourceDefinition whose `spec` has these properties."""
    spec = {"type": "object", "properties": properties}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    kind = name.capitalize()
    return {
        "metadata": {"name": f"{name}.hostile.example"},
        "spec": {
            "group": "hostile.example",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": name, "singular": name, "listKind": f"{kind}List"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
