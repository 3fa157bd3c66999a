"""Templates of NodePools: what a new node of each may be, and what daemons take of it."""

from collections.abc import Mapping, Sequence

from karpy.core.scheduling.instancetypes import Thresholds, dense_members
from karpy.core.scheduling.relaxation import alternatives_of
from karpy.core.scheduling.signatures import Signatures, reached, relax
from karpy.model.conditions import FALSE, Conditions
from karpy.model.constraints import (
    PREFER_NO_SCHEDULE,
    TOLERATE_PREFERENCES,
    Taint,
    first_untolerated,
)
from karpy.model.instances import InstanceType
from karpy.model.labels import INITIALIZED, NODE_POOL, REGISTERED
from karpy.model.pods import DaemonSet, HostPort, Pod
from karpy.model.pools import NodePool
from karpy.model.requirements import Requirement, Requirements, collect, one_of, why_incompatible
from karpy.model.resources import Resources, add
from karpy.model.settings import MinValuesPolicy
from karpy.model.verdicts import Constraint, Exclusion, PoolNotice

SIMULATED = frozenset({REGISTERED, INITIALIZED})
"""Labels that a template has only so that DaemonSets which select them are counted."""


class DaemonGroup:
    """Types of a pool that the same daemons run on."""

    __slots__ = ("mask", "overhead", "ports")

    def __init__(self, mask: int, overhead: Resources, ports: tuple[HostPort, ...]) -> None:
        self.mask = mask
        self.overhead = overhead
        self.ports = ports


class _Rooms(dict[str, Thresholds]):
    """What each type leaves for pods beside its daemons, by resource; computed on first use."""

    __slots__ = ("_allocatable", "groups")

    def __init__(self, allocatable: Sequence[Resources]) -> None:
        self._allocatable = allocatable
        self.groups: list[DaemonGroup] = []

    def __missing__(self, resource: str) -> Thresholds:
        allocatable = self._allocatable
        amounts: list[tuple[int, int]] = []
        for group in self.groups:
            taken = group.overhead.get(resource, 0)
            bits = dense_members(group.mask)
            amounts += [(bit, allocatable[bit].get(resource, 0) - taken) for bit in bits]
        table = self[resource] = Thresholds(amounts)
        return table


class Template:
    """A NodePool made ready for new claims."""

    def __init__(
        self, pool: NodePool, signature: int, mask: int, allocatable: Sequence[Resources]
    ) -> None:
        self.index = 0
        self.pool = pool
        self.name = pool.name
        self.taints = pool.taints
        self.signature = signature
        """The signature of the requirements of the pool."""
        self.mask = mask
        """Types that meet the requirements of the pool."""
        self.is_relaxed = False
        """Whether the pool's own minValues had to be lowered."""
        self.rooms = _Rooms(allocatable)
        """What each type leaves for pods, by resource."""
        self.groups = self.rooms.groups
        self.has_daemons = False
        self.roomy = mask
        """Types that have room for all their daemons."""
        self.node_labels: dict[str, str] = {}

    def least_overhead(self, mask: int) -> Resources:
        """Return the least that daemons take on any type of a mask."""
        if not self.has_daemons:
            return {}
        overheads = [group.overhead for group in self.groups if group.mask & mask]
        if not overheads:
            return {}
        shared = set(overheads[0]).intersection(*overheads[1:])
        return {name: min(each[name] for each in overheads) for name in sorted(shared)}

    def without_port_clash(self, ports: Sequence[HostPort]) -> int:
        """Return the types whose daemons use none of these host ports."""
        mask = 0
        for group in self.groups:
            if not any(port.clashes_with(taken) for port in ports for taken in group.ports):
                mask |= group.mask
        return mask


def template_requirements(pool: NodePool) -> dict[str, Requirement]:
    """Return the requirements and labels of a pool as requirements on its nodes."""
    parts = [*pool.requirements]
    parts += [one_of(key, value) for key, value in pool.labels.items()]
    parts.append(one_of(NODE_POOL, pool.name))
    ref = pool.node_class
    if ref.group and ref.kind and ref.name:
        parts.append(one_of(f"{ref.group}/{ref.kind.lower()}", ref.name))
    parts += [one_of(key, "true") for key in sorted(SIMULATED)]
    return collect(parts)


def usable_pools(pools: Sequence[NodePool]) -> tuple[list[NodePool], list[PoolNotice]]:
    """Return pools that launch nodes for pods, first choice first, and notices of the others."""
    usable: list[NodePool] = []
    notices: list[PoolNotice] = []
    for pool in sorted(
        sorted(pools, key=lambda each: each.name, reverse=True), key=lambda each: -each.weight
    ):
        why = _why_unusable(pool)
        if why is None:
            usable.append(pool)
        else:
            notices.append(PoolNotice(pool.name, Exclusion(why, _detail_of(why, pool), 0)))
    return usable, notices


def _why_unusable(pool: NodePool) -> Constraint | None:
    if pool.is_deleting:
        return Constraint.POOL_DELETING
    if pool.is_static:
        return Constraint.POOL_STATIC
    return None if pool.is_ready else Constraint.POOL_NOT_READY


def _detail_of(why: Constraint, pool: NodePool) -> str:
    """Return the message of the condition by which a NodePool is not ready; else its name."""
    if why is not Constraint.POOL_NOT_READY:
        return pool.name
    conditions = Conditions() if pool.record is None else pool.record.conditions
    said = (
        f"{each.type}: {each.message or each.reason}"
        for each in conditions.items
        if each.status == FALSE and each.type in conditions.dependents
    )
    return next(said, f"see `kubectl describe nodepool {pool.name}`")


def build_template(
    pool: NodePool,
    types: Sequence[InstanceType],
    signatures: Signatures,
    policy: MinValuesPolicy,
) -> Template | Exclusion:
    """Return the template of a pool, or why none of its types can be launched."""
    table = signatures.table
    signature = signatures.intern(template_requirements(pool))
    mask = signatures.masks[signature] & table.mask_of(types) & table.sound
    is_relaxed = False
    if mask and signatures.varieties[signature]:
        lacking = reached(signatures, signature, mask)
        if lacking and policy is MinValuesPolicy.STRICT:
            detail = ", ".join(f"{key}: {count} values on offer" for key, count in lacking.items())
            return Exclusion(Constraint.MIN_VALUES, detail, len(types))
        if lacking:
            signature = relax(signatures, signature, lacking)
            is_relaxed = True
    if not mask:
        detail = _why_empty(pool, table.mask_of(types) & table.sound, signatures)
        return Exclusion(Constraint.POOL_EMPTY, detail, len(types))
    template = Template(pool, signature, mask, table.allocatable)
    template.is_relaxed = is_relaxed
    return template


def _why_empty(pool: NodePool, types: int, signatures: Signatures) -> str:
    """Return the requirement that leaves no type, alone or after the requirements before it."""
    if not types:
        return "the catalog has no type for it"
    table = signatures.table
    written = [*pool.requirements, *(one_of(key, each) for key, each in pool.labels.items())]
    for each in written:
        if not types & table.allowing(each):
            return str(each)
    narrowing: list[str] = []
    for each in written:
        left = types & table.allowing(each)
        if not left:
            return f"{each}, after {', '.join(narrowing)}"
        if left != types:
            narrowing.append(str(each))
            types = left
    return f"nothing is on sale that meets {', '.join(narrowing) or 'them'}"


def assign_daemons(
    template: Template, daemons: Sequence[DaemonSet], signatures: Signatures
) -> None:
    """Set which daemons run on which types of a template, and what they leave for pods."""
    requirements = signatures.requirements[template.signature]
    running = [
        (daemon.pod, where)
        for daemon in daemons
        if (where := _daemon_mask(daemon.pod, template, requirements, signatures))
    ]
    _run_daemons(template, running)
    if any(not where & template.roomy for _, where in running):
        # Differs: a DaemonSet whose pod no type of a NodePool has room for: Karpenter launches
        # nothing there any more, for any pod; Karpy leaves it out, as kube-scheduler will.
        _run_daemons(template, _that_fit(running, template.mask, signatures.table.allocatable))


def _run_daemons(template: Template, running: Sequence[tuple[Pod, int]]) -> None:
    """Set the daemons of a template, each with the types that it runs on."""
    groups: list[tuple[int, list[Pod]]] = [(template.mask, [])]
    for pod, where in running:
        split = [(mask & where, [*pods, pod]) for mask, pods in groups]
        split += [(mask & ~where, pods) for mask, pods in groups]
        groups = [(mask, pods) for mask, pods in split if mask]
    template.rooms.clear()
    template.groups[:] = [
        DaemonGroup(
            mask,
            add(*(pod.requests for pod in pods)),
            tuple(port for pod in pods for port in pod.rules.ports),
        )
        for mask, pods in groups
    ]
    template.has_daemons = any(group.overhead for group in template.groups)
    template.roomy = template.mask
    for group in template.groups:
        for resource in group.overhead:
            fits = template.rooms[resource].reaching(0)
            template.roomy &= fits | ~group.mask


def _that_fit(
    running: Sequence[tuple[Pod, int]], types: int, allocatable: Sequence[Resources]
) -> list[tuple[Pod, int]]:
    """Return the daemons, in their order, that some type has room for beside those before."""
    rooms = _Rooms(allocatable)
    rooms.groups.append(DaemonGroup(types, {}, ()))
    fitting: list[tuple[Pod, int]] = []
    groups: list[tuple[int, Resources]] = [(types, {})]
    for pod, where in sorted(running, key=lambda each: daemon_order(each[0])):
        split: list[tuple[int, Resources]] = [
            (mask & where, add(total, pod.requests)) for mask, total in groups
        ]
        if not any(_having(rooms, mask, total) for mask, total in split):
            continue
        fitting.append((pod, where))
        split += [(mask & ~where, total) for mask, total in groups]
        groups = [(mask, total) for mask, total in split if mask]
    return fitting


def _having(rooms: Mapping[str, Thresholds], types: int, total: Resources) -> int:
    for resource, amount in total.items():
        if types:
            types &= rooms[resource].reaching(amount)
    return types


def daemon_order(pod: Pod) -> tuple[bool, int, int, int, str]:
    """Return a sort key for pods of DaemonSets: the first ones count if not all have room."""
    about, asks = pod.disruption, pod.requests
    cpu, memory = asks.get("cpu", 0), asks.get("memory", 0)
    return not about.is_critical, -about.priority, cpu, memory, pod.key


def _daemon_mask(
    pod: Pod, template: Template, requirements: Requirements, signatures: Signatures
) -> int:
    tolerations = (*pod.rules.tolerations, TOLERATE_PREFERENCES)
    if first_untolerated(template.taints, tolerations) is not None:
        return 0
    mask = 0
    for wanted in daemon_terms(pod):
        if why_incompatible(requirements, wanted, signatures.table.well_known) is None:
            suited = template.mask
            for requirement in wanted.values():
                suited &= signatures.table.allowing(requirement)
            mask |= suited
    return mask


def daemon_terms(pod: Pod) -> list[dict[str, Requirement]]:
    """Return the node selector of a daemon joined with each required node affinity term."""
    return alternatives_of(pod.rules.node_selector, pod.rules.required_node_terms)


def labels_asked_for(daemons: Sequence[DaemonSet]) -> frozenset[str]:
    """Return the labels that some DaemonSet has a requirement on."""
    terms = (each for daemon in daemons for each in daemon_terms(daemon.pod))
    return frozenset(key for each in terms for key in each)


class PoolDomains:
    """The domains of label keys in which pools launch nodes, with the taints of these nodes."""

    def __init__(
        self, pools: Sequence[NodePool], types_of: Mapping[str, Sequence[InstanceType]]
    ) -> None:
        self._pools = [(pool, template_requirements(pool), types_of[pool.name]) for pool in pools]
        self._known: dict[str, dict[str, list[tuple[Taint, ...]]]] = {}

    def of(self, key: str) -> Mapping[str, list[tuple[Taint, ...]]]:
        """Return by domain of a key the taints of each pool that launches nodes in it."""
        domains = self._known.get(key)
        if domains is None:
            domains = self._known[key] = {}
            offered: dict[int, list[Requirement]] = {}
            for pool, requirements, types in self._pools:
                # Pools with the same types share what these types offer.
                if id(types) not in offered:
                    offered[id(types)] = _requirements_on(key, types)
                own = None if key in SIMULATED else requirements.get(key)
                for value in _values(own, offered[id(types)]):
                    domains.setdefault(value, []).append(pool.taints)
        return domains


def _requirements_on(key: str, types: Sequence[InstanceType]) -> list[Requirement]:
    found = (kind.requirements.get(key) for kind in types)
    return list({id(each): each for each in found if each is not None}.values())


def _values(own: Requirement | None, offered: Sequence[Requirement]) -> set[str]:
    values = set() if own is None or own.complement else set(own.values)
    for requirement in offered:
        allowed = requirement if own is None else requirement & own
        if not allowed.complement:
            values.update(allowed.values)
    return values


def has_soft_taint(pools: Sequence[NodePool]) -> bool:
    """Say whether some pool has a PreferNoSchedule taint."""
    return any(taint.effect == PREFER_NO_SCHEDULE for pool in pools for taint in pool.taints)
