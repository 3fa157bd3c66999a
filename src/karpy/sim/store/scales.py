"""The scale subresource."""

from karpy.codec.fields import JsonObject
from karpy.codec.labelselectors import label_selector_text, selector_of, selector_of_map
from karpy.model.kinds import REPLICATION_CONTROLLER, Kind
from karpy.sim.store.answers import FieldsInvalid, invalid, no_such_resource
from karpy.sim.store.registry import ScalePaths, Served

_SCALE = Kind("autoscaling", "v1", "Scale", "scales")


def scale_of(served: Served, obj: JsonObject) -> JsonObject:
    """Return the Scale of an object."""
    paths = _paths(served)
    meta = obj["metadata"]
    fields = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status: JsonObject = {"replicas": _read(obj, paths.status) or 0}
    if selector := _selector(served, paths, obj):
        status["selector"] = selector
    return {
        "kind": _SCALE.name,
        "apiVersion": _SCALE.api_version,
        "metadata": {field: meta[field] for field in fields if field in meta},
        "spec": {"replicas": _read(obj, paths.replicas) or 0},
        "status": status,
    }


def with_scale(served: Served, obj: JsonObject, scale: JsonObject) -> JsonObject:
    """Return an object with the replicas of a Scale; raise Invalid."""
    replicas = (scale.get("spec") or {}).get("replicas") or 0
    if not isinstance(replicas, int) or replicas < 0:
        fault = invalid("spec.replicas", replicas, "must be greater than or equal to 0")
        raise FieldsInvalid(_SCALE, obj["metadata"]["name"], [fault])
    changed = _written(obj, _parts(_paths(served).replicas), replicas)
    given = scale.get("metadata") or {}
    guard = {key: given[key] for key in ("resourceVersion", "uid") if given.get(key)}
    return {**changed, "metadata": {**obj["metadata"], **guard}}


def _paths(served: Served) -> ScalePaths:
    if served.scale is None:
        raise no_such_resource(f"{served.kind.path}/{served.kind.plural}/scale")
    return served.scale


def _selector(served: Served, paths: ScalePaths, obj: JsonObject) -> str:
    if paths.selector:
        return str(_read(obj, paths.selector) or "")
    if served.definition is not None:
        return ""
    given = (obj.get("spec") or {}).get("selector")
    is_map = served.kind == REPLICATION_CONTROLLER
    selector = selector_of_map(given) if is_map else selector_of(given)
    return "" if selector is None else label_selector_text(selector)


def _parts(path: str) -> list[str]:
    return path.strip(".").split(".")


def _read(obj: JsonObject, path: str) -> object:
    found: object = obj
    for part in _parts(path):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _written(obj: JsonObject, parts: list[str], value: int) -> JsonObject:
    first, *rest = parts
    return {**obj, first: _written(obj.get(first) or {}, rest, value) if rest else value}
