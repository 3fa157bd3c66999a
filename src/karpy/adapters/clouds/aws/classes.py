"""The EC2NodeClasses of the cluster and the NodePools that use them, as watches tell them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final, Generic, TypeVar

from msgspec.json import Decoder
from msgspec.structs import replace

from karpy.adapters.clouds.aws.reservations import Reservations
from karpy.codec.aws.nodeclasses import read_node_class
from karpy.codec.crds import read_pool
from karpy.codec.fields import Fields, JsonObject
from karpy.core.aws.instancesettings import settings_of, zones_of
from karpy.model.ec2 import PlacementGroup
from karpy.model.ec2nodeclass import Ec2NodeClass
from karpy.model.ec2types import InstanceSettings
from karpy.model.kinds import EC2_NODE_CLASS, NODE_POOL, Kind
from karpy.model.records import NodeClassRef
from karpy.model.requirements import Requirements
from karpy.ports.objects import Feed, Synced

T = TypeVar("T")

_decoder: Final = Decoder(type=dict[str, Any])
_OURS: Final = (EC2_NODE_CLASS.group, EC2_NODE_CLASS.name)


class _Reader(Generic[T]):
    """Hands on what it reads; of what cannot be read the feed tells, by name."""

    def __init__(self, read: Callable[[JsonObject], T]) -> None:
        self._read = read

    def from_object(self, obj: JsonObject) -> T:
        return self._read(obj)

    def from_bytes(self, data: bytes) -> T:
        return self._read(_decoder.decode(data))


class NodeClassBook:
    """Follows EC2NodeClasses and NodePools; what cannot be read stays what it was."""

    def __init__(
        self, feed: Feed, *, reserves: bool = True, reservations: Reservations | None = None
    ) -> None:
        self._feed = feed
        self._reserves = reserves
        self.classes: dict[str, Ec2NodeClass] = {}
        self.objects: dict[str, JsonObject] = {}
        """The EC2NodeClasses as they came."""
        self._class_of: dict[str, str] = {}
        """The name of the node class of each NodePool."""
        self._asked: dict[str, Requirements] = {}
        """What each NodePool asks of its nodes."""
        self.reservations = reservations or Reservations()
        self.groups: dict[str, PlacementGroup | None] = {}
        """The placement group that a node class selects, by the name of the class."""
        self.memory: Mapping[str, Mapping[str, int]] = {}
        """Bytes that nodes have reported by instance type, by node class."""
        self.full_zones: dict[str, frozenset[str]] = {}
        """Zones whose subnets have no free address, by node class."""
        self._synced: set[Kind] = set()
        self._changed = asyncio.Event()

    async def follow(self, kind: Kind) -> None:
        """Follow one of the two kinds, until cancelled."""
        if kind == EC2_NODE_CLASS:
            async for key, found in self._changes(kind, self._read_class, self.classes):
                self._put_class(key, found)
        else:
            async for key, ref in self._changes(kind, _read_ref, self._class_of):
                self._put_ref(key, ref)

    async def wait_until_synced(self) -> None:
        """Return as soon as both kinds were listed once."""
        while len(self._synced) < len(FOLLOWED):
            self._changed.clear()
            await self._changed.wait()

    async def wait_for_change(self, longest: timedelta) -> None:
        """Return as soon as something has changed, or after some time."""
        self._changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(longest.total_seconds()):
                await self._changed.wait()

    def find(self, name: str) -> Ec2NodeClass | None:
        """Return a node class by name."""
        return self.classes.get(name)

    def settings(self) -> dict[str, InstanceSettings]:
        """Return what the node class of each NodePool makes of instance types."""
        by_class = {name: self.settings_of(each) for name, each in self.classes.items()}
        return {pool: by_class[name] for pool, name in self._class_of.items() if name in by_class}

    def pools_of(self, name: str) -> list[str]:
        """Name the NodePools that use a node class."""
        return sorted(pool for pool, each in self._class_of.items() if each == name)

    def requirements_of(self, name: str) -> list[Requirements]:
        """Return what the NodePools that use a node class ask of their nodes."""
        return [self._asked[pool] for pool in self.pools_of(name)]

    def settings_of(self, node_class: Ec2NodeClass) -> InstanceSettings:
        """Return what a node class makes of instance types."""
        name, status = node_class.name, node_class.status
        reservations = tuple(
            replace(found, state=each.state)
            for each in status.reservations
            if (found := self.reservations.find(each.id)) is not None
        )
        return replace(
            settings_of(node_class.spec),
            zones=zones_of(status),
            reservations=reservations,
            placement=self.groups.get(name),
            memory_discovered=self.memory.get(name, {}),
            full_zones=self.full_zones.get(name, frozenset()),
        )

    async def _changes(
        self, kind: Kind, read: Callable[[JsonObject], T], known: Iterable[str]
    ) -> AsyncIterator[tuple[str, T | None]]:
        left = set(known)
        async for change in self._feed.follow(kind, _Reader(read)):
            if isinstance(change, Synced):
                for key in sorted(left):
                    yield key, None
                left.clear()
                self._synced.add(kind)
                self._changed.set()
                continue
            left.discard(change.key)
            if change.unreadable is None:
                yield change.key, change.value

    def _read_class(self, obj: JsonObject) -> tuple[Ec2NodeClass, JsonObject]:
        return read_node_class(Fields(obj), reserves=self._reserves), obj

    def _put_class(self, key: str, found: tuple[Ec2NodeClass, JsonObject] | None) -> None:
        self._changed.set()
        if found is None:
            self.classes.pop(key, None)
            self.objects.pop(key, None)
        else:
            self.classes[key], self.objects[key] = found

    def _put_ref(self, key: str, ref: NodeClassRef | None) -> None:
        is_ours = ref is not None and (ref.group, ref.kind) == _OURS
        if ref is not None and is_ours:
            self._class_of[key] = ref.name
        else:
            self._class_of.pop(key, None)


def _read_ref(obj: JsonObject) -> NodeClassRef:
    return read_pool(Fields(obj)).node_class


FOLLOWED: Final = (EC2_NODE_CLASS, NODE_POOL)
