"""Lists in pages of one version."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from karpy.codec.fields import JsonObject
from karpy.codec.jsontext import parse_json
from karpy.errors import Expired
from karpy.ports.objects import Page
from karpy.sim.store.answers import bad_request, continue_too_old
from karpy.sim.store.queries import Filter, select
from karpy.sim.store.tables import Table

_FORM: Final = "meta.k8s.io/v1"


class Token(Struct, frozen=True, rename={"form": "v", "version": "rv", "start": "start"}):
    """A continue token: the start of the next page, and the version of the list."""

    form: str
    version: Annotated[int, Meta(le=2**63 - 1)]
    start: str


def page(table: Table, wanted: Filter, version: int, *, limit: int, token: str) -> Page:
    """Return a page of the objects at the version of the first page."""
    start = ""
    objects = list(table.walk(wanted.namespace))
    if token:
        asked = _read(token)
        start = asked.start
        if asked.version != version and asked.version >= 0:
            objects = _back_then(table, asked.version, wanted.namespace)
            version = asked.version
    rest = [each for each in select(objects, wanted) if key_of(each) > start]
    if not limit or len(rest) <= limit:
        return Page(tuple(rest), str(version))
    items = rest[:limit]
    is_plain = not (wanted.labels.rules or wanted.fields.rules)
    following = _write(Token(_FORM, version, key_of(items[-1])))
    return Page(tuple(items), str(version), following, len(rest) - limit if is_plain else None)


def key_of(obj: JsonObject) -> str:
    """Return the key of an object, which orders lists."""
    meta = obj["metadata"]
    namespace = meta.get("namespace")
    return f"{namespace}/{meta['name']}" if namespace else str(meta["name"])


def _back_then(table: Table, version: int, namespace: str) -> list[JsonObject]:
    try:
        since = table.since(version)
    except Expired as error:
        raise continue_too_old() from error
    objects = {key_of(each): each for each in table.walk(namespace)}
    for _, event, before in reversed(since):
        obj = event.object
        if namespace and obj["metadata"].get("namespace") != namespace:
            continue
        if before is None:
            objects.pop(key_of(obj), None)
        else:
            objects[key_of(obj)] = before
    return [objects[key] for key in sorted(objects)]


def _write(token: Token) -> str:
    return urlsafe_b64encode(msgspec.json.encode(token)).rstrip(b"=").decode()


def _read(text: str) -> Token:
    try:
        decoded = urlsafe_b64decode(f"{text}{'=' * (-len(text) % 4)}")
        token = msgspec.convert(parse_json(decoded), Token)
    except (ValueError, msgspec.MsgspecError) as error:
        raise bad_request("continue key is not valid") from error
    if token.form != _FORM or not token.version or not token.start:
        raise bad_request("continue key is not valid")
    return token
