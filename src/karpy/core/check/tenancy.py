"""Whether each pod may be at its place: taints, labels, host ports, volumes, resources."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations

from msgspec import Struct

from karpy.core.check.breaches import Breach, Rule, shortened
from karpy.core.check.constraints import Alternatives, alternatives_of, hard_taints, still_to_come
from karpy.core.check.market import Market
from karpy.core.check.scene import LaunchPlace, NodePlace, Place, Scene
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


def check_tenancy(scene: Scene) -> Iterator[Breach]:
    """Look at each place on its own, with the pods that the plan puts there."""
    storage = scene.snapshot.storage
    for place in scene.places:
        if place.pods:
            yield from _check_pods(place, scene.snapshot.settings)
            yield from _check_volumes(place, storage)
            yield from _check_ports(place)
    for node in scene.nodes:
        if node.pods:
            yield from _check_node_room(node, scene.market)
            yield from _check_node_volumes(node, scene)
    for launch in scene.launches:
        yield from _check_launch_room(launch)
        yield from _check_launch_volumes(launch, storage)


def _check_pods(place: Place, settings: Settings) -> Iterator[Breach]:
    taints = hard_taints(place.taints)
    for pod in place.pods:
        if taint := first_untolerated(taints, pod.rules.tolerations):
            yield Breach(Rule.TAINT, place.name, pod.key, str(taint))
        if any(not place.meets(each) for each in alternatives_of(pod)):
            yield Breach(Rule.NODE_AFFINITY, place.name, pod.key, _where_not(place, pod))
        if pod.rules.claims_devices and settings.ignore_device_claims:
            yield Breach(Rule.DEVICES, place.name, pod.key)


def _where_not(place: Place, pod: Pod) -> str:
    if isinstance(place, NodePlace):
        return ""
    return shortened([name for each in alternatives_of(pod) for name in place.lacking(each)])


def _check_volumes(place: Place, storage: Storage) -> Iterator[Breach]:
    for pod in place.pods:
        volumes, problems = volumes_of(pod, storage)
        for problem in problems:
            yield Breach(Rule.VOLUME_READY, place.name, pod.key, problem)
        for volume in volumes:
            if volume.reach is not None and not place.meets(volume.reach):
                yield Breach(Rule.VOLUME_TOPOLOGY, place.name, pod.key, volume.claim)


def _check_ports(place: Place) -> Iterator[Breach]:
    """Look for clashes in which at least one new pod takes part; what runs already, runs."""
    takers = [(pod, port) for pod in place.pods for port in pod.rules.ports]
    there = [port for pod in place.bound for port in pod.rules.ports]
    for pod, port in takers:
        if _clashes(port, there):
            yield Breach(Rule.HOST_PORT, place.name, pod.key, str(port.port))
    for (one, port), (other, its) in combinations(takers, 2):
        if one is not other and port.clashes_with(its):
            yield Breach(Rule.HOST_PORT, place.name, other.key, f"{its.port} of {one.key}")


def _clashes(port: HostPort, others: list[HostPort] | tuple[HostPort, ...]) -> bool:
    return any(port.clashes_with(other) for other in others)


def _check_node_room(place: NodePlace, market: Market) -> Iterator[Breach]:
    """
    Fit the new pods into what the bound ones and the daemons still to come leave.

    Only what the new pods ask for must be there: a node that is short of something else already
    is not the plan's fault.
    """
    daemons = [each for each in market.daemons if each.may_run(place.values, place.taints)]
    there = place.node.allocatable
    to_come = still_to_come(daemons, place.bound, there)
    left = subtract(there, add(*(pod.requests for pod in place.bound), to_come))
    wanted = add(*(pod.requests for pod in place.pods))
    if short := _shortage(wanted, left):
        yield Breach(Rule.RESOURCES, place.name, detail=short)


def _shortage(wanted: Resources, available: Resources) -> str:
    for name, amount in sorted(wanted.items()):
        have = available.get(name, 0)
        if amount > max(0, have):
            texts = format_quantity(amount, name), format_quantity(have, name)
            return f"{name}: {texts[0]} wanted, {texts[1]} there"
    return ""


def _check_launch_room(place: LaunchPlace) -> Iterator[Breach]:
    """Fit pods and daemons into every machine the cloud may pick."""
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


def _check_node_volumes(place: NodePlace, scene: Scene) -> Iterator[Breach]:
    """Count by the limits that the node publishes; of other drivers its type knows, in any pool."""
    storage, node = scene.snapshot.storage, place.node
    types = scene.snapshot.catalog.types_for(node.pool) if node.pool else ()
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
    """A volume as its node sees it."""

    claim: str
    """Namespace and name of the PersistentVolumeClaim; pods may share it."""
    reach: Alternatives | None
    """Alternatives for the node's labels, or None if every node will do."""


def volumes_of(pod: Pod, storage: Storage) -> tuple[list[Volume], list[str]]:
    """Return the volumes that can be used, and for each of the others why it cannot."""
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
        return "there is no such volume, or not for long"
    if not claim.is_bind_completed:
        return "its claim is still being bound"
    terms = tuple(_anywhere_local(term) if volume.is_local else term for term in volume.terms)
    is_free = not terms or any(term is None for term in terms)
    reach = None if is_free else tuple(term for term in terms if term is not None)
    return Volume(claim.key, reach)


def _anywhere_local(term: NodeTerm) -> NodeTerm | None:
    """
    Forget which node a local volume is on; None if nothing else is asked.

    The node goes away with its pods, and the volume is made anew where the pod comes to be.
    """
    rest = tuple(each for each in term.expressions if each.key != HOSTNAME)
    return NodeTerm(rest, term.has_match_fields) if rest else None


def _as_unbound(claim: PersistentVolumeClaim, its_class: StorageClass | None) -> Volume | str:
    if its_class is None:
        return "its storage class does not exist"
    if its_class.binding_mode == IMMEDIATE:
        return "its claim is bound before scheduling, but not yet"
    return Volume(claim.key, its_class.topologies or None)


def attached(pods: Iterable[Pod], storage: Storage) -> dict[str, set[str]]:
    """
    Return the claims that pods have attached to their node, by driver.

    For pods that run already it does not matter whether their volumes could be used anew.
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
    its_class = storage.classes.get(claim.storage_class or "")
    return its_class.provisioner if its_class else None


def over_limit(
    new: Mapping[str, set[str]], old: Mapping[str, set[str]], limits: Mapping[str, int | None]
) -> str | None:
    """Name a driver that new pods take beyond its limit; None if there is none."""
    for driver, claims in sorted(new.items()):
        limit = limits.get(driver)
        before = old.get(driver, set())
        if limit is not None and not claims <= before and len(claims | before) > limit:
            return f"{len(claims | before)} volumes of {driver}, at most {limit}"
    return None
