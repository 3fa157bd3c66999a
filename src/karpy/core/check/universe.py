"""Every domain of a label key that pods could be spread over."""

from collections.abc import Iterable, Sequence

from karpy.core.check.places import NodePlace
from karpy.core.check.scene import Scene
from karpy.core.check.wishes import tolerates
from karpy.model.constraints import Toleration
from karpy.model.pools import NodePool
from karpy.model.requirements import Requirement, collect, from_labels, merge


def domains_on_offer(
    scene: Scene,
    key: str,
    pools: Iterable[NodePool],
    tolerations: Sequence[Toleration] | None = None,
) -> frozenset[str]:
    """
    Return the domains that NodePools could open.

    With tolerations given, only NodePools count whose taints are tolerated.
    """
    found: set[str] = set()
    for pool in pools:
        if tolerations is None or tolerates(tolerations, pool.taints):
            found |= _domains_of_pool(scene, key, pool)
    return frozenset(found)


def domains_of_nodes(places: Iterable[NodePlace], key: str) -> frozenset[str]:
    """Return the domains that have nodes which stay."""
    return frozenset().union(*(each.domains(key).values for each in places if each.is_staying))


def _domains_of_pool(scene: Scene, key: str, pool: NodePool) -> set[str]:
    own = merge(collect(pool.requirements), from_labels(pool.labels)).get(key)
    found = _finite(own)
    for instance_type in scene.market.types[pool.name].values():
        if (its := instance_type.requirements.get(key)) is not None:
            found |= _finite(its if own is None else own & its)
    return found


def _finite(requirement: Requirement | None) -> set[str]:
    if requirement is None or requirement.complement:
        return set()
    return set(requirement.values)
