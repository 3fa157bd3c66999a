"""Definitions that the documents of a call share; of several, that in the nearest file counts."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from msgspec import Struct

from karpy.codec.convert.drafts import (
    AWS_GROUP,
    EC2_CLASS,
    NO_CLUSTER,
    ConversionContext,
    NamedCluster,
)
from karpy.codec.convert.objects import Found
from karpy.codec.fields import JsonObject

_SETTINGS: Final = "karpenter-global-settings"
_PROFILE: Final = "aws.defaultInstanceProfile"
_SAME: Final = 10**6
_USUAL: Final = "720h"
"""The default of `expireAfter`."""


def is_read_too(kind: str, name: str) -> bool:
    """Say whether a conversion reads an object of another group: a node class or the settings."""
    return kind.endswith("NodeClass") or (kind, name) == ("ConfigMap", _SETTINGS)


class _Class(Struct, frozen=True):
    """A node class, or an old one that becomes a node class."""

    file: str
    group: str
    kind: str


class ConversionNeighbours:
    """The node classes, settings and expiries in a call, looked up from each of its files."""

    def __init__(
        self, found: Iterable[Found], role: str = "", cluster: NamedCluster = NO_CLUSTER
    ) -> None:
        self._role = role
        self._cluster = cluster
        self._classes: dict[str, list[_Class]] = {}
        self._profiles: list[tuple[str, str]] = []
        self._expiries: dict[str, list[tuple[str, str]]] = {}
        self._seen: dict[str, ConversionContext] = {}
        for each in found:
            self._add(each)

    def _add(self, found: Found) -> None:
        if found.kind == "NodePool":
            expiry = found.file, _expiry(found.value)
            self._expiries.setdefault(found.name, []).append(expiry)
            return
        same = self._classes.setdefault(found.name, [])
        if found.kind in {"AWSNodeTemplate", EC2_CLASS}:
            same.append(_Class(found.file, AWS_GROUP, EC2_CLASS))
        elif found.kind.endswith("NodeClass"):
            same.append(_Class(found.file, found.group, found.kind))
        elif (found.kind, found.name) == ("ConfigMap", _SETTINGS):
            data = found.value.get("data")
            value = data.get(_PROFILE) if isinstance(data, dict) else None
            if isinstance(value, str):
                self._profiles.append((found.file, value))

    def context_for(self, file: str) -> ConversionContext:
        """Return the context of the objects in a file."""
        if file not in self._seen:
            self._seen[file] = self._context(file)
        return self._seen[file]

    def _context(self, file: str) -> ConversionContext:
        def place(each: _Class) -> tuple[int, bool]:
            return -nearness(each.file, file), each.kind != EC2_CLASS

        nearest = {name: min(same, key=place) for name, same in self._classes.items() if same}
        profiles = sorted(self._profiles, key=lambda each: -nearness(each[0], file))
        return ConversionContext(
            self._role,
            next((value for _, value in profiles), ""),
            {name: (each.group, each.kind) for name, each in nearest.items()},
            self._cluster,
            {
                name: min(same, key=lambda each: -nearness(each[0], file))[1]
                for name, same in self._expiries.items()
            },
        )


def _expiry(pool: JsonObject) -> str:
    """Return when the nodes of a NodePool expire, in v1beta1 as in v1."""
    for path in (("spec", "disruption"), ("spec", "template", "spec")):
        found: object = pool
        for key in path:
            found = found.get(key) if isinstance(found, dict) else None
        after = found.get("expireAfter") if isinstance(found, dict) else None
        if isinstance(after, str):
            return after
    return _USUAL


def nearness(one: str, other: str) -> int:
    """Return how many folders two files have in common; the same file is the nearest of all."""
    if one == other:
        return _SAME
    count = 0
    for folder, other_folder in zip(_folders(one), _folders(other), strict=False):
        if folder != other_folder:
            break
        count += 1
    return count


@lru_cache(maxsize=4096)
def _folders(file: str) -> tuple[str, ...]:
    return tuple(file.split("/")[:-1])
