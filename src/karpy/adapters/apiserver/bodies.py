"""The bodies of requests: objects, patches and delete options."""

from collections.abc import Sequence
from typing import Final

import msgspec
from aiohttp import web

from karpy.adapters.apiserver.decoding import Decoder, Mismatch
from karpy.adapters.apiserver.negotiation import JSON, YAML
from karpy.adapters.apiserver.parameters import Writing
from karpy.adapters.apiserver.protobuf import PROTOBUF, Malformed, read_envelope
from karpy.adapters.apiserver.shapes import shapes
from karpy.adapters.apiserver.statuses import bad_options
from karpy.adapters.apiserver.structurals import schema_of, unknown_fields
from karpy.adapters.apiserver.targets import ServedTarget
from karpy.codec.documents import read_documents
from karpy.codec.fields import JsonObject
from karpy.codec.jsontext import parse_json
from karpy.codec.limits import Unparsable, is_too_deep, too_deep
from karpy.errors import BadRequest, ClusterError, Invalid, ManifestInvalid
from karpy.model.kinds import Kind
from karpy.ports.objects import Patch, PatchType

_UNKNOWN_FORM: Final = (
    "the body of the request was in an unknown format - accepted media types include: "
)
_SHOWN_MAX: Final = 100
_DELETE_OPTIONS: Final = Kind("meta", "v1", "DeleteOptions", "")
_OPTIONS: Final = "PatchOptions"
_SUBRESOURCES: Final = {
    "scale": Kind("autoscaling", "v1", "Scale", "scales"),
    "eviction": Kind("policy", "v1", "Eviction", "evictions"),
    "binding": Kind("", "v1", "Binding", "bindings"),
}
"""The kind of the body for a subresource, where it is not the object's kind."""


class Received:
    """A received object without unknown fields, and the unknown fields."""

    def __init__(self, obj: JsonObject, unknown: Sequence[str]) -> None:
        self.object = obj
        self.warnings = [f'unknown field "{field}"' for field in unknown]


def kind_written(target: ServedTarget) -> Kind:
    """Return the kind that a body for this target must have."""
    return _SUBRESOURCES.get(target.subresource, target.kind)


async def read_object(request: web.Request, target: ServedTarget, validation: str) -> Received:
    """Read an object; raise BadRequest if the body is not an object of the target's kind."""
    kind = kind_written(target)
    value = await read_any(request, kind)
    return _received(_named(value, kind, target), target, validation, is_patch=False)


async def read_any(request: web.Request, kind: Kind) -> JsonObject:
    """Read an object without checking its fields."""
    media, body = _media_type(request), await request.read()
    if media == PROTOBUF:
        return _parse_protobuf(body, kind)
    value = _parse(body, media, kind.name)
    if not isinstance(value, dict):
        raise BadRequest(
            f"the object provided is unrecognized (must be of type {kind.name}): "
            f"{_shown(value)} is no object",
            status=400,
        )
    return value


async def read_patch(
    request: web.Request, target: ServedTarget, writing: Writing
) -> tuple[Patch, list[str]]:
    """Read a patch and its warnings; raise Invalid if the options do not fit its type."""
    media = _media_type(request)
    known = [each for each in PatchType if _allows(each, target)]
    found = next((each for each in known if each.value == media), None)
    if found is None:
        accepted = ", ".join(each.value for each in known)
        raise BadRequest(f"{_UNKNOWN_FORM}{accepted}", status=415)
    if found is PatchType.APPLY and not request.query.get("fieldManager"):
        raise bad_options(_OPTIONS, "fieldManager", "Required value: is required for apply patch")
    if found is not PatchType.APPLY and writing.is_forced:
        raise bad_options(_OPTIONS, "force", "Forbidden: may not be specified for non-apply patch")
    value = _parse(await request.read(), YAML if found is PatchType.APPLY else JSON, "patch")
    if found is PatchType.JSON:
        return Patch(found, _operations(value), writing.manager), []
    if not isinstance(value, dict):
        raise BadRequest(f"error decoding patch: {_shown(value)} is no object", status=400)
    if found is PatchType.APPLY:
        value = _named(value, kind_written(target), target)
    is_partial = found is not PatchType.APPLY
    received = _received(value, target, writing.validation, is_patch=is_partial)
    patch = Patch(found, received.object, writing.manager, writing.is_forced)
    return patch, received.warnings


def _operations(value: object) -> list[JsonObject]:
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise BadRequest("error decoding patch: it is no list of operations", status=400)
    return value


async def read_delete_options(request: web.Request) -> JsonObject:
    """Read delete options, which most clients leave out."""
    if not (await request.read()).strip():
        return {}
    value = await read_any(request, _DELETE_OPTIONS)
    try:
        return Decoder().read(value, shapes()[_type_name(_DELETE_OPTIONS)])
    except Mismatch as error:
        raise BadRequest(str(error), status=400) from error


def _allows(type_: PatchType, target: ServedTarget) -> bool:
    return type_ is not PatchType.STRATEGIC or target.resource.definition is None


def _media_type(request: web.Request) -> str:
    given = request.headers.get("Content-Type") or JSON
    return given.partition(";")[0].strip().lower()


def _parse(body: bytes, media: str, name: str) -> object:
    if media not in {JSON, YAML, "*/*"}:
        raise BadRequest(f"{_UNKNOWN_FORM}{JSON}, {YAML}, {PROTOBUF}", status=415)
    try:
        if media != YAML or body.lstrip()[:1] == b"{":
            return parse_json(body)
        return _parse_yaml(body.decode())
    except (Unparsable, UnicodeDecodeError) as error:
        text = body[:_SHOWN_MAX].decode(errors="replace") or "<empty>"
        raise BadRequest(
            f"the object provided is unrecognized (must be of type {name}): couldn't get "
            f"version/kind; json parse error: {error} ({text})",
            status=400,
        ) from error


def _parse_protobuf(body: bytes, kind: Kind) -> JsonObject:
    try:
        obj = read_envelope(body, lambda _version, name: _type_name(kind, name))
        if is_too_deep(obj):
            raise too_deep()
    except (Malformed, Unparsable, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(
            f"the object provided is unrecognized (must be of type {kind.name}): {error}",
            status=400,
        ) from error
    return obj


def _parse_yaml(text: str) -> object:
    for each in read_documents("the body", text):
        if isinstance(each, ManifestInvalid):
            raise BadRequest(f"error converting YAML to JSON: {each.message}", status=400)
        value: object = each.value
        return value
    return None


def _named(value: JsonObject, kind: Kind, target: ServedTarget) -> JsonObject:
    """Return an object with its apiVersion and kind, which built-in kinds may omit."""
    version, name = value.get("apiVersion"), value.get("kind")
    if target.resource.definition is not None and not target.subresource and not (version and name):
        raise BadRequest(
            f"Object 'Kind' or 'apiVersion' is missing in '{_shown(value)}'", status=400
        )
    if not all(each is None or isinstance(each, str) for each in (version, name)):
        raise BadRequest(
            f"the object provided is unrecognized (must be of type {kind.name}): couldn't get "
            "version/kind; json parse error: json: cannot unmarshal what is no string",
            status=400,
        )
    named = {**value, "apiVersion": version or kind.api_version, "kind": name or kind.name}
    if named["kind"] != kind.name or not _is_version(str(named["apiVersion"]), kind):
        raise BadRequest(
            f'{named["kind"]} in version "{_short(str(named["apiVersion"]))}" cannot be handled as '
            f"a {kind.name}: the API version in the data ({named['apiVersion']}) does not match "
            f"the expected API version ({kind.api_version})",
            status=400,
        )
    return named


def _is_version(given: str, kind: Kind) -> bool:
    # Some clients still send the Eviction of policy/v1beta1, which kube-apiserver accepts.
    return given == kind.api_version or (kind.name == "Eviction" and given == "policy/v1beta1")


def _received(
    value: JsonObject, target: ServedTarget, validation: str, *, is_patch: bool
) -> Received:
    kind = kind_written(target)
    definition = target.resource.definition
    try:
        if definition is not None and kind == target.kind:
            schema = schema_of(definition, kind.version)
            received = Received(value, unknown_fields(value, schema, is_patch=is_patch))
        else:
            decoder = Decoder(is_patch=is_patch)
            received = Received(decoder.read(value, shapes()[_type_name(kind)]), decoder.unknown)
    except Mismatch as error:
        raise _unfit(kind, str(error), is_patch=is_patch) from error
    if received.warnings and validation == "Strict":
        problem = f"strict decoding error: {', '.join(received.warnings)}"
        raise _unfit(kind, problem, is_patch=is_patch)
    if validation == "Ignore":
        received.warnings.clear()
    return received


def _type_name(kind: Kind, name: str = "") -> str:
    """Return Go's name of a kind's type, or of another type of the same group."""
    group = kind.group.partition(".")[0] or "core"
    return f"{group}.{kind.version}.{name or kind.name}"


def _unfit(kind: Kind, problem: str, *, is_patch: bool) -> ClusterError:
    if is_patch:
        return PatchInvalid(problem)
    what = f'{kind.name} in version "{kind.version}" cannot be handled as a {kind.name}'
    return BadRequest(f"{what}: {problem}", status=400)


class PatchInvalid(Invalid):
    """A patch does not fit the type of the kind."""

    def __init__(self, problem: str) -> None:
        super().__init__(f' "" is invalid: patch: Invalid value: {problem}', status=422)
        message = f"Invalid value: {problem}"
        self.details: JsonObject = {
            "causes": [{"reason": "FieldValueInvalid", "message": message, "field": "patch"}]
        }


def _short(api_version: str) -> str:
    return api_version.rpartition("/")[2]


def _shown(value: object) -> str:
    return msgspec.json.encode(value).decode()[:_SHOWN_MAX]
