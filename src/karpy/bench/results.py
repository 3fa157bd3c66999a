"""The result line of a run: its decision, price and duration."""

from collections.abc import Iterator
from math import fsum

from msgspec import UNSET, Struct, UnsetType, field

from karpy.bench.objects import Json
from karpy.model.instances import MICROS_PER_DOLLAR
from karpy.model.labels import ZONE
from karpy.model.requirements import Requirements, why_incompatible
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Launch, Verdict


class NodeDetail(Struct, frozen=True):
    """A new node; its type is the cheapest of its options."""

    instance_type: str = field(name="type")
    zone: str
    capacity_type: str
    price: float
    """Dollars per hour, exactly as in the workload file."""
    nodepool: str
    pods: int
    options: int
    zones: tuple[str, ...]
    """Zones that the launch allows."""
    pod_names: tuple[str, ...]


class ExistingDetail(Struct, frozen=True):
    """A running node to which pods are nominated."""

    name: str
    pods: int
    pod_names: tuple[str, ...]


class Times(Struct, frozen=True):
    """Seconds of each phase, and the peak memory after the run."""

    setup_s: float
    solve_s: float
    finish_s: float = 0.0
    peak_rss_mb: float | UnsetType = UNSET

    @property
    def wall_s(self) -> float:
        return self.setup_s + self.solve_s + self.finish_s


class Result(Struct, frozen=True):
    """One run of one workload; field names are those of the karpbench/v1 result line."""

    harness: str
    workload: str
    run: int
    instance_types: int
    pods: int
    scheduled: int
    scheduled_on_existing: int
    failed: int
    nodes: int
    total_price: float
    wall_s: float
    setup_s: float
    solve_s: float
    finish_s: float
    pods_per_s: float
    classes: int
    peak_rss_mb: float | UnsetType = UNSET
    breaches: int | UnsetType = UNSET
    """The number of rules that the plan breaks; absent if the checker did not run."""
    node_detail: tuple[NodeDetail, ...] | UnsetType = UNSET
    existing_detail: tuple[ExistingDetail, ...] | UnsetType = UNSET


class Shop:
    """The offerings of a workload file: exact prices, and the zones of launches."""

    def __init__(self, workload: Json, snapshot: Snapshot) -> None:
        self._prices = _exact_prices(workload, snapshot)
        self._offered: list[Requirements] = []
        """The distinct requirements of offerings: zone, capacity type and reservation."""
        self._keys: list[str] = []
        self._offered_by_type: dict[str, int] = {}
        """By instance type: the bits of its entries in `_offered`."""
        self._suiting: dict[tuple[object, ...], int] = {}
        self._well_known = snapshot.catalog.well_known
        self._stock(snapshot)

    def price(self, launch: Launch) -> float:
        """Return the dollars per hour of the cheapest option, exactly as in the file."""
        best = launch.options[0]
        exact = self._prices.get((best.instance_type, best.zone, best.capacity_type, best.price))
        # A NodeOverlay may have changed the price: then the file has no exact value.
        return best.price / MICROS_PER_DOLLAR if exact is None else exact

    def zones(self, launch: Launch) -> tuple[str, ...]:
        """Return the sorted zones in which an option of the launch is available."""
        suiting = self._ways_suiting(launch.requirements)
        found = 0
        for option in launch.options:
            found |= self._offered_by_type[option.instance_type] & suiting
            if found == suiting:
                break
        zones = {self._zone(way) for way in range(len(self._offered)) if found >> way & 1}
        return tuple(sorted(zones))

    def _stock(self, snapshot: Snapshot) -> None:
        catalog = snapshot.catalog
        ways: dict[frozenset[object], int] = {}
        for types in (catalog.types, *catalog.by_pool.values()):
            for each in types:
                bits = self._offered_by_type.get(each.name, 0)
                for offering in each.offerings:
                    if offering.is_launchable:
                        way = frozenset(offering.requirements.values())
                        if way not in ways:
                            ways[way] = len(ways)
                            self._offered.append(offering.requirements)
                        bits |= 1 << ways[way]
                self._offered_by_type[each.name] = bits
        self._keys = sorted({key for way in self._offered for key in way})

    def _ways_suiting(self, requirements: Requirements) -> int:
        what = tuple(requirements.get(key) for key in self._keys)
        bits = self._suiting.get(what)
        if bits is None:
            bits = 0
            for way, sold in enumerate(self._offered):
                if why_incompatible(requirements, sold, self._well_known) is None:
                    bits |= 1 << way
            self._suiting[what] = bits
        return bits

    def _zone(self, way: int) -> str:
        requirement = self._offered[way].get(ZONE)
        return min(requirement.values) if requirement and requirement.values else ""


def _exact_prices(workload: Json, snapshot: Snapshot) -> dict[tuple[str, str, str, int], float]:
    """Return the prices of the file by type, zone, capacity type and micro-dollars."""
    written = {each["name"]: each["offerings"] for each in workload.get("instanceTypes") or ()}
    prices: dict[tuple[str, str, str, int], float] = {}
    for each in snapshot.catalog.types:
        for offering, raw in zip(each.offerings, written[each.name], strict=True):
            if offering.is_available:
                ware = (each.name, offering.zone, offering.capacity_type, offering.price)
                price = float(raw["price"])
                prices[ware] = min(price, prices.get(ware, price))
    return prices


def summarise(
    workload: Json,
    snapshot: Snapshot,
    verdict: Verdict,
    times: Times,
    *,
    run: int,
    has_detail: bool,
) -> Result:
    """Return the result of a run; `has_detail` adds the pods of each node."""
    shop = Shop(workload, snapshot)
    pending = [pod for pod in snapshot.pods if not pod.node_name]
    on_new = sum(len(launch.pods) for launch in verdict.launches)
    on_existing = sum(len(nomination.pods) for nomination in verdict.nominations)
    classes = {(pod.namespace, id(pod.labels), id(pod.requests), id(pod.rules)) for pod in pending}
    return Result(
        harness="karpy",
        workload=str(workload.get("name", "")),
        run=run,
        instance_types=len(snapshot.catalog.types),
        pods=len(pending),
        scheduled=on_new + on_existing,
        scheduled_on_existing=on_existing,
        failed=len(pending) - on_new - on_existing,
        nodes=len(verdict.launches),
        total_price=fsum(shop.price(launch) for launch in verdict.launches),
        wall_s=times.wall_s,
        setup_s=times.setup_s,
        solve_s=times.solve_s,
        finish_s=times.finish_s,
        pods_per_s=len(pending) / times.wall_s,
        classes=len(classes),
        peak_rss_mb=times.peak_rss_mb,
        node_detail=tuple(_node_details(shop, verdict)) if has_detail else UNSET,
        existing_detail=tuple(_existing_details(verdict)) if has_detail else UNSET,
    )


def _node_details(shop: Shop, verdict: Verdict) -> Iterator[NodeDetail]:
    for launch in verdict.launches:
        best = launch.options[0]
        yield NodeDetail(
            instance_type=best.instance_type,
            zone=best.zone,
            capacity_type=best.capacity_type,
            price=shop.price(launch),
            nodepool=launch.pool,
            pods=len(launch.pods),
            options=len(launch.options),
            zones=shop.zones(launch),
            pod_names=tuple(sorted(launch.pods)),
        )


def _existing_details(verdict: Verdict) -> Iterator[ExistingDetail]:
    for nomination in verdict.nominations:
        names = tuple(sorted(nomination.pods))
        yield ExistingDetail(name=nomination.node, pods=len(names), pod_names=names)
