"""Whether each pod may be at its place: taints, labels, host ports, volumes, resources."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations

from msgspec import Struct

from karpy.core.check.breaches import Breach, Rule, shortened
from karpy.core.check.constraints import (
    Alternatives,
    alternatives_of,
    hard_taints,
    missing_daemon_requests,
)
from karpy.core.check.market import PoolCatalog
from karpy.core.check.scene import LaunchPlace, NodePlace, Place, PlannedCluster
from karpy.model.constraints import NodeTerm, first_untolerated
from karpy.model.labels import HOSTNAME, INSTANCE_TYPE
from karpy.model.pods import HostPort, Pod, PodVolume
from karpy.model.resources import Resources, add, fits, format_quantity, subtract
from karpy.model.settings import Settings
from karpy.model.storage import (
    IMMEDIATE,
    PersistentVolume,
    PersistentVolumeClaim,
    Storage,
    StorageClass,
)


def check_tenancy(cluster: PlannedCluster) -> Iterator[Breach]:
    """Yield the breaches of each place by itself, with the pods that the plan puts there."""
    storage = cluster.snapshot.storage
    for place in cluster.places:
        if place.pods:
            yield from _check_pods(place, cluster.snapshot.settings)
            yield from _check_volumes(place, storage)
            yield from _check_ports(place)
    for node in cluster.nodes:
        if node.pods:
            yield from _check_node_room(node, cluster.market)
            yield from _check_node_volumes(node, cluster)
    for launch in cluster.launches:
        yield from _check_launch_room(launch)
        yield from _check_launch_volumes(launch, storage)


def _check_pods(place: Place, settings: Settings) -> Iterator[Breach]:
    taints = hard_taints(place.taints)
    for pod in place.pods:
        if taint := first_untolerated(taints, pod.rules.tolerations):
            yield Breach(Rule.TAINT, place.name, pod.key, str(taint))
        if any(not place.meets(each) for each in alternatives_of(pod)):
            yield Breach(Rule.NODE_AFFINITY, place.name, pod.key, _failing_types(place, pod))
        if pod.rules.claims_devices and settings.ignore_device_claims:
            yield Breach(Rule.DEVICES, place.name, pod.key)


def _failing_types(place: Place, pod: Pod) -> str:
    if isinstance(place, NodePlace):
        return ""
    return shortened([name for each in alternatives_of(pod) for name in place.lacking(each)])


def _check_volumes(place: Place, storage: Storage) -> Iterator[Breach]:
    for pod in place.pods:
        volumes, problems = volumes_of(pod, storage)
        for problem in problems:
            yield Breach(Rule.VOLUME_READY, place.name, pod.key, problem)
        for volume in volumes:
            if volume.topology is not None and not place.meets(volume.topology):
                yield Breach(Rule.VOLUME_TOPOLOGY, place.name, pod.key, volume.claim)


def _check_ports(place: Place) -> Iterator[Breach]:
    """Yield host port conflicts in which at least one new pod takes part."""
    new_ports = [(pod, port) for pod in place.pods for port in pod.rules.ports]
    bound_ports = [port for pod in place.bound for port in pod.rules.ports]
    for pod, port in new_ports:
        if _clashes(port, bound_ports):
            yield Breach(Rule.HOST_PORT, place.name, pod.key, str(port.port))
    for (one, port), (other, second) in combinations(new_ports, 2):
        if one is not other and port.clashes_with(second):
            yield Breach(Rule.HOST_PORT, place.name, other.key, f"{second.port} of {one.key}")


def _clashes(port: HostPort, others: list[HostPort] | tuple[HostPort, ...]) -> bool:
    return any(port.clashes_with(other) for other in others)


def _check_node_room(place: NodePlace, market: PoolCatalog) -> Iterator[Breach]:
    """
    Yield a breach if the new pods do not fit beside bound pods and daemons that do not run yet.

    Only resources that the new pods request count: a shortage of another one existed before.
    """
    daemons = [each for each in market.daemons if each.may_run(place.values, place.taints)]
    allocatable = place.node.allocatable
    missing = missing_daemon_requests(daemons, place.bound, allocatable)
    left = subtract(allocatable, add(*(pod.requests for pod in place.bound), missing))
    requests = add(*(pod.requests for pod in place.pods))
    if short := _shortage(requests, left):
        yield Breach(Rule.RESOURCES, place.name, detail=short)


def _shortage(wanted: Resources, available: Resources) -> str:
    for name, amount in sorted(wanted.items()):
        have = available.get(name, 0)
        if amount > max(0, have):
            texts = format_quantity(amount, name), format_quantity(have, name)
            return f"{name}: {texts[0]} wanted, {texts[1]} there"
    return ""


def _check_launch_room(place: LaunchPlace) -> Iterator[Breach]:
    """Yield a breach if pods and daemons do not fit every machine the cloud may pick."""
    pods = add(*(pod.requests for pod in place.pods))
    ports = [port for pod in place.pods for port in pod.rules.ports]
    totals: dict[tuple[int, ...], Resources] = {}
    too_small: list[str] = []
    clashing: list[str] = []
    for name in place.types:
        rooms = place.rooms(name)
        for room in rooms:
            if room.daemons not in totals:
                totals[room.daemons] = add(pods, room.daemon_requests)
        if not all(fits(totals[room.daemons], room.allocatable) for room in rooms):
            too_small.append(name)
        if any(_clashes(port, room.daemon_ports) for port in ports for room in rooms):
            clashing.append(name)
    if too_small:
        yield Breach(Rule.RESOURCES, place.name, detail=shortened(too_small))
    if clashing:
        yield Breach(Rule.HOST_PORT, place.name, detail=f"with daemons on {shortened(clashing)}")


def _check_node_volumes(place: NodePlace, cluster: PlannedCluster) -> Iterator[Breach]:
    """Check volume limits: those of the node, for other drivers those of its instance type."""
    storage, node = cluster.snapshot.storage, place.node
    types = cluster.snapshot.catalog.types_for(node.pool) if node.pool else ()
    known = {each.name: each.volume_limits for each in types}
    limits = {**known.get(node.labels.get(INSTANCE_TYPE, ""), {}), **node.volume_limits}
    if why := over_limit(attached(place.pods, storage), attached(place.bound, storage), limits):
        yield Breach(Rule.VOLUME_LIMIT, place.name, detail=why)


def _check_launch_volumes(place: LaunchPlace, storage: Storage) -> Iterator[Breach]:
    claims = attached(place.pods, storage)
    short = [
        name
        for name in (place.types if claims else ())
        if over_limit(claims, {}, place.stock.types[name].volume_limits)
    ]
    if short:
        yield Breach(Rule.VOLUME_LIMIT, place.name, detail=shortened(short))


class Volume(Struct, frozen=True):
    """A volume of a pod, as far as its node matters."""

    claim: str
    """Namespace and name of the PersistentVolumeClaim; several pods may use it."""
    topology: Alternatives | None
    """Alternatives for the labels of the node; None if every node can attach the volume."""


def volumes_of(pod: Pod, storage: Storage) -> tuple[list[Volume], list[str]]:
    """Return the usable volumes of a pod, and why each other volume is unusable."""
    usable: list[Volume] = []
    problems: list[str] = []
    for each in pod.rules.volumes:
        found = _find(each, pod, storage)
        if isinstance(found, str):
            problems.append(f"{each.name}: {found}")
        else:
            usable.append(found)
    return usable, problems


def _find(volume: PodVolume, pod: Pod, storage: Storage) -> Volume | str:
    claim = storage.claims.get(f"{pod.namespace}/{volume.claim_of(pod.name)}")
    if claim is None:
        return "its claim does not exist"
    if claim.is_deleting or claim.phase == "Lost":
        return "its claim is being deleted or has lost its volume"
    if claim.volume_name:
        return _as_bound(claim, storage.volumes.get(claim.volume_name))
    return _as_unbound(claim, storage.classes.get(claim.storage_class or ""))


def _as_bound(claim: PersistentVolumeClaim, volume: PersistentVolume | None) -> Volume | str:
    if volume is None or volume.is_deleting:
        return "its volume does not exist or is being deleted"
    if not claim.is_bind_completed:
        return "its claim is still being bound"
    terms = tuple(_without_hostname(term) if volume.is_local else term for term in volume.terms)
    is_free = not terms or any(term is None for term in terms)
    topology = None if is_free else tuple(term for term in terms if term is not None)
    return Volume(claim.key, topology)


def _without_hostname(term: NodeTerm) -> NodeTerm | None:
    """
    Return the term of a local volume without its hostname; None if nothing else is left.

    The node is deleted with its pods, and the volume is provisioned anew on the pod's new node.
    """
    rest = tuple(each for each in term.expressions if each.key != HOSTNAME)
    return NodeTerm(rest, term.has_match_fields) if rest else None


def _as_unbound(claim: PersistentVolumeClaim, storage_class: StorageClass | None) -> Volume | str:
    if storage_class is None:
        return "its storage class does not exist"
    if storage_class.binding_mode == IMMEDIATE:
        return "its claim is bound before scheduling, but not yet"
    return Volume(claim.key, storage_class.topologies or None)


def attached(pods: Iterable[Pod], storage: Storage) -> dict[str, set[str]]:
    """
    Return the PersistentVolumeClaims of pods by driver.

    Claims count whether or not they are usable, because bound pods have attached theirs already.
    """
    claims: dict[str, set[str]] = {}
    for pod in pods:
        names = (f"{pod.namespace}/{each.claim_of(pod.name)}" for each in pod.rules.volumes)
        for claim in (storage.claims[name] for name in names if name in storage.claims):
            if driver := _driver(claim, storage):
                claims.setdefault(driver, set()).add(claim.key)
    return claims


def _driver(claim: PersistentVolumeClaim, storage: Storage) -> str | None:
    if claim.volume_name:
        volume = storage.volumes.get(claim.volume_name)
        return volume.driver if volume else None
    storage_class = storage.classes.get(claim.storage_class or "")
    return storage_class.provisioner if storage_class else None


def over_limit(
    new: Mapping[str, set[str]], old: Mapping[str, set[str]], limits: Mapping[str, int | None]
) -> str | None:
    """Return which driver new pods take beyond its limit, with numbers; None if none."""
    for driver, claims in sorted(new.items()):
        limit = limits.get(driver)
        before = old.get(driver, set())
        if limit is not None and not claims <= before and len(claims | before) > limit:
            return f"{len(claims | before)} volumes of {driver}, at most {limit}"
    return None
