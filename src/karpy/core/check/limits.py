"""Whether NodePools stay within their limits, and launches within their reservations."""

from collections import Counter
from collections.abc import Iterator, Mapping

from karpy.core.check.breaches import Breach, Rule
from karpy.core.check.places import LaunchPlace
from karpy.core.check.scene import Scene
from karpy.model.labels import CAPACITY_TYPE, RESERVED
from karpy.model.pools import NodePool
from karpy.model.resources import NODES, format_quantity


def check_limits(scene: Scene) -> Iterator[Breach]:
    """
    Compare each limit with the nodes of the NodePool and the launches of the plan.

    Nodes that are being deleted do not count. A launch counts with the largest machine it may
    become, resource by resource, since the cloud may pick any of them. A NodePool that
    is over its limit already is a breach only if the plan adds to it.
    """
    for pool in scene.market.pools.values():
        for resource, limit in sorted(pool.limits.items()):
            there, added = _used(scene, pool, resource)
            if added and there + added > limit:
                amounts = (format_quantity(each, resource) for each in (there, added, limit))
                detail = "{}: {} there, {} more, at most {}".format(resource, *amounts)
                yield Breach(Rule.LIMIT, pool.name, detail=detail)


def remaining(scene: Scene, pool: NodePool) -> dict[str, int]:
    """Return what the plan leaves of each limit of a NodePool."""
    return {
        resource: limit - sum(_used(scene, pool, resource))
        for resource, limit in pool.limits.items()
    }


def _used(scene: Scene, pool: NodePool, resource: str) -> tuple[int, int]:
    """Return how much of a resource the nodes of a NodePool have, and its launches may add."""
    nodes = [each.node for each in scene.nodes if each.is_staying and each.node.pool == pool.name]
    launches = [each for each in scene.launches if each.launch.pool == pool.name]
    if resource == NODES:
        return len(nodes), len(launches)
    there = sum(node.capacity.get(resource, 0) for node in nodes)
    return there, sum(_largest(launch, resource) for launch in launches)


def _largest(place: LaunchPlace, resource: str) -> int:
    return max((place.stock.most(resource, name) for name in place.types), default=0)


def check_reservations(scene: Scene) -> Iterator[Breach]:
    """
    Count the launches that hold each reservation.

    A launch that holds some must insist on them, or it might be given something else while
    others wait.
    """
    label = scene.snapshot.catalog.reservation_label
    for launch in scene.verdict.launches:
        wanted = {CAPACITY_TYPE: {RESERVED}} | ({label: set(launch.reservations)} if label else {})
        for key, values in wanted.items() if launch.reservations else ():
            stated = launch.requirements.get(key)
            if stated is None or stated.complement or stated.values != values:
                yield Breach(Rule.RESERVATION, launch.name, detail=f"does not insist on {key}")
    capacity = _reservation_capacity(scene)
    holders = Counter(each for launch in scene.verdict.launches for each in launch.reservations)
    for name, count in sorted(holders.items()):
        if count > capacity.get(name, 0):
            detail = f"{count} launches, room for {capacity.get(name, 0)}"
            yield Breach(Rule.RESERVATION, name, detail=detail)


def _reservation_capacity(scene: Scene) -> Mapping[str, int]:
    """Return how many machines each reservation has left: the least that any offering says."""
    if not scene.snapshot.settings.reserved_capacity:
        return {}
    capacity: dict[str, int] = {}
    for types in scene.market.types.values():
        for offering in (offering for each in types.values() for offering in each.offerings):
            if offering.reservation_id:
                known = capacity.get(offering.reservation_id, offering.reservation_capacity)
                capacity[offering.reservation_id] = min(known, offering.reservation_capacity)
    return capacity
