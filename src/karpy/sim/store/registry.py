"""The kinds that are served: built-in ones and those of CustomResourceDefinitions."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol

from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.codec.patches.schemas import PLAIN, Schema
from karpy.model.kinds import Kind
from karpy.ports.objects import WatchEvent
from karpy.sim.store.answers import Fault, bad_request, no_such_resource

BACKGROUND: Final = "Background"
ORPHAN: Final = "Orphan"

Change = Callable[[JsonObject], JsonObject]
Check = Callable[[JsonObject], Iterable[Fault]]
Compare = Callable[[JsonObject, JsonObject], Iterable[Fault]]


class Validator(Protocol):
    """Knows the schema and the rules of a CustomResourceDefinition."""

    def admit(
        self, obj: JsonObject, old: JsonObject | None, *, subresource: str = ""
    ) -> JsonObject:
        """Return an object with defaults and without unknown fields; raise Invalid."""


class Rules(Struct, frozen=True):
    """What an API server does to the objects of a kind before it keeps them."""

    default: Change | None = None
    """Fill in what was left out."""
    begin: Change | None = None
    """Give a new object the status and labels it starts with."""
    check: Check | None = None
    """Name what is wrong with an object."""
    compare: Compare | None = None
    """Name what must not have changed; takes the new and the old object."""
    keep: Callable[[JsonObject, JsonObject], JsonObject] | None = None
    """Take over what a new object leaves out from the old one."""
    is_guarded: bool = False
    """Replacing takes a resourceVersion."""
    is_name_label: bool = False
    """The name must do for a DNS label."""
    keeps_status: bool = False
    """The status given on creation counts; it is filled in and checked like the rest."""
    status_fields: tuple[str, ...] = ()
    """The fields of a kept status that are filled in or checked."""
    propagation: str = BACKGROUND


class ScalePaths(Struct, frozen=True):
    """Where the numbers of the scale subresource are."""

    replicas: str = ".spec.replicas"
    status: str = ".status.replicas"
    selector: str = ""
    """Path of a text; built-in kinds have a selector object instead."""


class Served(Struct, frozen=True):
    """A kind as discovery tells it."""

    kind: Kind
    storage: Kind
    """What its objects are kept as: another version or group may serve the same ones."""
    singular: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: frozenset[str] = frozenset()
    has_generation: bool = False
    scale: ScalePaths | None = None
    selectable: tuple[str, ...] = ()
    """Fields of a custom resource that field selectors may ask for."""
    definition: JsonObject | None = None
    """The CustomResourceDefinition it comes from."""
    rules: Rules = Rules()
    validator: Validator | None = None
    schema: Schema = PLAIN
    """How its objects merge."""
    to_storage: Change | None = None
    from_storage: Change | None = None

    @property
    def has_status(self) -> bool:
        return "status" in self.subresources

    @property
    def has_plain_status(self) -> bool:
        """Whether a status is neither defaulted nor checked."""
        is_kept_as_shown = self.validator is None and self.from_storage is None
        return is_kept_as_shown and "status" in self.subresources and not self.rules.keeps_status

    def check_type(self, obj: JsonObject) -> None:
        """Raise BadRequest if an object says that it is of another kind."""
        kind = self.kind
        version, name = obj.get("apiVersion") or kind.api_version, obj.get("kind") or kind.name
        if (version, name) != (kind.api_version, kind.name):
            raise bad_request(
                f"the API version in the data ({version}, Kind={name}) does not match the expected "
                f"API version ({kind.api_version}, Kind={kind.name})"
            )

    def shown(self, event: WatchEvent) -> WatchEvent:
        """Return an event the way this kind shows it."""
        if self.from_storage is None:
            return event
        return WatchEvent(event.type, self.seen(event.object), event.version)

    def seen(self, obj: JsonObject) -> JsonObject:
        """Return a kept object the way this kind shows it."""
        return obj if self.from_storage is None else self.from_storage(obj)

    def stored(self, obj: JsonObject) -> JsonObject:
        """Return an object of this kind the way it is kept."""
        return obj if self.to_storage is None else self.to_storage(obj)


class Registry:
    """Finds served kinds by what clients know of them."""

    def __init__(self, served: Iterable[Served] = ()) -> None:
        self._served: dict[Kind, Served] = {each.kind: each for each in served}

    def __iter__(self) -> Iterator[Served]:
        return iter(tuple(self._served.values()))

    def __contains__(self, kind: Kind) -> bool:
        return kind in self._served

    def served(self, kind: Kind) -> Served:
        """Return what is known of a kind; raise NotFound if it is not served."""
        served = self._served.get(kind)
        if served is None:
            raise no_such_resource(f"{kind.path}/{kind.plural}")
        return served

    def by_plural(self, group: str, version: str, plural: str) -> Served | None:
        """Find a kind by its path."""
        for each in self._served.values():
            kind = each.kind
            if (kind.plural, kind.group, kind.version) == (plural, group, version):
                return each
        return None

    def by_name(self, api_version: str, name: str) -> Served | None:
        """Find a kind by what objects say of themselves."""
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
