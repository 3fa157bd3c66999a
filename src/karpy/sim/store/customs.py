"""The kinds of CustomResourceDefinitions."""

from collections.abc import Callable, Iterator
from typing import Final

from karpy.codec.fields import JsonObject
from karpy.codec.patches.schemas import schema_of_custom
from karpy.model.kinds import CUSTOM_RESOURCE, Kind
from karpy.ports.objects import Removal
from karpy.sim.store.checks.others import check_definition
from karpy.sim.store.conditions import with_condition
from karpy.sim.store.ledger import Ledger
from karpy.sim.store.names import ObjectTimes
from karpy.sim.store.registry import ObjectValidator, Registry, Rules, ScalePaths, Served
from karpy.sim.store.remover import Remover
from karpy.sim.store.tables import Table

ValidatorFactory = Callable[[JsonObject], ObjectValidator]
"""Makes the validator of a CustomResourceDefinition."""

_RULES: Final = Rules(is_guarded=True)
_CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
_ACCEPTED: Final = {
    "type": "NamesAccepted",
    "status": "True",
    "reason": "NoConflicts",
    "message": "no conflicts found",
}
_ESTABLISHED: Final = {
    "type": "Established",
    "status": "True",
    "reason": "InitialNamesAccepted",
    "message": "the initial names have been accepted",
}


class Customs:
    """Serves the kinds of CustomResourceDefinitions."""

    def __init__(
        self,
        ledger: Ledger,
        kinds: Registry,
        remover: Remover,
        times: ObjectTimes,
        factory: ValidatorFactory | None,
    ) -> None:
        self._ledger = ledger
        self._kinds = kinds
        self._remover = remover
        self._times = times
        self._factory = factory
        self._closing: dict[Kind, str] = {}

    def admit(
        self, obj: JsonObject, _old: JsonObject | None, *, subresource: str = ""
    ) -> JsonObject:
        """Return a definition unchanged; raise Invalid if no validator can be made of it."""
        # Faults of the definition itself are reported by the checks of its kind.
        if self._factory is not None and not subresource and not any(check_definition(obj)):
            self._factory(obj)
        return obj

    def define(self, definition: JsonObject) -> JsonObject:
        """Serve the kinds of a definition, and return it with the condition Established."""
        validator = self._factory(definition) if self._factory else None
        for served in served_by(definition, validator):
            self._kinds.add(served)
        status = self._established(definition)
        if status == definition.get("status"):
            return definition
        table = self._ledger.table(CUSTOM_RESOURCE)
        return self._ledger.change(table, {**definition, "status": status}, definition)

    def hold(self, definition: JsonObject) -> JsonObject:
        """Add the finalizer that keeps a definition until its objects are gone."""
        meta = definition["metadata"]
        finalizers = meta.get("finalizers") or []
        if _CLEANUP in finalizers or not any(self._tables(definition)):
            return definition
        held = {**definition, "metadata": {**meta, "finalizers": [*finalizers, _CLEANUP]}}
        return self._ledger.change(self._ledger.table(CUSTOM_RESOURCE), held, definition)

    def empty(self, definition: JsonObject) -> JsonObject | None:
        """Delete all objects of a definition; return it while some are left, else None."""
        name = definition["metadata"]["name"]
        for served in served_by(definition, None):
            for obj in list(self._ledger.table(served.storage).walk()):
                self._remover.remove(served, obj, Removal())
        self._closing[served_kind(definition)] = name
        self._end_if_empty(name)
        return self._ledger.table(CUSTOM_RESOURCE).get("", name)

    def on_removed(self, table: Table, obj: JsonObject) -> None:
        """Delete the deleting definition of a removed object if it was the last one."""
        if table.kind == CUSTOM_RESOURCE:
            self._closing.pop(served_kind(obj), None)
            for served in served_by(obj, None):
                self._kinds.remove(served.kind)
        elif self._closing and table.kind in self._closing:
            self._end_if_empty(self._closing[table.kind])

    def _tables(self, definition: JsonObject) -> Iterator[Table]:
        table = self._ledger.table(served_kind(definition))
        return iter((table,) if table.spaces else ())

    def _end_if_empty(self, name: str) -> None:
        table = self._ledger.table(CUSTOM_RESOURCE)
        definition = table.get("", name)
        if definition is None or any(self._tables(definition)):
            return
        meta = definition["metadata"]
        left = [each for each in meta.get("finalizers") or () if each != _CLEANUP]
        if left:
            done = {**definition, "metadata": {**meta, "finalizers": left}}
            self._ledger.change(table, done, definition)
        else:
            self._ledger.remove(table, definition, definition)

    def _established(self, definition: JsonObject) -> JsonObject:
        spec, now = definition["spec"], self._times.text()
        status = with_condition(definition.get("status"), _ACCEPTED, now)
        status = with_condition(status, _ESTABLISHED, now)
        stored = [each["name"] for each in spec["versions"] if each.get("storage")]
        known = status.get("storedVersions") or []
        return {
            **status,
            "acceptedNames": spec["names"],
            "storedVersions": list(dict.fromkeys([*known, *stored])),
        }


def served_by(definition: JsonObject, validator: ObjectValidator | None) -> Iterator[Served]:
    """Yield the served kinds of a definition, one per version."""
    spec = definition["spec"]
    storage = served_kind(definition)
    names = spec["names"]
    for version in spec["versions"]:
        if not version.get("served"):
            continue
        kind = _kind(spec, version["name"])
        subresources = version.get("subresources") or {}
        selectable = version.get("selectableFields") or ()
        yield Served(
            kind=kind,
            storage=storage,
            singular=names.get("singular") or kind.name.lower(),
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            subresources=frozenset(subresources),
            has_generation=True,
            scale=_scale(subresources.get("scale")),
            selectable=tuple(each["jsonPath"].lstrip(".") for each in selectable),
            definition=definition,
            rules=_RULES,
            validator=validator,
            schema=schema_of_custom((version.get("schema") or {}).get("openAPIV3Schema")),
            to_storage=_as(storage) if kind != storage else None,
            from_storage=_as(kind) if kind != storage else None,
        )


def served_kind(definition: JsonObject) -> Kind:
    """Return the kind of the storage version of a definition."""
    spec = definition["spec"]
    return next(_kind(spec, each["name"]) for each in spec["versions"] if each.get("storage"))


def _kind(spec: JsonObject, version: str) -> Kind:
    names = spec["names"]
    is_namespaced = spec.get("scope") == "Namespaced"
    return Kind(spec["group"], version, names["kind"], names["plural"], is_namespaced)


def _as(kind: Kind) -> Callable[[JsonObject], JsonObject]:
    return lambda obj: {**obj, "apiVersion": kind.api_version}


def _scale(paths: JsonObject | None) -> ScalePaths | None:
    if paths is None:
        return None
    return ScalePaths(
        paths["specReplicasPath"],
        paths["statusReplicasPath"],
        paths.get("labelSelectorPath") or "",
    )
