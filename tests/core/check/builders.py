"""Small values for tests of the checker, and plans made by hand."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple, Unpack

from msgspec.structs import replace

from karpy.core.check.breaches import Breach, Rule
from karpy.core.check.plan import check_plan
from karpy.model.constraints import AffinityTerm, LabelSelector, SpreadConstraint
from karpy.model.instances import Catalog, InstanceType, Offering
from karpy.model.labels import (
    ARCH,
    CAPACITY_TYPE,
    HOSTNAME,
    INSTANCE_TYPE,
    NODE_POOL,
    ON_DEMAND,
    RESERVED,
    WELL_KNOWN,
    ZONE,
)
from karpy.model.nodes import Node
from karpy.model.pods import DAEMON_SET, DaemonSet, Owner, Pod, PodRules
from karpy.model.pools import NodePool
from karpy.model.requirements import Requirement, Requirements, one_of
from karpy.model.resources import Resources, add, parse_quantity
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Launch, LaunchOption, Nomination, Reason, Refusal, Verdict
from tests.core.check.fields import (
    LaunchFields,
    NodeFields,
    OfferingFields,
    PoolFields,
    RuleFields,
    SnapshotFields,
    SpreadFields,
    TypeFields,
)

NOON: Final = datetime(2026, 11, 16, 12, tzinfo=UTC)
RESERVATION: Final = "example.com/reservation"
ZONES: Final = ("a", "b", "c")


class World(NamedTuple):
    """A snapshot and a verdict about it."""

    snapshot: Snapshot
    verdict: Verdict = Verdict()

    def breaches(self) -> tuple[Breach, ...]:
        return check_plan(self.snapshot, self.verdict)

    def rules(self) -> set[Rule]:
        return {breach.rule for breach in self.breaches()}


def amounts(**texts: str) -> dict[str, int]:
    return {name: parse_quantity(text, name) for name, text in texts.items()}


def pod(
    name: str,
    cpu: str = "1",
    *,
    labels: Mapping[str, str] | None = None,
    **rules: Unpack[RuleFields],
) -> Pod:
    """Make a pending pod; set other fields (node_name, phase …) with `replace`."""
    return Pod(
        name=name,
        namespace="shop",
        uid=name,
        created=NOON,
        labels=labels or {},
        requests=amounts(cpu=cpu, memory="1Gi", pods="1"),
        rules=PodRules(**rules),
        is_unschedulable=True,
    )


def bound(pod: Pod, node: str) -> Pod:
    return replace(pod, node_name=node, is_unschedulable=False)


def daemon(name: str, cpu: str = "100m", **rules: Unpack[RuleFields]) -> DaemonSet:
    return DaemonSet(name, "kube-system", pod(name, cpu, **rules))


def daemon_pod(name: str, node: str, cpu: str = "100m") -> Pod:
    return replace(bound(pod(name, cpu), node), owners=(Owner(*DAEMON_SET, name),))


def offering(
    zone: str, price: int, capacity_type: str = ON_DEMAND, **others: Unpack[OfferingFields]
) -> Offering:
    requirements = {
        ZONE: one_of(ZONE, zone),
        CAPACITY_TYPE: one_of(CAPACITY_TYPE, capacity_type),
    }
    if name := others.get("reservation_id"):
        requirements[RESERVATION] = one_of(RESERVATION, name)
    return Offering(requirements, price, **others)


def instance_type(
    name: str,
    cpu: int,
    offerings: Iterable[Offering] | None = None,
    requirements: Requirements | None = None,
    **others: Unpack[TypeFields],
) -> InstanceType:
    """Make a type with on-demand offerings in three zones, at 100 micro-dollars per core."""
    offered = tuple(offerings or (offering(zone, cpu * 100) for zone in ZONES))
    known = {
        INSTANCE_TYPE: one_of(INSTANCE_TYPE, name),
        ARCH: one_of(ARCH, "amd64"),
        ZONE: one_of(ZONE, *(each.zone for each in offered)),
        CAPACITY_TYPE: one_of(CAPACITY_TYPE, *(each.capacity_type for each in offered)),
        **(requirements or {}),
    }
    capacity = amounts(cpu=str(cpu), memory=f"{4 * cpu}Gi", pods="110")
    return InstanceType(name, known, offered, capacity, **others)


SMALL: Final = instance_type("small", 2)
MEDIUM: Final = instance_type("medium", 4)
LARGE: Final = instance_type("large", 8)


def catalog(*types: InstanceType, **by_pool: tuple[InstanceType, ...]) -> Catalog:
    return Catalog(
        types or (SMALL, MEDIUM, LARGE),
        by_pool=by_pool,
        well_known=WELL_KNOWN | {RESERVATION},
        reservation_label=RESERVATION,
    )


def pool(name: str = "web", *requirements: Requirement, **others: Unpack[PoolFields]) -> NodePool:
    return NodePool(name, requirements=requirements, **others)


def node(
    name: str,
    zone: str = "a",
    cpu: str = "8",
    *,
    labels: Mapping[str, str] | None = None,
    **others: Unpack[NodeFields],
) -> Node:
    known = {
        HOSTNAME: name,
        ZONE: zone,
        NODE_POOL: "web",
        INSTANCE_TYPE: "large",
        ARCH: "amd64",
        **(labels or {}),
    }
    resources = amounts(cpu=cpu, memory="32Gi", pods="110")
    return Node(name, known, capacity=resources, allocatable=resources, **others)


def option(of_type: InstanceType, zone: str = "a", capacity_type: str = ON_DEMAND) -> LaunchOption:
    """Make an option of a type at its price in a zone."""
    price = min(
        each.price
        for each in of_type.offerings
        if (each.zone, each.capacity_type) == (zone, capacity_type)
    )
    return LaunchOption(of_type.name, price, zone, capacity_type)


def launch(
    name: str,
    pods: Iterable[Pod],
    *requirements: Requirement,
    options: Iterable[InstanceType | LaunchOption] = (MEDIUM, LARGE),
    pool: str = "web",
    resources: Resources | None = None,
    **others: Unpack[LaunchFields],
) -> Launch:
    """Make a launch that states what its pods request and nothing more."""
    pods = tuple(pods)
    stated = {NODE_POOL: one_of(NODE_POOL, pool)} | {each.key: each for each in requirements}
    zone = min(stated[ZONE].values) if ZONE in stated else "a"
    offered = (each if isinstance(each, LaunchOption) else option(each, zone) for each in options)
    return Launch(
        name=name,
        pool=pool,
        pods=tuple(each.key for each in pods),
        requirements=stated,
        resources=add(*(each.requests for each in pods)) if resources is None else resources,
        options=tuple(offered),
        **others,
    )


def in_zone(*zones: str) -> Requirement:
    return one_of(ZONE, *zones)


def app(name: str) -> LabelSelector:
    return LabelSelector((one_of("app", name),))


def near(name: str, key: str = ZONE) -> AffinityTerm:
    return AffinityTerm(key, app(name))


def even(
    name: str, key: str = ZONE, max_skew: int = 1, **others: Unpack[SpreadFields]
) -> SpreadConstraint:
    return SpreadConstraint(key, max_skew, selector=app(name), **others)


def refusal(*pods: Pod) -> Refusal:
    return Refusal(Reason.NO_HOST, tuple(each.key for each in pods))


def world(
    *launches: Launch,
    pods: Iterable[Pod] = (),
    nominations: Mapping[str, Iterable[Pod]] | None = None,
    refused: Iterable[Pod] = (),
    **snapshot: Unpack[SnapshotFields],
) -> World:
    """Make a verdict, and a snapshot with pool `web` and three types by default."""
    named = tuple(
        Nomination(name, tuple(each.key for each in theirs))
        for name, theirs in (nominations or {}).items()
    )
    refused = tuple(refused)
    given: SnapshotFields = {"pools": (pool(),), "catalog": catalog(), **snapshot}
    return World(
        Snapshot(NOON, pods=tuple(pods), **given),
        Verdict(launches, named, (refusal(*refused),) if refused else ()),
    )


def on_launch(
    *pods: Pod,
    requirements: Iterable[Requirement] = (),
    options: Iterable[InstanceType | LaunchOption] = (MEDIUM, LARGE),
    resources: Resources | None = None,
    **snapshot: Unpack[SnapshotFields],
) -> World:
    planned = launch("l1", pods, *requirements, options=options, resources=resources)
    return world(planned, pods=pods, **snapshot)


def on_node(
    *pods: Pod,
    there: Iterable[Pod] = (),
    present_node: Node | None = None,
    daemons: tuple[DaemonSet, ...] = (),
) -> World:
    nodes = (present_node or node("n1"),)
    everyone = (*pods, *there)
    return world(pods=everyone, nodes=nodes, nominations={"n1": pods}, daemons=daemons)


RESERVED_IN_A: Final = offering("a", 1, RESERVED, reservation_id="r-1", reservation_capacity=1)
