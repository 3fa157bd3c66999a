"""The OpenAPI schemas of the served kinds, for `kubectl explain` and validating clients."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from typing import Final

import msgspec

from karpy.adapters.apiserver.shapes import (
    LIST,
    MAP,
    METADATA,
    SCALARS,
    SCALE,
    Field,
    Shape,
    inner,
    shape_of,
    shapes,
)
from karpy.adapters.apiserver.structurals import schema_of
from karpy.codec.fields import JsonObject
from karpy.model.kinds import Kind
from karpy.ports.discovery import Resource
from karpy.ports.objects import PatchType

_REF: Final = "#/components/schemas/"
_INFO: Final = {"title": "Kubernetes", "version": "v1.36"}
_GVK: Final = "x-kubernetes-group-version-kind"
_WRITE_PARAMETERS: Final = ("dryRun", "fieldManager", "fieldValidation")
_SCALARS: Final[Mapping[str, JsonObject]] = {
    "string": {"type": "string"},
    "bytes": {"type": "string", "format": "byte"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "double": {"type": "number", "format": "double"},
    "Time": {"type": "string", "format": "date-time"},
    "MicroTime": {"type": "string", "format": "date-time"},
    "Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "IntOrString": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    "object": {"type": "object"},
    "any": {},
}
_NAMED: Final = {
    "Time": "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
    "MicroTime": "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime",
    "Quantity": "io.k8s.apimachinery.pkg.api.resource.Quantity",
    "IntOrString": "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
}
"""Scalars with a schema of their own."""


NO_SCHEMAS: Final = b"\n\x032.0\x12\x13\n\nKubernetes\x12\x05v1.36"
"""An OpenAPI 2.0 document without schemas, in gnostic's protobuf; OpenAPI 3 has the schemas."""


def index(resources: Sequence[Resource]) -> JsonObject:
    """Return `/openapi/v3`: the paths of the schemas of each group and version."""
    paths = {}
    for path, members in by_path(resources).items():
        digest = sha256(msgspec.json.encode([_state(each) for each in members])).hexdigest()
        paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest.upper()}"}
    return {"paths": paths}


def document(members: Iterable[Resource]) -> JsonObject:
    """Return `/openapi/v3/…`: the schemas of a group and version."""
    listed = list(members)
    schemas: JsonObject = {}
    paths: JsonObject = {}
    for each in listed:
        schemas.update(_schemas(each))
        paths.update(_paths(each))
    return {
        "openapi": "3.0.0",
        "info": _INFO,
        "paths": paths,
        "components": {"schemas": dict(sorted(schemas.items()))},
    }


def old_document(resources: Iterable[Resource]) -> bytes:
    """Return `/openapi/v2`: all schemas, without paths."""
    schemas: JsonObject = {}
    for each in resources:
        schemas.update(_schemas(each))
    made = {"swagger": "2.0", "info": _INFO, "paths": {}, "definitions": schemas}
    return msgspec.json.encode(made).replace(_REF.encode(), b"#/definitions/")


def by_path(resources: Iterable[Resource]) -> dict[str, list[Resource]]:
    """Group kinds by the path of their group and version: `apis/apps/v1`."""
    found: dict[str, list[Resource]] = {}
    for each in resources:
        found.setdefault(each.kind.path.lstrip("/"), []).append(each)
    return found


def _state(resource: Resource) -> list[object]:
    """Return everything that the schemas of a kind depend on, as the key of a cache."""
    meta = (resource.definition or {}).get("metadata") or {}
    return [resource.kind.name, meta.get("uid"), meta.get("resourceVersion")]


def _schemas(resource: Resource) -> JsonObject:
    kind = resource.kind
    if resource.definition is not None:
        made = _with_kind(_custom_schema(resource.definition, kind), kind)
        return {
            **_closure((METADATA, SCALE)),
            schema_name(resource): made,
            f"{schema_name(resource)}List": _list_schema(resource),
        }
    shape = shape_of(kind)
    names = (shape.name,) if shape is not None else ()
    extra = _subresource_shapes(resource)
    found = dict(_closure((*names, *extra)))
    if shape is not None:
        found[shape.full_name] = _with_kind(found[shape.full_name], kind)
        found[f"{shape.full_name}List"] = _list_schema(resource)
    return found


def schema_name(resource: Resource) -> str:
    """Return the name of a kind's schema: `sh.karpenter.v1.NodePool`."""
    kind = resource.kind
    shape = shape_of(kind) if resource.definition is None else None
    if shape is not None:
        return shape.full_name
    return ".".join([*reversed(kind.group.split(".")), kind.version, kind.name])


def _subresource_shapes(resource: Resource) -> tuple[str, ...]:
    known = {"scale": SCALE, "eviction": "policy.v1.Eviction", "binding": "core.v1.Binding"}
    return tuple(name for part, name in known.items() if part in resource.subresources)


def _with_kind(schema: JsonObject, kind: Kind) -> JsonObject:
    return {**schema, _GVK: [_gvk(kind)]}


def _gvk(kind: Kind) -> JsonObject:
    return {"group": kind.group, "version": kind.version, "kind": kind.name}


def _custom_schema(definition: JsonObject, kind: Kind) -> JsonObject:
    schema = schema_of(definition, kind.version)
    about = "Name, labels and the like."
    meta = {"description": about, "allOf": [_ref(shapes()[METADATA].full_name)]}
    return {**schema, "properties": {**(schema.get("properties") or {}), "metadata": meta}}


def _list_schema(resource: Resource) -> JsonObject:
    kind = resource.kind
    items = {"type": "array", "items": _ref(schema_name(resource))}
    listed = Kind(kind.group, kind.version, f"{kind.name}List", kind.plural)
    properties = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "items": items,
    }
    made: JsonObject = {"type": "object", "required": ["items"], "properties": properties}
    return _with_kind(made, listed)


@cache
def _closure(names: tuple[str, ...]) -> Mapping[str, JsonObject]:
    """Return the schemas of types and of the types of their fields, recursively."""
    found: dict[str, JsonObject] = {}
    waiting, seen = list(names), set(names)
    while waiting:
        shape = shapes()[waiting.pop()]
        found[shape.full_name] = _shape_schema(shape)
        for name in {inner(field.type) for field in shape.fields.values()} - seen:
            seen.add(name)
            if name not in SCALARS:
                waiting.append(name)
            elif name in _NAMED:
                found[_NAMED[name]] = _SCALARS[name]
    return found


def _shape_schema(shape: Shape) -> JsonObject:
    made: JsonObject = {"type": "object"}
    if shape.about:
        made["description"] = shape.about
    required = sorted(field.name for field in shape.fields.values() if field.is_required)
    if required:
        made["required"] = required
    if shape.fields:
        made["properties"] = {name: _field_schema(each) for name, each in shape.fields.items()}
    return {**made, **_extensions(shape.marks)}


def _field_schema(field: Field) -> JsonObject:
    schema = _type_schema(field.type)
    if "$ref" in schema:
        schema = {"allOf": [schema]}
    if field.about:
        schema = {"description": field.about, **schema}
    if enum := field.marks.get("enum"):
        schema = {**schema, "enum": enum.split(",")}
    return {**schema, **_extensions(field.marks)}


def _type_schema(type_: str) -> JsonObject:
    if type_.startswith(LIST):
        return {"type": "array", "items": _type_schema(type_[2:])}
    if type_.startswith(MAP):
        return {"type": "object", "additionalProperties": _type_schema(type_[2:])}
    if type_ in _NAMED:
        return _ref(_NAMED[type_])
    return _SCALARS.get(type_) or ({} if type_ == "any" else _ref(shapes()[type_].full_name))


def _extensions(marks: Mapping[str, str]) -> JsonObject:
    made: JsonObject = {}
    if text := marks.get("list"):
        type_, _, keys = text.partition(":")
        made["x-kubernetes-list-type"] = type_
        if keys:
            made["x-kubernetes-list-map-keys"] = keys.split(",")
    if text := marks.get("map"):
        made["x-kubernetes-map-type"] = text
    if text := marks.get("key"):
        made["x-kubernetes-patch-merge-key"] = text
    if text := marks.get("strategy"):
        made["x-kubernetes-patch-strategy"] = text
    return made


def _ref(name: str) -> JsonObject:
    return {"$ref": f"{_REF}{name}"}


def _paths(resource: Resource) -> Iterator[tuple[str, JsonObject]]:
    kind = resource.kind
    within = "/namespaces/{namespace}" if kind.is_namespaced else ""
    base = f"{kind.path}{within}/{kind.plural}"
    name = schema_name(resource)
    one, many = _answer(name), _answer(f"{name}List")
    yield (
        base,
        {
            "get": _operation(kind, "list", many),
            "post": _operation(kind, "post", one, _body((JSON_TYPE,), name), _WRITE_PARAMETERS),
            "delete": _operation(kind, "deletecollection", one),
        },
    )
    patches = [
        each.value
        for each in PatchType
        if resource.definition is None or each is not PatchType.STRATEGIC
    ]
    changes = (*_WRITE_PARAMETERS, "force")
    yield (
        f"{base}/{{name}}",
        {
            "get": _operation(kind, "get", one),
            "put": _operation(kind, "put", one, _body((JSON_TYPE,), name), _WRITE_PARAMETERS),
            "patch": _operation(kind, "patch", one, _body(patches, name), changes),
            "delete": _operation(kind, "delete", one),
        },
    )


JSON_TYPE: Final = "application/json"


def _operation(
    kind: Kind,
    action: str,
    answer: JsonObject,
    body: JsonObject | None = None,
    parameters: Iterable[str] = (),
) -> JsonObject:
    made: JsonObject = {
        "operationId": f"{action}{kind.group.title().replace('.', '')}{kind.version}{kind.name}",
        "parameters": [
            {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
            for name in parameters
        ],
        "responses": {"200": answer},
        "x-kubernetes-action": action,
        _GVK: _gvk(kind),
    }
    return {**made, "requestBody": body} if body else made


def _answer(name: str) -> JsonObject:
    return {"description": "OK", "content": {JSON_TYPE: {"schema": _ref(name)}}}


def _body(types: Iterable[str], name: str) -> JsonObject:
    return {"required": True, "content": {each: {"schema": _ref(name)} for each in types}}
