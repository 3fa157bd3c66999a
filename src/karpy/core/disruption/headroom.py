"""
Whether NodePools have room for the replacements of a command, just before these are launched.

The command was decided on a moment ago, and provisioning may have launched nodes since.
"""

from msgspec import Struct

from karpy.model.commands import Command
from karpy.model.instances import Catalog
from karpy.model.nodes import Node
from karpy.model.resources import NODES
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Launch


class Headroom(Struct, frozen=True, gc=False):
    """What the limits of NodePools say to the replacements of a command."""

    exceeded: str = ""
    """The NodePool that would exceed its limits; empty if none does."""
    is_known: bool = True
    """Whether all machines of these NodePools are there; until then their size is unknown."""


# Differs: limits of a NodePool when a replacement is launched: Karpenter checks them when it
# decides and no more; Karpy checks them again, because provisioning may have launched nodes since.
def find_headroom(command: Command, snapshot: Snapshot) -> Headroom:
    """Compare the limits of NodePools with what they have, and with the replacements."""
    launches = [each.launch for each in command.replacements if each.launch.options]
    pools = {each.pool for each in launches}
    left = {each.name: dict(each.limits) for each in snapshot.pools if each.name in pools}
    for node in snapshot.nodes:
        if node.pool in left and not node.is_deleting and node.claim not in command.claims:
            if left[node.pool] and not _has_machine(node):
                return Headroom(is_known=False)
            for resource in left[node.pool]:
                left[node.pool][resource] -= node.capacity.get(resource, 0)
    for launch in launches:
        for resource in left.get(launch.pool, ()):
            left[launch.pool][resource] -= _largest(resource, launch, snapshot.catalog)
    beyond = (
        name for name, amounts in sorted(left.items()) if min(amounts.values(), default=0) < 0
    )
    return Headroom(next(beyond, ""))


def _has_machine(node: Node) -> bool:
    return any(resource != NODES for resource in node.capacity)


def _largest(resource: str, launch: Launch, catalog: Catalog) -> int:
    """Return the most that any type of a launch has of a resource."""
    if resource == NODES:
        return 1
    names = {each.instance_type for each in launch.options}
    types = (each for each in catalog.types_for(launch.pool) if each.name in names)
    return max((each.capacity.get(resource, 0) for each in types), default=0)
