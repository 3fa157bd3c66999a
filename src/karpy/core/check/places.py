"""Where pods are or will be: the nodes that exist, and the launches of a plan."""

from collections.abc import Sequence
from functools import cached_property
from typing import TypeAlias

from karpy.core.check.domains import Domains, as_domains
from karpy.core.check.market import Bargain, Room, Stock, find_bargain
from karpy.core.check.wishes import Wish, is_granted
from karpy.model.labels import HOSTNAME, INSTANCE_TYPE, normalise
from karpy.model.nodes import Node
from karpy.model.pods import Pod
from karpy.model.requirements import Requirement, one_of
from karpy.model.resources import Resources, add, fits
from karpy.model.verdicts import Launch


class NodePlace:
    """A node that exists or is on its way: each label has one value."""

    def __init__(self, node: Node, bound: Sequence[Pod], pods: Sequence[Pod]) -> None:
        self.name = node.name
        self.node = node
        self.taints = node.taints
        self.bound = tuple(bound)
        """Those already there, without those that a deleting node drives out."""
        self.pods = tuple(pods)
        """Those that the plan puts there."""
        current = {normalise(key): value for key, value in node.labels.items()}
        self._labels = {**current, **node.labels, HOSTNAME: node.hostname}

    @property
    def is_staying(self) -> bool:
        return not self.node.is_deleting

    def values(self, key: str) -> Requirement | None:
        value = self._labels.get(key)
        return None if value is None else one_of(key, value)

    def meets(self, wish: Wish) -> bool:
        """Say whether the labels are sure to grant a wish."""
        return is_granted(wish, self.values)

    def may_meet(self, wish: Wish) -> bool:
        return self.meets(wish)

    def domains(self, key: str) -> Domains:
        """Say where the node is."""
        return as_domains(self.values(key))

    def stated(self, key: str) -> Domains:
        return self.domains(key)


class LaunchPlace:
    """A node yet to be made: any machine of its options."""

    bound: tuple[Pod, ...] = ()
    is_staying = True

    def __init__(self, launch: Launch, stock: Stock, pods: Sequence[Pod]) -> None:
        self.name = launch.name
        self.launch = launch
        self.stock = stock
        self.taints = stock.pool.taints
        self.pods = tuple(pods)
        self._domains: dict[str, Domains] = {}

    @cached_property
    def types(self) -> tuple[str, ...]:
        """The options that are types of the pool and can be had; others are reported elsewhere."""
        own = self.launch.requirements.get(INSTANCE_TYPE)
        names = [option.instance_type for option in self.launch.options]
        return tuple(
            name for name in names if (own is None or name in own) and self.stock.machines(name)
        )

    def rooms(self, name: str) -> tuple[Room, ...]:
        """
        List the rooms of an option that the cloud may pick.

        Where the offerings of a type differ in size, the cloud is taken to leave out those too
        small for the pods and the daemons of the type. Of one size it leaves out none: it knows
        nothing of daemons that run in some zones only. If no size is large enough for the daemons
        of the type, those count that are for the daemons they have; if none is, all are listed, and
        that is a breach.
        """
        rooms = self.stock.rooms(name)
        if len(rooms) == 1:
            return rooms
        expected = self.stock.daemons_expected(name)
        sizes = [room.allocatable for room in rooms if self._is_enough(room, expected)]
        if not sizes:
            sizes = [
                room.allocatable for room in rooms if self._is_enough(room, room.daemon_requests)
            ]
        return tuple(room for room in rooms if room.allocatable in sizes) or rooms

    def _is_enough(self, room: Room, daemons: Resources) -> bool:
        return fits(add(daemons, *(pod.requests for pod in self.pods)), room.allocatable)

    def bargain(self, name: str) -> Bargain:
        """Return the lowest price of an option among the machines that the cloud may pick."""
        if not self.stock.is_mixed(name):
            return self.stock.bargain(name)
        enough = [room.allocatable for room in self.rooms(name)]
        return find_bargain(
            [each for each in self.stock.machines(name) if each.allocatable in enough]
        )

    @cached_property
    def _type_set(self) -> frozenset[str]:
        return frozenset(self.types)

    def lacking(self, wish: Wish) -> list[str]:
        """Return the options that may not grant a wish, in order."""
        failing = self.stock.lacking(wish)
        if self._type_set.isdisjoint(failing):
            return []
        return [name for name in self.types if name in failing]

    def meets(self, wish: Wish) -> bool:
        """Say whether the labels are sure to grant a wish, whatever the cloud picks."""
        return not self.lacking(wish)

    def may_meet(self, wish: Wish) -> bool:
        """Say whether the requirements of the launch leave room for a wish, be it sold or not."""
        return self.stock.leaves_open(wish)

    def domains(self, key: str) -> Domains:
        """Say where the node may come up, whatever the cloud picks."""
        if key == HOSTNAME:
            return Domains(frozenset({self.name}))
        if key not in self._domains:
            self._domains[key] = self.stock.domains(key, self.types)
        return self._domains[key]

    def stated(self, key: str) -> Domains:
        """Say where the requirements let it come up, sold there or not."""
        return as_domains(self.stock.granted.get(key))


Place: TypeAlias = NodePlace | LaunchPlace
