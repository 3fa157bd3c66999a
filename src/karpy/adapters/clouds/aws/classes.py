"""A cache of the EC2NodeClasses of the cluster and the NodePools that use them, fed by watches."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final, Generic, TypeVar

from msgspec.json import Decoder
from msgspec.structs import replace

from karpy.adapters.clouds.aws.reservations import CapacityReservations
from karpy.codec.aws.nodeclasses import read_node_class
from karpy.codec.crds import read_pool
from karpy.codec.fields import Fields, JsonObject
from karpy.core.aws.instancetypes import settings_of, zones_of
from karpy.model.ec2 import InstanceSettings, PlacementGroup
from karpy.model.ec2nodeclass import Ec2NodeClass
from karpy.model.kinds import EC2_NODE_CLASS, NODE_POOL, Kind
from karpy.model.pools import NodePool
from karpy.model.requirements import Requirements, collect, from_labels, merge
from karpy.ports.objects import Feed, Synced

T = TypeVar("T")

_decoder: Final = Decoder(type=dict[str, Any])
_OURS: Final = (EC2_NODE_CLASS.group, EC2_NODE_CLASS.name)


class _Reader(Generic[T]):
    """The port Reader by a function; the feed reports objects that cannot be read."""

    def __init__(self, read: Callable[[JsonObject], T]) -> None:
        self._read = read

    def from_object(self, obj: JsonObject) -> T:
        return self._read(obj)

    def from_bytes(self, data: bytes) -> T:
        return self._read(_decoder.decode(data))


OnClass = Callable[[Ec2NodeClass | None, Ec2NodeClass | None], None]


class NodeClassBook:
    """A cache of EC2NodeClasses and NodePools; an unreadable object keeps its last value."""

    def __init__(
        self, feed: Feed, *, reserves: bool = True, reservations: CapacityReservations | None = None
    ) -> None:
        self._feed = feed
        self._reserves = reserves
        self.classes: dict[str, Ec2NodeClass] = {}
        self.objects: dict[str, JsonObject] = {}
        """The EC2NodeClasses as JSON."""
        self._class_of: dict[str, str] = {}
        """The name of the node class of each NodePool."""
        self._requirements: dict[str, Requirements] = {}
        """The requirements of each NodePool, including its labels."""
        self.reservations = reservations or CapacityReservations()
        self.groups: dict[str, PlacementGroup | None] = {}
        """The placement group that a node class selects, by the name of the class."""
        self._memory: dict[str, tuple[tuple[str, ...], dict[str, int]]] = {}
        """By node class: its images, and the bytes that nodes with them have reported by type."""
        self.full_zones: dict[str, frozenset[str]] = {}
        """Zones whose subnets have no free address, by node class."""
        self._synced: set[Kind] = set()
        self._changed = asyncio.Event()
        self._listeners: list[OnClass] = []
        self.changes = 0
        """How often node classes have changed."""

    async def follow(self, kind: Kind) -> None:
        """Follow EC2NodeClasses or NodePools, until cancelled."""
        if kind == EC2_NODE_CLASS:
            async for key, found in self._changes(kind, self._read_class, self.classes):
                self._put_class(key, found)
        else:
            async for key, pool in self._changes(kind, _read_pool, self._class_of):
                self._put_pool(key, pool)

    async def wait_until_synced(self) -> None:
        """Return as soon as both kinds were listed once."""
        while len(self._synced) < len(FOLLOWED):
            self._changed.clear()
            await self._changed.wait()

    async def wait_for_change(self, seen: int, longest: timedelta) -> None:
        """Return as soon as `changes` differs from `seen`, or after the longest time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(longest.total_seconds()):
                while self.changes == seen:
                    self._changed.clear()
                    await self._changed.wait()

    def note_claim_gone(self) -> None:
        """Trigger a reconcile: a deleting node class may wait for its last NodeClaim."""
        self._note_change()

    def note_memory(self, name: str, images: tuple[str, ...], found: Mapping[str, int]) -> None:
        """Merge the memory that nodes of a class have reported, by instance type."""
        known_images, known = self._memory.get(name, ((), {}))
        kept = known if known_images == images else {}
        merged = {
            type_: min(kept.get(type_, found.get(type_, 0)), found.get(type_, kept.get(type_, 0)))
            for type_ in {*kept, *found}
        }
        if merged != known:
            self._memory[name] = images, merged

    def pools(self) -> dict[str, Requirements]:
        """Return the requirements of each NodePool with an EC2NodeClass."""
        return {pool: self._requirements[pool] for pool in sorted(self._class_of)}

    def zone_names(self) -> dict[str, str]:
        """Return the zone IDs by zone, of all node classes."""
        return {
            zone: id_
            for each in self.classes.values()
            for zone, id_ in zones_of(each.status).items()
            if id_
        }

    def _note_change(self) -> None:
        self.changes += 1
        self._changed.set()

    def listen(self, listener: OnClass) -> None:
        """Call a listener with the old and the new node class of each further change."""
        self._listeners.append(listener)

    def find(self, name: str) -> Ec2NodeClass | None:
        """Return a node class by name."""
        return self.classes.get(name)

    def settings(self) -> dict[str, InstanceSettings]:
        """Return the settings of instance types for each NodePool, by its node class."""
        by_class = {name: self.settings_of(each) for name, each in self.classes.items()}
        return {pool: by_class[name] for pool, name in self._class_of.items() if name in by_class}

    def pools_of(self, name: str) -> list[str]:
        """Return the names of the NodePools that use a node class."""
        return sorted(pool for pool, each in self._class_of.items() if each == name)

    def requirements_of(self, name: str) -> list[Requirements]:
        """Return the requirements of the NodePools that use a node class."""
        return [self._requirements[pool] for pool in self.pools_of(name)]

    def settings_of(self, node_class: Ec2NodeClass) -> InstanceSettings:
        """Return the settings of instance types under a node class."""
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
            memory_discovered=self._memory.get(name, ((), {}))[1],
            full_zones=self.full_zones.get(name, frozenset()),
        )

    async def _changes(
        self, kind: Kind, read: Callable[[JsonObject], T], known: Iterable[str]
    ) -> AsyncIterator[tuple[str, T | None]]:
        unseen = set(known)
        async for change in self._feed.follow(kind, _Reader(read)):
            if isinstance(change, Synced):
                for key in sorted(unseen):
                    yield key, None
                unseen.clear()
                self._synced.add(kind)
                self._changed.set()
                continue
            unseen.discard(change.key)
            if change.unreadable is None:
                yield change.key, change.value

    def _read_class(self, obj: JsonObject) -> tuple[Ec2NodeClass, JsonObject]:
        return read_node_class(Fields(obj), reserves=self._reserves), obj

    def _put_class(self, key: str, found: tuple[Ec2NodeClass, JsonObject] | None) -> None:
        self._note_change()
        before = self.classes.get(key)
        if found is None:
            self.classes.pop(key, None)
            self.objects.pop(key, None)
        else:
            self.classes[key], self.objects[key] = found
        for listener in self._listeners:
            listener(before, self.classes.get(key))

    def _put_pool(self, key: str, pool: NodePool | None) -> None:
        if pool is None:
            self._class_of.pop(key, None)
            self._requirements.pop(key, None)
            return
        ref = pool.node_class
        self._requirements[key] = merge(collect(pool.requirements), from_labels(pool.labels))
        if (ref.group, ref.kind) == _OURS:
            self._class_of[key] = ref.name
        else:
            self._class_of.pop(key, None)


def _read_pool(obj: JsonObject) -> NodePool:
    return read_pool(Fields(obj))


FOLLOWED: Final = (EC2_NODE_CLASS, NODE_POOL)
