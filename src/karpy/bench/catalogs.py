"""
Instance types of two fictitious clouds.

Prices are simple formulas in whole micro-dollars, not taken from any price list.
"""

from typing import Final

from msgspec import Struct

from karpy.bench.draws import Draws
from karpy.bench.objects import GPU, Json, expression
from karpy.model.instances import MICROS_PER_DOLLAR
from karpy.model.labels import (
    ARCH,
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    ON_DEMAND,
    OS,
    REGION,
    SPOT,
    ZONE,
)

LINEAR_ZONES: Final = ("zone-1", "zone-2", "zone-3")
LINEAR_TYPES: Final = 400
LINEAR_WELL_KNOWN: Final = tuple(f"bench.karpy.dev/{name}" for name in ("size", "special", "cores"))
_SMALL_CORES_MAX: Final = 4

CLOUD_ZONES: Final = ("north-1a", "north-1b", "north-1c")
CLOUD_REGION: Final = "north-1"
LABELS: Final = "machines.karpy.dev/"
CATEGORY: Final = LABELS + "category"
FAMILY: Final = LABELS + "family"
GENERATION: Final = LABELS + "generation"
GPU_MAKER: Final = LABELS + "gpu-maker"
_LABEL_NAMES: Final = (
    *("category", "family", "generation", "size", "cores", "memory-mib", "cpu-maker", "network"),
    *("local-disk", "gpu-maker", "gpu-name", "gpu-count"),
)
CLOUD_WELL_KNOWN: Final = (*(LABELS + name for name in _LABEL_NAMES), REGION)

_SIZES: Final = {
    "medium": 1,
    "large": 2,
    "xlarge": 4,
    **{f"{times}xlarge": 4 * times for times in (2, 4, 8, 12, 16, 24, 48)},
}
_USUAL_SIZES: Final = tuple(_SIZES)[1:9]
_ARM_SIZES: Final = tuple(_SIZES)[:8]
_GPU_SIZES: Final = {"xlarge": 1, "2xlarge": 1, "4xlarge": 1, "12xlarge": 4, "48xlarge": 8}
_GIB_PER_CORE: Final = {"c": 2, "m": 4, "r": 8, "x": 16, "i": 8, "g": 4, "p": 8}
_MAKERS: Final = {"i": ("intel", 100), "a": ("amd", 91), "g": ("arm", 82)}
_GENERATION_PERCENT: Final = {5: 103, 6: 100, 7: 104, 8: 107}
_EXTRA_PERCENT: Final = {"": 100, "d": 118, "n": 127}
_OLD_GENERATION: Final = 5
_CORE_MICROS: Final = 27_500
_GIB_MICROS: Final = 3_100
_GPU_MICROS: Final = {"g": 430_000, "p": 2_900_000}


class _Model(Struct, frozen=True):
    """An instance type: a family in one size."""

    category: str
    generation: int
    maker: str
    extra: str
    size: str
    gpus: int = 0

    @property
    def family(self) -> str:
        return f"{self.category}{self.generation}{self.maker}{self.extra}"

    @property
    def name(self) -> str:
        return f"{self.family}.{self.size}"

    @property
    def cores(self) -> int:
        return _SIZES[self.size]

    @property
    def memory_gib(self) -> int:
        return self.cores * _GIB_PER_CORE[self.category]

    @property
    def pods_max(self) -> int:
        return min(250, 10 + 12 * self.cores)

    @property
    def price_micros(self) -> int:
        plain = self.cores * _CORE_MICROS + self.memory_gib * _GIB_MICROS
        percents = _MAKERS[self.maker][1] * _GENERATION_PERCENT[self.generation]
        machine = plain * percents * _EXTRA_PERCENT[self.extra] // 100**3
        return machine + self.gpus * _GPU_MICROS.get(self.category, 0)

    @property
    def label_values(self) -> dict[str, str | None]:
        """The values of the provider's labels; None where the type lacks the label."""
        has_disk = self.extra == "d" or self.category == "i"
        return {
            "category": self.category,
            "family": self.family,
            "generation": str(self.generation),
            "size": self.size,
            "cores": str(self.cores),
            "memory-mib": str(self.memory_gib * 1024),
            "cpu-maker": _MAKERS[self.maker][0],
            "network": str((1600 if self.extra == "n" else 700) * self.cores),
            "local-disk": str(self.cores * 40) if has_disk else None,
            "gpu-maker": "nvidia" if self.gpus else None,
            "gpu-name": f"{self.category}{self.generation}" if self.gpus else None,
            "gpu-count": str(self.gpus) if self.gpus else None,
        }


def linear_types(count: int = LINEAR_TYPES) -> list[Json]:
    """
    Return types that grow by one core each: the catalog of Karpenter's own benchmark.

    The n-th has n cores, 2n GiB and room for 10n pods. It has one price in all its offerings: spot
    in two zones, on-demand in three.
    """
    sold = [(SPOT, zone) for zone in LINEAR_ZONES[:2]]
    sold += [(ON_DEMAND, zone) for zone in LINEAR_ZONES]
    types = []
    for cores in range(1, count + 1):
        is_large = cores > _SMALL_CORES_MAX
        size, special, number = LINEAR_WELL_KNOWN
        name = linear_name(cores)
        price = cores * (100_000 + 2 * 107_374)
        requirements = [
            expression(INSTANCE_TYPE, "In", name),
            expression(ARCH, "In", "amd64"),
            expression(OS, "In", "darwin", "linux", "windows"),
            expression(ZONE, "In", *LINEAR_ZONES),
            expression(CAPACITY_TYPE, "In", ON_DEMAND, SPOT),
            expression(size, "In", "large" if is_large else "small"),
            expression(special, "In", "yes") if is_large else expression(special, "DoesNotExist"),
            expression(number, "In", str(cores)),
        ]
        entry: Json = {
            "name": name,
            "requirements": requirements,
            "capacity": {"cpu": str(cores), "memory": f"{2 * cores}Gi", "pods": str(10 * cores)},
            "overhead": {"kubeReserved": {"cpu": "100m", "memory": "10Mi"}},
            "offerings": [_offering(kind, zone, price) for kind, zone in sold],
        }
        types.append(entry)
    return types


def linear_name(cores: int) -> str:
    """Return the name of the linear type with this many cores."""
    return f"linear-{cores:03d}"


def cloud_types(count: int | None = None) -> list[Json]:
    """
    Return the types of a large cloud, or `count` of them spread evenly over its families.

    The cloud is the same for all workloads. Spot costs about a third of on-demand, depending on
    type and zone; some spot offerings are sold out, and some old types are absent in one zone.
    """
    models = _models()
    if count is not None and count < len(models):
        models = [models[(2 * index + 1) * len(models) // (2 * count)] for index in range(count)]
    draws = Draws("cloud")
    return [_cloud_type(model, draws) for model in models]


def _models() -> list[_Model]:
    models = []
    families = [
        (category, generation, maker, extra)
        for maker in _MAKERS
        for generation in _GENERATION_PERCENT
        for category in "cmr"
        for extra in _EXTRA_PERCENT
        if not (generation == _OLD_GENERATION and (maker == "g" or extra == "n"))
    ]
    families += [
        (category, number, maker, "") for category in "xi" for number in (7, 8) for maker in "ig"
    ]
    for category, generation, maker, extra in families:
        sizes = _ARM_SIZES if maker == "g" else _USUAL_SIZES
        models += [_Model(category, generation, maker, extra, size) for size in sizes]
    for category, generation in (("g", 6), ("g", 7), ("p", 8)):
        models += [
            _Model(category, generation, "i", "", size, gpus) for size, gpus in _GPU_SIZES.items()
        ]
    return models


def _cloud_type(model: _Model, draws: Draws) -> Json:
    offerings = _cloud_offerings(model, draws)
    on_sale = [each["labels"] for each in offerings if each["available"]]
    requirements = [
        expression(INSTANCE_TYPE, "In", model.name),
        expression(ARCH, "In", "arm64" if model.maker == "g" else "amd64"),
        expression(OS, "In", "linux"),
        expression(REGION, "In", CLOUD_REGION),
        expression(ZONE, "In", *sorted({labels[ZONE] for labels in on_sale})),
        expression(CAPACITY_TYPE, "In", *sorted({labels[CAPACITY_TYPE] for labels in on_sale})),
    ]
    for name, value in model.label_values.items():
        key = LABELS + name
        requirements.append(
            expression(key, "DoesNotExist") if value is None else expression(key, "In", value)
        )
    capacity = {
        "cpu": str(model.cores),
        "memory": f"{model.memory_gib * 1024 * 93 // 100}Mi",
        "pods": str(model.pods_max),
        "ephemeral-storage": "40Gi",
    }
    if model.gpus:
        capacity[GPU] = str(model.gpus)
    reserved = {
        "cpu": f"{55 + 9 * model.cores // 2}m",
        "memory": f"{200 + 12 * model.pods_max}Mi",
        "ephemeral-storage": "1Gi",
    }
    evicted_below = {"memory": "100Mi", "ephemeral-storage": "4Gi"}
    return {
        "name": model.name,
        "requirements": requirements,
        "capacity": capacity,
        "overhead": {"kubeReserved": reserved, "evictionThreshold": evicted_below},
        "offerings": offerings,
    }


def _cloud_offerings(model: _Model, draws: Draws) -> list[Json]:
    zones = list(CLOUD_ZONES)
    if model.generation == _OLD_GENERATION and draws.happens(40):
        zones.remove(draws.pick(zones))
    price = model.price_micros
    discount = draws.between(260, 460)
    offerings = [_offering(ON_DEMAND, zone, price) for zone in zones]
    for zone in zones:
        per_million = discount * draws.between(920, 1080)
        is_available = not draws.happens(4)
        spot_price = price * per_million // 1_000_000
        offerings.append(_offering(SPOT, zone, spot_price, is_available=is_available))
    return offerings


def _offering(kind: str, zone: str, price: int, *, is_available: bool = True) -> Json:
    return {
        "labels": {CAPACITY_TYPE: kind, ZONE: zone},
        "price": price / MICROS_PER_DOLLAR,
        "available": is_available,
    }
