"""A parsed request: its target, its options and the form of its answer."""

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec
import yaml
from aiohttp import web
from multidict import CIMultiDict

from karpy.adapters.apiserver.backend import Backend
from karpy.adapters.apiserver.negotiation import Form, View
from karpy.adapters.apiserver.parameters import Writing, read_writing
from karpy.adapters.apiserver.tables.choice import printer_of
from karpy.adapters.apiserver.tables.printers import metadata_of, table
from karpy.adapters.apiserver.targets import ServedTarget
from karpy.codec.fields import JsonObject
from karpy.ports.clock import Clock
from karpy.ports.objects import Objects, Page

_encode = msgspec.json.Encoder().encode


class ServedCall:
    """A request about a kind or an object."""

    def __init__(
        self, request: web.Request, backend: Backend, clock: Clock, target: ServedTarget, form: Form
    ) -> None:
        self.request = request
        self.backend = backend
        self.target = target
        self.form = form
        self._clock = clock

    @property
    def params(self) -> Mapping[str, str]:
        return self.request.query

    @property
    def agent(self) -> str:
        """The User-Agent of the client."""
        return self.request.headers.get("User-Agent", "")

    def objects(self, manager: str = "") -> Objects:
        """Return the objects of the backend for a field manager."""
        return self.backend.acting_as(manager)

    def writing(self, options: str) -> Writing:
        """Read the options of a write."""
        return read_writing(self.params, self.agent, options)

    def shown(self, obj: JsonObject, *, is_first: bool = True) -> JsonObject:
        """Return an object in the requested form; only the first table has column definitions."""
        match self.form.view:
            case View.TABLE:
                return self._table([obj], obj["metadata"], is_first=is_first)
            case View.METADATA:
                return metadata_of(obj)
        return obj

    def shown_list(self, page: Page) -> JsonObject:
        """Return a list in the requested form."""
        kind = self.target.kind
        meta: JsonObject = {"resourceVersion": page.version}
        if page.token:
            meta["continue"] = page.token
        if page.remaining is not None:
            meta["remainingItemCount"] = page.remaining
        match self.form.view:
            case View.TABLE:
                return self._table(page.items, meta, is_first=True)
            case View.METADATA:
                items = [metadata_of(each) for each in page.items]
                head = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
                return {**head, "metadata": meta, "items": items}
        items = list(page.items)
        if self.target.resource.definition is None:
            items = [_without_type(each) for each in items]
        head = {"kind": f"{kind.name}List", "apiVersion": kind.api_version}
        return {**head, "metadata": meta, "items": items}

    def answer(
        self, body: JsonObject, *, status: int = 200, warnings: Iterable[str] = ()
    ) -> web.Response:
        """Answer with an object, in JSON or YAML."""
        headers = CIMultiDict(HEADERS)
        for each in warnings:
            headers.add("Warning", f"299 - {msgspec.json.encode(each).decode()}")
        if self.form.is_yaml:
            data = yaml.safe_dump(body, sort_keys=False, allow_unicode=True).encode()
        else:
            data = _encode(body)
        return web.Response(
            body=data, status=status, content_type=self.form.content_type, headers=headers
        )

    def _table(
        self, objects: Iterable[JsonObject], meta: JsonObject, *, is_first: bool
    ) -> JsonObject:
        made = table(
            printer_of(self.target.resource),
            objects,
            self._now(),
            include=self.params.get("includeObject", "Metadata"),
            is_first=is_first,
        )
        fields = ("resourceVersion", "continue", "remainingItemCount")
        return {**made, "metadata": {key: meta[key] for key in fields if key in meta}}

    def _now(self) -> datetime:
        return self._clock.now()


HEADERS: Mapping[str, str] = {"Cache-Control": "no-cache, private"}


def json_response(body: object, *, status: int = 200, content_type: str = "") -> web.Response:
    """Return a JSON answer, whatever form was requested."""
    response = web.Response(body=_encode(body), status=status, headers=HEADERS)
    response.headers["Content-Type"] = content_type or "application/json"
    return response


def _without_type(obj: JsonObject) -> JsonObject:
    """Return an object without kind and apiVersion, which the list states."""
    return {key: value for key, value in obj.items() if key not in {"kind", "apiVersion"}}
