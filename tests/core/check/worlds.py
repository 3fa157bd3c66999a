"""
A cluster with all kinds of objects, a correct plan for it, and ways to break the plan.

    pool web    zones a b c; rack r1 or r2, two types at least, label team=x, at most 64 cores
    pool gpu    tainted; one type of its own
    node n1     zone a, with a running pod and a daemon
    node n2     deleting, with a pod that must move

    l-a  web-0 db cache-0 ported  (zone a; the volume of db is there)
    l-b  web-1 sidecar cache-1    (zone b; sidecar must be near web)
    l-c  web-2 picky              (zone c, rack r1)
    l-g  gpu                      (pool gpu)
    l-r  booked                   (holds reservation r-1)
    n1   moved                    (from n2)
"""

from collections.abc import Callable
from typing import Final, TypeAlias, Unpack

from msgspec.structs import replace

from karpy.model.constraints import NO_SCHEDULE, NodeTerm, Taint, Toleration
from karpy.model.labels import ARCH, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, RESERVED
from karpy.model.pods import HostPort, Pod, PodRules, PodVolume
from karpy.model.requirements import Operator, Requirement, one_of, require
from karpy.model.storage import PersistentVolume, PersistentVolumeClaim, Storage
from karpy.model.verdicts import Launch
from tests.core.check.builders import (
    LARGE,
    MEDIUM,
    RESERVATION,
    RESERVED_IN_A,
    SMALL,
    World,
    amounts,
    bound,
    catalog,
    daemon,
    daemon_pod,
    even,
    in_zone,
    instance_type,
    launch,
    near,
    node,
    offering,
    option,
    pod,
    pool,
    world,
)
from tests.core.check.fields import (
    LaunchChanges,
    NodeFields,
    PodFields,
    PoolChanges,
    RuleFields,
    SnapshotChanges,
    VerdictChanges,
)

Breakage: TypeAlias = Callable[[World], World]

EBS: Final = "ebs.csi.aws.com"
GIANT: Final = instance_type(
    "giant",
    16,
    [RESERVED_IN_A, *(offering(zone, 1600) for zone in "abc")],
    volume_limits={EBS: 1},
)
TWIN: Final = replace(
    GIANT,
    name="twin",
    requirements={**GIANT.requirements, INSTANCE_TYPE: one_of(INSTANCE_TYPE, "twin")},
)
BIG: Final = replace(LARGE, volume_limits={EBS: 1})
ALIEN: Final = instance_type("alien", 8, requirements={ARCH: one_of(ARCH, "arm64")})
GPU: Final = Taint("gpu", NO_SCHEDULE)
RACK: Final = one_of("rack", "r1", "r2")
TYPES: Final = require(INSTANCE_TYPE, Operator.EXISTS, min_values=2)
WEB: Final = {"app": "web"}


def _web(number: int) -> Pod:
    return pod(f"web-{number}", labels=WEB, spreads=(even("web"),))


def _cache(number: int) -> Pod:
    return pod(
        f"cache-{number}", "100m", labels={"app": "cache"}, anti_affinity=(near("cache", HOSTNAME),)
    )


DB: Final = pod("db", volumes=(PodVolume("disk", "data"),))
PORTED: Final = pod("ported", "100m", ports=(HostPort(8080),))
SIDECAR: Final = pod("sidecar", "100m", affinity=(near("web"),))
PICKY: Final = pod(
    "picky",
    node_selector=(one_of("rack", "r1"), one_of("team", "x")),
    required_node_terms=(NodeTerm((in_zone("moon"),)), NodeTerm((in_zone("c"),))),
)
GPU_POD: Final = pod("gpu", tolerations=(Toleration("gpu", "Exists"),))
BOOKED: Final = pod("booked", "9")
MOVED: Final = bound(pod("moved", "5"), "n2")
REFUSED: Final = pod("refused", "99")
RUNNING: Final = bound(
    pod("running", "2", ports=(HostPort(443),), volumes=(PodVolume("disk", "old"),)), "n1"
)


def _disk(name: str, zone: str) -> tuple[PersistentVolumeClaim, PersistentVolume]:
    claim = PersistentVolumeClaim(name, "shop", f"pv-{name}", is_bind_completed=True)
    return claim, PersistentVolume(f"pv-{name}", EBS, (NodeTerm((in_zone(zone),)),))


def _storage(*disks: tuple[PersistentVolumeClaim, PersistentVolume]) -> Storage:
    return Storage(
        {claim.key: claim for claim, _ in disks}, {volume.name: volume for _, volume in disks}
    )


def _web_launch(name: str, pods: list[Pod], zone: str, *others: Requirement) -> Launch:
    stated = (in_zone(zone), require(INSTANCE_TYPE, Operator.EXISTS), *(others or (RACK,)))
    return launch(name, pods, *stated, options=[MEDIUM, BIG])


def right_world() -> World:
    """Return a plan that breaks no rule."""
    pools = (
        pool(
            "web",
            in_zone("a", "b", "c"),
            RACK,
            TYPES,
            labels={"team": "x"},
            limits=amounts(cpu="64", nodes="5"),
        ),
        pool("gpu", in_zone("a"), taints=(GPU,)),
    )
    booked = (in_zone("a"), RACK, require(INSTANCE_TYPE, Operator.EXISTS))
    reserved = (one_of(CAPACITY_TYPE, RESERVED), one_of(RESERVATION, "r-1"))
    return world(
        _web_launch("l-a", [_web(0), DB, _cache(0), PORTED], "a"),
        _web_launch("l-b", [_web(1), SIDECAR, _cache(1)], "b"),
        _web_launch("l-c", [_web(2), PICKY], "c", one_of("rack", "r1")),
        launch("l-g", [GPU_POD], in_zone("a"), pool="gpu", options=[ALIEN]),
        launch(
            "l-r",
            [BOOKED],
            *booked,
            *reserved,
            options=[option(GIANT, "a", RESERVED), option(TWIN, "a", RESERVED)],
            reservations=("r-1",),
        ),
        pods=[
            *(_web(number) for number in range(3)),
            *(_cache(number) for number in range(2)),
            *(DB, PORTED, SIDECAR, PICKY, GPU_POD, BOOKED, MOVED, REFUSED, RUNNING),
            daemon_pod("log-n1", "n1"),
        ],
        nominations={"n1": [MOVED]},
        refused=[REFUSED],
        nodes=(
            node("n1", "a", volume_limits={EBS: 1}, labels={"rack": "r2", "team": "x"}),
            node("n2", "b", is_deleting=True),
        ),
        pools=pools,
        catalog=catalog(SMALL, MEDIUM, BIG, GIANT, TWIN, gpu=(ALIEN,)),
        daemons=(daemon("log", ports=(HostPort(9100),)),),
        storage=_storage(_disk("data", "a"), _disk("old", "a"), _disk("spare", "a")),
    )


# --- ways to change a world ----------------------------------------------------------------------


def with_launch(called: str, /, **changes: Unpack[LaunchChanges]) -> Breakage:
    """Change fields of one launch."""

    def apply(current: World) -> World:
        launches = tuple(
            replace(each, **changes) if each.name == called else each
            for each in current.verdict.launches
        )
        return current._replace(verdict=replace(current.verdict, launches=launches))

    return apply


def with_requirement(name: str, *requirements: Requirement) -> Breakage:
    """Change the requirements of a launch."""

    def apply(current: World) -> World:
        (found,) = (each for each in current.verdict.launches if each.name == name)
        stated = {**found.requirements, **{each.key: each for each in requirements}}
        return with_launch(name, requirements=stated)(current)

    return apply


def without_requirement(name: str, key: str) -> Breakage:
    """Remove a requirement of a launch."""

    def apply(current: World) -> World:
        (found,) = (each for each in current.verdict.launches if each.name == name)
        stated = {other: each for other, each in found.requirements.items() if other != key}
        return with_launch(name, requirements=stated)(current)

    return apply


def without_launch(name: str) -> Breakage:
    """Remove a launch."""

    def apply(current: World) -> World:
        launches = tuple(each for each in current.verdict.launches if each.name != name)
        return current._replace(verdict=replace(current.verdict, launches=launches))

    return apply


def restated(name: str) -> Breakage:
    """Set the stated resources of a launch to the requests of its pods."""

    def apply(current: World) -> World:
        pods = {each.key: each for each in current.snapshot.pods}
        (found,) = (each for each in current.verdict.launches if each.name == name)
        resources = launch("", [pods[key] for key in found.pods]).resources
        return with_launch(name, resources=resources)(current)

    return apply


def with_pod(name: str, **changes: Unpack[PodFields]) -> Breakage:
    """Change fields of one pod."""

    def apply(current: World) -> World:
        pods = tuple(
            replace(each, **changes) if each.name == name else each
            for each in current.snapshot.pods
        )
        return current._replace(snapshot=replace(current.snapshot, pods=pods))

    return apply


def with_rules(name: str, **changes: Unpack[RuleFields]) -> Breakage:
    """Change the constraints of one pod."""

    def apply(current: World) -> World:
        rules: PodRules = next(each.rules for each in current.snapshot.pods if each.name == name)
        changed = tuple(
            replace(each, rules=replace(rules, **changes)) if each.name == name else each
            for each in current.snapshot.pods
        )
        return current._replace(snapshot=replace(current.snapshot, pods=changed))

    return apply


def with_node(name: str, **changes: Unpack[NodeFields]) -> Breakage:
    """Change fields of one node."""

    def apply(current: World) -> World:
        nodes = tuple(
            replace(each, **changes) if each.name == name else each
            for each in current.snapshot.nodes
        )
        return current._replace(snapshot=replace(current.snapshot, nodes=nodes))

    return apply


def with_pool(name: str, **changes: Unpack[PoolChanges]) -> Breakage:
    """Change fields of one NodePool."""

    def apply(current: World) -> World:
        pools = tuple(
            replace(each, **changes) if each.name == name else each
            for each in current.snapshot.pools
        )
        return current._replace(snapshot=replace(current.snapshot, pools=pools))

    return apply


def with_snapshot(**changes: Unpack[SnapshotChanges]) -> Breakage:
    """Change fields of the snapshot."""
    return lambda current: current._replace(snapshot=replace(current.snapshot, **changes))


def with_verdict(**changes: Unpack[VerdictChanges]) -> Breakage:
    """Change fields of the verdict."""
    return lambda current: current._replace(verdict=replace(current.verdict, **changes))


def moved(name: str, old: str, new: str) -> Breakage:
    """Move a pod from one launch to another, with their stated resources."""

    def apply(current: World) -> World:
        key = f"shop/{name}"
        found = {each.name: each for each in current.verdict.launches}
        left = tuple(each for each in found[old].pods if each != key)
        current = with_launch(old, pods=left)(current)
        current = with_launch(new, pods=(*found[new].pods, key))(current)
        return both(restated(old), restated(new))(current)

    return apply


def both(*breakages: Breakage) -> Breakage:
    """Apply breakages one after another."""

    def apply(current: World) -> World:
        for each in breakages:
            current = each(current)
        return current

    return apply
