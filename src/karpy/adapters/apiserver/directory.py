"""The discovery documents: groups, versions and resources."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from karpy.adapters.apiserver.extras import CONTAINER_SUBRESOURCES, EXTRAS
from karpy.codec.fields import JsonObject
from karpy.model.kinds import NAMESPACE, POD, Kind
from karpy.ports.discovery import Resource

AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

_VERBS: Final = (
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
)
_CHANGES: Final = ("get", "patch", "update")
_SUBRESOURCE_VERBS: Final = {
    "attach": ("create", "get"),
    "binding": ("create",),
    "eviction": ("create",),
    "exec": ("create", "get"),
    "finalize": ("update",),
    "log": ("get",),
    "portforward": ("create", "get"),
    "proxy": ("create", "delete", "get", "patch", "update"),
}
_SUBRESOURCE_KINDS: Final = {
    "binding": Kind("", "v1", "Binding", ""),
    "eviction": Kind("policy", "v1", "Eviction", ""),
    "scale": Kind("autoscaling", "v1", "Scale", ""),
    **CONTAINER_SUBRESOURCES,
}
_VERSION: Final = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_STAGES: Final = {"alpha": 0, "beta": 1, None: 2}


class DirectoryEntry(Struct, frozen=True):
    """One resource as discovery shows it to clients."""

    kind: Kind
    singular: str
    verbs: tuple[str, ...]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()


class Directory:
    """All served resources, by group and version."""

    def __init__(self, resources: Iterable[Resource]) -> None:
        self._entries: dict[str, dict[str, list[DirectoryEntry]]] = {}
        for entry in (*map(_entry, resources), *_extra_entries()):
            versions = self._entries.setdefault(entry.kind.group, {})
            versions.setdefault(entry.kind.version, []).append(entry)

    def core_versions(self, address: str) -> JsonObject:
        """Return the document of `/api`."""
        where = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
        versions = self._versions("")
        return {"kind": "APIVersions", "versions": versions, "serverAddressByClientCIDRs": where}

    def groups(self) -> JsonObject:
        """Return the document of `/apis`."""
        found = [self._group(name) for name in self._entries if name]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": found}

    def group(self, name: str) -> JsonObject | None:
        """Return the document of `/apis/GROUP`."""
        if not name or name not in self._entries:
            return None
        return {"kind": "APIGroup", "apiVersion": "v1", **self._group(name)}

    def resources(self, group: str, version: str) -> JsonObject | None:
        """Return the document of `/apis/GROUP/VERSION`."""
        entries = self._entries.get(group, {}).get(version)
        if entries is None:
            return None
        listed = [each for entry in _sorted(entries) for each in _flat(entry)]
        group_version = f"{group}/{version}" if group else version
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": group_version,
            "resources": listed,
        }

    def aggregated(self, *, is_core: bool) -> JsonObject:
        """Return the aggregated document of `/api` or `/apis`, with all resources."""
        items = [
            {
                "metadata": {"name": name} if name else {},
                "versions": [
                    {
                        "version": version,
                        "resources": [_nested(each) for each in _sorted(versions[version])],
                        "freshness": "Current",
                    }
                    for version in self._versions(name)
                ],
            }
            for name, versions in self._entries.items()
            if is_core == (not name)
        ]
        return {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {},
            "items": items,
        }

    def _versions(self, group: str) -> list[str]:
        return sorted(self._entries.get(group, ()), key=_maturity, reverse=True)

    def _group(self, name: str) -> JsonObject:
        versions = [
            {"groupVersion": f"{name}/{version}", "version": version}
            for version in self._versions(name)
        ]
        return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _maturity(version: str) -> tuple[int, int, int, str]:
    """Return a sort key as Kubernetes orders versions: v2, v1, v1beta1, v1alpha1, then others."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (-1, 0, 0, version)
    return (_STAGES[match[2]], int(match[1]), int(match[3] or 0), version)


def _entry(resource: Resource) -> DirectoryEntry:
    kind = resource.kind
    subresources = set(resource.subresources)
    if kind == POD:
        subresources |= set(CONTAINER_SUBRESOURCES)
    is_namespace = kind == NAMESPACE
    verbs = tuple(verb for verb in _VERBS if not (is_namespace and verb == "deletecollection"))
    return DirectoryEntry(
        kind,
        resource.singular,
        verbs,
        resource.short_names,
        resource.categories,
        tuple(sorted(subresources)),
    )


def _extra_entries() -> Iterator[DirectoryEntry]:
    for extra in EXTRAS:
        yield DirectoryEntry(extra.kind, extra.kind.name.lower(), extra.verbs)


def _sorted(entries: Sequence[DirectoryEntry]) -> list[DirectoryEntry]:
    return sorted(entries, key=lambda entry: entry.kind.plural)


def _flat(entry: DirectoryEntry) -> Iterator[JsonObject]:
    kind = entry.kind
    made: JsonObject = {
        "name": kind.plural,
        "singularName": entry.singular,
        "namespaced": kind.is_namespaced,
        "kind": kind.name,
        "verbs": list(entry.verbs),
    }
    if entry.short_names:
        made["shortNames"] = list(entry.short_names)
    if entry.categories:
        made["categories"] = list(entry.categories)
    yield made
    for name in entry.subresources:
        part = _SUBRESOURCE_KINDS.get(name, kind)
        of_another = {"group": part.group, "version": part.version} if part.group else {}
        yield {
            "name": f"{kind.plural}/{name}",
            "singularName": "",
            "namespaced": kind.is_namespaced,
            **(of_another if part.group != kind.group else {}),
            "kind": part.name,
            "verbs": list(_SUBRESOURCE_VERBS.get(name, _CHANGES)),
        }


def _nested(entry: DirectoryEntry) -> JsonObject:
    kind = entry.kind
    made: JsonObject = {
        "resource": kind.plural,
        "responseKind": _kind_json(kind),
        "scope": "Namespaced" if kind.is_namespaced else "Cluster",
        "singularResource": entry.singular,
        "verbs": list(entry.verbs),
    }
    if entry.short_names:
        made["shortNames"] = list(entry.short_names)
    if entry.categories:
        made["categories"] = list(entry.categories)
    if entry.subresources:
        made["subresources"] = [
            {
                "subresource": name,
                "responseKind": _kind_json(_SUBRESOURCE_KINDS.get(name, kind)),
                "verbs": list(_SUBRESOURCE_VERBS.get(name, _CHANGES)),
            }
            for name in entry.subresources
        ]
    return made


def _kind_json(kind: Kind) -> JsonObject:
    return {"group": kind.group, "version": kind.version, "kind": kind.name}
