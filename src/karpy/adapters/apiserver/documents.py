"""Handlers of discovery, OpenAPI and version."""

from typing import Final

from aiohttp import web

from karpy.adapters.apiserver.backend import Backend
from karpy.adapters.apiserver.calls import json_response
from karpy.adapters.apiserver.directory import AGGREGATED, Directory
from karpy.adapters.apiserver.negotiation import JSON, wants_aggregated
from karpy.adapters.apiserver.openapi import NO_SCHEMAS, by_path, document, index, old_document
from karpy.adapters.apiserver.statuses import not_allowed, nothing_there
from karpy.codec.fields import JsonObject
from karpy.errors import BadRequest

_VERSION: Final = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.3+karpy",
    "gitCommit": "",
    "gitTreeState": "",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "",
}
"""The version of Kubernetes that the API implements; clients check it before they use features."""
_PROTOBUF_ASKED: Final = "com.github.proto-openapi.spec.v2"
_PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


class Documents:
    """Answers the requests that are not about objects."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def version(self) -> web.Response:
        """Answer `/version`."""
        return json_response(_VERSION)

    def answer(self, request: web.Request, parts: list[str]) -> web.Response:
        """Answer a path outside of the resources; raise NotFound."""
        if request.method not in {"GET", "HEAD"}:
            raise not_allowed() if parts else nothing_there()
        match parts:
            case []:
                return json_response({"paths": self._paths()})
            case ["openapi", "v2"]:
                return self._old_schemas(request)
            case ["openapi", "v3", *rest]:
                return self._schemas("/".join(rest))
            case ["api" | "apis", *_]:
                return self._directory(request, parts)
        raise nothing_there()

    def _paths(self) -> list[str]:
        groups = [f"/{path}" for path in by_path(self._backend.resources())]
        return sorted(["/api", "/apis", "/healthz", "/openapi/v3", "/version", *groups])

    def _directory(self, request: web.Request, parts: list[str]) -> web.Response:
        directory = Directory(self._backend.resources())
        found: JsonObject | None = None
        match parts:
            case ["api" | "apis"] if wants_aggregated(request.headers.get("Accept", "")):
                everything = directory.aggregated(is_core=parts == ["api"])
                return json_response(everything, content_type=AGGREGATED)
            case ["api"]:
                found = directory.core_versions(request.host)
            case ["apis"]:
                found = directory.groups()
            case ["apis", group]:
                found = directory.group(group)
            case ["api", version]:
                found = directory.resources("", version)
            case ["apis", group, version]:
                found = directory.resources(group, version)
        if found is None:
            raise nothing_there()
        return json_response(found)

    def _schemas(self, path: str) -> web.Response:
        resources = self._backend.resources()
        if not path:
            return json_response(index(resources))
        members = by_path(resources).get(path)
        if members is None:
            raise nothing_there()
        return json_response(document(members))

    def _old_schemas(self, request: web.Request) -> web.Response:
        accept = request.headers.get("Accept", "*/*")
        if _PROTOBUF_ASKED in accept:
            # kubectl requests this for kinds without a schema, and accepts no other form.
            return web.Response(body=NO_SCHEMAS, content_type=_PROTOBUF)
        if JSON not in accept and "*/*" not in accept:
            raise BadRequest(f"only {JSON} is served", status=406)
        response = web.Response(body=old_document(self._backend.resources()))
        response.content_type = JSON
        return response
