"""The resource, object or subresource that a path names."""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from karpy.adapters.apiserver.statuses import nothing_there
from karpy.model.kinds import Kind
from karpy.ports.discovery import Resource

_NAMESPACES: Final = "namespaces"
_OF_A_NAMESPACE: Final = frozenset({"status", "finalize"})
_WITHOUT_A_NAME: Final = 2
"""Number of parts in `namespaces/NAME`."""


class Place(Struct, frozen=True):
    """The parts of a path below a group and version."""

    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    rest: str = ""
    """The path below a subresource such as `proxy`."""


class ServedTarget(Struct, frozen=True):
    """A kind, an object of it, or a subresource of an object."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def kind(self) -> Kind:
        return self.resource.kind


def place_of(path: str) -> Place:
    """Parse the path below a group and version; raise NotFound if it names nothing."""
    parts = path.strip("/").split("/")
    namespace = ""
    is_within = (
        parts[0] == _NAMESPACES
        and len(parts) > _WITHOUT_A_NAME
        and not (parts[_WITHOUT_A_NAME] in _OF_A_NAMESPACE and len(parts) == _WITHOUT_A_NAME + 1)
    )
    if is_within:
        namespace, parts = parts[1], parts[2:]
    if not all(parts):
        raise nothing_there()
    plural, name, subresource, *rest = [*parts, "", ""][: max(len(parts), 3)]
    return Place(plural, namespace, name, subresource, "/".join(rest))


def target_of(
    place: Place, group: str, version: str, resources: Iterable[Resource]
) -> ServedTarget:
    """Return the served target at a place; raise NotFound if nothing is served there."""
    for each in resources:
        kind = each.kind
        if (kind.plural, kind.version, kind.group) == (place.plural, version, group):
            break
    else:
        raise nothing_there()
    if place.namespace and not kind.is_namespaced:
        raise nothing_there()
    if place.rest or (kind.is_namespaced and place.name and not place.namespace):
        raise nothing_there()
    if place.subresource and place.subresource not in each.subresources:
        raise nothing_there()
    return ServedTarget(each, place.namespace, place.name, place.subresource)
