"""The templates of NodePools, with their types and DaemonSets (section 2)."""

from dataclasses import dataclass

from msgspec.structs import replace

from karpy.model.constraints import TOLERATE_PREFERENCES, first_untolerated
from karpy.model.instances import InstanceType, Offering, allocatable
from karpy.model.labels import INITIALIZED, NODE_POOL, REGISTERED
from karpy.model.pods import DaemonSet, HostPort, Pod
from karpy.model.pools import NodePool
from karpy.model.requirements import (
    Requirement,
    Requirements,
    collect,
    from_labels,
    merge,
    one_of,
    why_disjoint,
    why_incompatible,
)
from karpy.model.resources import Resources, add, fits
from karpy.model.settings import MinValuesPolicy
from karpy.model.snapshot import Snapshot
from tests.reference.ladder import alternatives


@dataclass(frozen=True)
class Template:
    """A NodePool in use: the requirements of its nodes, the remaining types, their DaemonSets."""

    pool: NodePool
    requirements: Requirements
    types: list[InstanceType]
    daemons: dict[str, list[DaemonSet]]
    """By type name."""

    def daemon_requests(self, kind: InstanceType) -> dict[str, int]:
        return add(*(daemon.pod.requests for daemon in self.daemons[kind.name]))

    def daemon_ports(self, kind: InstanceType) -> list[HostPort]:
        return [port for daemon in self.daemons[kind.name] for port in daemon.pod.rules.ports]


def pools_in_use(snapshot: Snapshot) -> list[NodePool]:
    """Return dynamic, ready, active pools by weight, highest first, then by name, last first."""
    pools = [
        pool
        for pool in snapshot.pools
        if pool.is_ready and not pool.is_static and not pool.is_deleting
    ]
    return sorted(pools, key=lambda pool: (pool.weight, pool.name), reverse=True)


def own_requirements(pool: NodePool) -> dict[str, Requirement]:
    """Return the requirements and the labels of a pool as requirements."""
    return merge(collect(pool.requirements), from_labels(pool.labels))


def template_requirements(pool: NodePool) -> dict[str, Requirement]:
    """Return all requirements that nodes of a pool satisfy."""
    promises = [
        one_of(NODE_POOL, pool.name),
        one_of(REGISTERED, "true"),
        one_of(INITIALIZED, "true"),
    ]
    reference = pool.node_class
    if reference.group and reference.kind and reference.name:
        promises.append(one_of(f"{reference.group}/{reference.kind.lower()}", reference.name))
    return merge(own_requirements(pool), collect(promises))


def make_templates(
    snapshot: Snapshot, types: dict[str, tuple[InstanceType, ...]]
) -> list[Template]:
    """Return the templates of pools in use with at least one type, in order."""
    templates = [_template(pool, snapshot, types[pool.name]) for pool in pools_in_use(snapshot)]
    return [template for template in templates if template.types]


def _template(pool: NodePool, snapshot: Snapshot, types: tuple[InstanceType, ...]) -> Template:
    requirements = template_requirements(pool)
    well_known = snapshot.catalog.well_known
    fitting = [
        kind
        for kind in types
        if not why_disjoint(requirements, kind.requirements)
        and compatible_offerings(kind, requirements, well_known)
    ]
    if lacking(fitting, requirements):
        if snapshot.settings.min_values_policy is MinValuesPolicy.STRICT:
            fitting = []
        requirements = lowered(fitting, requirements)
    daemons: dict[str, list[DaemonSet]] = {kind.name: [] for kind in fitting}
    for daemon in sorted(snapshot.daemons, key=lambda each: daemon_order(each.pod)):
        where = [
            kind for kind in fitting if _comes_along(daemon, pool, requirements, kind, well_known)
        ]
        requests = {
            kind.name: add(*(each.pod.requests for each in [*daemons[kind.name], daemon]))
            for kind in where
        }
        # No room is kept for a DaemonSet that fits on no type.
        if any(
            roomy_offerings(kind, requests[kind.name], requirements, well_known) for kind in where
        ):
            for kind in where:
                daemons[kind.name].append(daemon)
    return Template(pool, requirements, fitting, daemons)


def daemon_order(pod: Pod) -> tuple[bool, int, int, int, str]:
    """Return the sort key of DaemonSet pods: the first ones count if not all fit."""
    about, asks = pod.disruption, pod.requests
    cpu, memory = asks.get("cpu", 0), asks.get("memory", 0)
    return not about.is_critical, -about.priority, cpu, memory, pod.key


def _comes_along(
    daemon: DaemonSet,
    pool: NodePool,
    requirements: Requirements,
    kind: InstanceType,
    well_known: frozenset[str],
) -> bool:
    tolerations = (*daemon.pod.rules.tolerations, TOLERATE_PREFERENCES)
    if first_untolerated(pool.taints, tolerations):
        return False
    return any(
        not why_incompatible(requirements, wanted, well_known)
        and not why_disjoint(kind.requirements, wanted)
        for wanted in alternatives(daemon.pod.rules)
    )


# --- offerings and room ----------------------------------------------------------------------


def compatible_offerings(
    kind: InstanceType, requirements: Requirements, well_known: frozenset[str]
) -> list[Offering]:
    """Return the available offerings of a type that satisfy requirements."""
    return [
        offering
        for offering in kind.offerings
        if offering.is_available
        and why_incompatible(requirements, offering.requirements, well_known) is None
    ]


def roomy_offerings(
    kind: InstanceType, total: Resources, requirements: Requirements, well_known: frozenset[str]
) -> list[Offering]:
    """Return the available compatible offerings of a type whose machines have room for a total."""
    # Offerings with equal overrides have the same capacity, as a group of the page.
    return [
        offering
        for offering in compatible_offerings(kind, requirements, well_known)
        if fits(
            total,
            allocatable(
                {**kind.capacity, **offering.capacity_override},
                {**kind.overhead, **offering.overhead_override},
            ),
        )
    ]


# --- minValues -------------------------------------------------------------------------------


def variety(types: list[InstanceType], requirement: Requirement) -> int:
    """Count the values of a requirement that some type has."""
    values: set[str] = set()
    for kind in types:
        have = kind.requirements.get(requirement.key)
        if have is not None and not have.complement:
            values |= {value for value in have.values if value in requirement}
    return len(values)


def lacking(types: list[InstanceType], requirements: Requirements) -> dict[str, int]:
    """Return the keys whose minValues are not met, with the number of their values."""
    result = {}
    for key, requirement in requirements.items():
        if requirement.min_values is not None:
            count = variety(types, requirement)
            if count < requirement.min_values:
                result[key] = count
    return result


def lowered(types: list[InstanceType], requirements: Requirements) -> dict[str, Requirement]:
    """Return the requirements with minValues lowered to the number of values."""
    counts = lacking(types, requirements)
    return {
        key: replace(requirement, min_values=counts[key]) if key in counts else requirement
        for key, requirement in requirements.items()
    }
