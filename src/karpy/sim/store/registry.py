"""The served kinds: built-in ones and those of CustomResourceDefinitions."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol

from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.codec.patches.schemas import PLAIN, Schema
from karpy.model.kinds import Kind
from karpy.ports.objects import WatchEvent
from karpy.sim.store.answers import FieldFault, bad_request, no_such_resource

BACKGROUND: Final = "Background"
ORPHAN: Final = "Orphan"

Change = Callable[[JsonObject], JsonObject]
Check = Callable[[JsonObject], Iterable[FieldFault]]
Compare = Callable[[JsonObject, JsonObject], Iterable[FieldFault]]


class ObjectValidator(Protocol):
    """Validates objects by the schema and the rules of a CustomResourceDefinition."""

    def admit(
        self, obj: JsonObject, old: JsonObject | None, *, subresource: str = ""
    ) -> JsonObject:
        """Return an object with defaults and without unknown fields; raise Invalid."""


class Rules(Struct, frozen=True):
    """Defaulting and validation of the objects of a kind before they are stored."""

    default: Change | None = None
    """Set the defaults of absent fields."""
    begin: Change | None = None
    """Set the initial status and labels of a new object."""
    check: Check | None = None
    """Yield the faults of an object."""
    compare: Compare | None = None
    """Yield the forbidden changes of the new object against the old one."""
    keep: Callable[[JsonObject, JsonObject], JsonObject] | None = None
    """Copy fields that a replacement omits from the old object."""
    is_guarded: bool = False
    """Whether a replacement must give a resourceVersion."""
    is_name_label: bool = False
    """Whether the name must be a DNS label."""
    keeps_status: bool = False
    """Whether the status given on creation is kept, with defaults and checks."""
    status_fields: tuple[str, ...] = ()
    """The fields of a kept status with defaults or checks."""
    propagation: str = BACKGROUND


class ScalePaths(Struct, frozen=True):
    """The paths of the fields of the scale subresource."""

    replicas: str = ".spec.replicas"
    status: str = ".status.replicas"
    selector: str = ""
    """The path of a selector text; built-in kinds have a selector object instead."""


class Served(Struct, frozen=True):
    """A served kind: its discovery data, rules and schema."""

    kind: Kind
    storage: Kind
    """The kind as which objects are stored; several versions or groups can share it."""
    singular: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: frozenset[str] = frozenset()
    has_generation: bool = False
    scale: ScalePaths | None = None
    selectable: tuple[str, ...] = ()
    """Fields of a custom resource that field selectors may use."""
    definition: JsonObject | None = None
    """The CustomResourceDefinition of the kind, None for built-in kinds."""
    rules: Rules = Rules()
    validator: ObjectValidator | None = None
    schema: Schema = PLAIN
    """The merge rules of lists and maps."""
    to_storage: Change | None = None
    from_storage: Change | None = None

    @property
    def has_status(self) -> bool:
        return "status" in self.subresources

    @property
    def has_plain_status(self) -> bool:
        """Whether the status has neither defaults nor checks."""
        is_kept_as_shown = self.validator is None and self.from_storage is None
        return is_kept_as_shown and "status" in self.subresources and not self.rules.keeps_status

    def check_type(self, obj: JsonObject) -> None:
        """Raise BadRequest if the apiVersion or kind of an object differs."""
        kind = self.kind
        version, name = obj.get("apiVersion") or kind.api_version, obj.get("kind") or kind.name
        if (version, name) != (kind.api_version, kind.name):
            raise bad_request(
                f"the API version in the data ({version}, Kind={name}) does not match the expected "
                f"API version ({kind.api_version}, Kind={kind.name})"
            )

    def shown(self, event: WatchEvent) -> WatchEvent:
        """Return an event with its object in this kind."""
        if self.from_storage is None:
            return event
        return WatchEvent(event.type, self.seen(event.object), event.version)

    def seen(self, obj: JsonObject) -> JsonObject:
        """Convert a stored object to this kind."""
        return obj if self.from_storage is None else self.from_storage(obj)

    def stored(self, obj: JsonObject) -> JsonObject:
        """Convert an object of this kind to its stored form."""
        return obj if self.to_storage is None else self.to_storage(obj)


class Registry:
    """Finds served kinds by kind, by path or by apiVersion and name."""

    def __init__(self, served: Iterable[Served] = ()) -> None:
        self._served: dict[Kind, Served] = {each.kind: each for each in served}

    def __iter__(self) -> Iterator[Served]:
        return iter(tuple(self._served.values()))

    def __contains__(self, kind: Kind) -> bool:
        return kind in self._served

    def served(self, kind: Kind) -> Served:
        """Return a served kind; raise NotFound if it is not served."""
        served = self._served.get(kind)
        if served is None:
            raise no_such_resource(f"{kind.path}/{kind.plural}")
        return served

    def by_plural(self, group: str, version: str, plural: str) -> Served | None:
        """Find a kind by the parts of its URL path."""
        for each in self._served.values():
            kind = each.kind
            if (kind.plural, kind.group, kind.version) == (plural, group, version):
                return each
        return None

    def by_name(self, api_version: str, name: str) -> Served | None:
        """Find a kind by the apiVersion and kind of an object."""
        for each in self._served.values():
            if each.kind.name == name and each.kind.api_version == api_version:
                return each
        return None

    def add(self, served: Served) -> None:
        """Serve a kind from now on."""
        self._served[served.kind] = served

    def remove(self, kind: Kind) -> None:
        """Serve a kind no more."""
        self._served.pop(kind, None)
