"""A table of the families of EC2 to instance types, zones and estimated prices of a region."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct, convert

from karpy.model.ec2 import NITRO, Device, Ec2Market, InstanceTypeInfo, NetworkCard, Region
from karpy.model.instances import micros
from karpy.model.labels import ON_DEMAND, SPOT

_ARM64_MAKER: Final = "aws"
_MAKERS: Final = {"amd": "AMD", "aws": "AWS", "intel": "Intel"}
_MIB_PER_GIB: Final = 1024
_MHZ_PER_GHZ: Final = 1000
_METAL: Final = "metal"
_COUNTED: Final = re.compile(r"(?:metal-)?([0-9]+)xl(?:arge)?", re.ASCII)
"""A size that is named after its number of `xlarge` units, of four vCPUs each."""
_VCPUS_PER_XLARGE: Final = 4
_VCPUS: Final = {"large": 2, "xlarge": _VCPUS_PER_XLARGE}
_INTERFACES: Final = {"nano": (2, 2), "micro": (2, 2), "medium": (2, 4), "large": (3, 10)}
_INTERFACES_BY_VCPUS: Final = ((8, (4, 15)), (48, (8, 30)))
"""Number of network interfaces, and addresses of each, for sizes up to this number of vCPUs."""
_INTERFACES_MOST: Final = (15, 50)
_USUAL: Final = "usual"


class _Shape(Struct, frozen=True, forbid_unknown_fields=True):
    """What families have in common, by size."""

    sizes: str
    network: str
    interfaces: str = ""
    ebs: str = ""
    efa: str = ""
    cards: str = ""


class _Devices(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    by: str
    count: str
    mib: int = 0
    cores: int = 0


class _Family(Struct, frozen=True, forbid_unknown_fields=True):
    shape: str
    cpu: str
    gib: float | str
    usd: float | str
    sizes: str = ""
    spot: float | None = None
    disk: str = ""
    nvme: bool = True
    gpu: _Devices | None = None
    neuron: _Devices | None = None
    accelerator: _Devices | None = None
    encrypts: bool = True
    hypervisor: str = NITRO
    nested: bool = False
    ena: bool = True


class _Region(Struct, frozen=True, forbid_unknown_fields=True):
    usd: float
    zones: str
    ids: str
    sells: str = ""
    lacks: str = ""


class _Usual(Struct, frozen=True, forbid_unknown_fields=True):
    spot: float
    disk: str


class FamilyTable(Struct, frozen=True, forbid_unknown_fields=True):
    """The instance families of EC2, one line each."""

    usual: _Usual
    shapes: Mapping[str, _Shape]
    families: Mapping[str, _Family]
    regions: Mapping[str, _Region]


class _Size(Struct, frozen=True):
    """One size of a shape."""

    name: str
    vcpus: int
    interfaces: tuple[int, int]
    network_mbps: int
    ebs_mbps: int | None
    efa_max: int
    cards: int


class _Sold(Struct, frozen=True):
    """An instance type of the table, and what it costs in its first region."""

    info: InstanceTypeInfo
    dollars: float
    spot_share: float


def read_table(text: str) -> FamilyTable:
    """Read the table from TOML."""
    return convert(tomllib.loads(text), FamilyTable)


def region_of(table: FamilyTable, name: str) -> Region:
    """Return the instance types of a region of the table, at estimated prices, in all its zones."""
    here = table.regions[name]
    zones = {name + each: zone_id for each, zone_id in _zone_ids(here)}
    sold = [each for family in _families(table, here) for each in _sold(table, family)]
    on_demand = {each.info.name: micros(each.dollars * here.usd) for each in sold}
    spot = {
        each.info.name: dict.fromkeys(zones, round(on_demand[each.info.name] * each.spot_share))
        for each in sold
    }
    everywhere = frozenset(zones)
    market = Ec2Market(
        zones={each.info.name: everywhere for each in sold},
        on_demand=on_demand,
        spot=spot,
        zone_ids=zones,
    )
    types = sorted((each.info for each in sold), key=lambda each: each.name)
    return Region(name, tuple(types), market)


def region_of_zone(table: FamilyTable, zone: str) -> str:
    """Return the region that a zone or a zone ID is in; empty if the table does not have it."""
    fitting = [
        name
        for name, region in table.regions.items()
        if zone.startswith((name, region.ids.partition(" ")[0]))
    ]
    return max(fitting, key=len, default="")


def _zone_ids(region: _Region) -> Iterator[tuple[str, str]]:
    prefix, *numbers = region.ids.split()
    for zone, number in zip(region.zones.split(), numbers, strict=True):
        yield zone, prefix + number


def _families(table: FamilyTable, region: _Region) -> Iterator[str]:
    sells, lacks = region.sells.split(), frozenset(region.lacks.split())
    yield from sells or (each for each in table.families if each not in lacks)


def _sold(table: FamilyTable, name: str) -> Iterator[_Sold]:
    family = table.families[name]
    every = list(_sizes(table.shapes[family.shape]))
    wanted = family.sizes.split()
    sizes = [each for each in every if not wanted or each.name in wanted]
    memory, dollars = _by_size(family.gib, sizes), _by_size(family.usd, sizes)
    disks = _disks(table, family, sizes)
    share = table.usual.spot if family.spot is None else family.spot
    for place, size in enumerate(sizes):
        yield _Sold(
            _info(name, family, size, (memory[size.name], disks[size.name], place)),
            dollars[size.name],
            share,
        )


def _info(
    name: str, family: _Family, size: _Size, amounts: tuple[float, float, int]
) -> InstanceTypeInfo:
    gib, disk_gb, place = amounts
    maker, *clock = family.cpu.split()
    interfaces, addresses = size.interfaces
    share = size.network_mbps // size.cards
    cards = [NetworkCard(interfaces, share)] * (size.cards - 1)
    # The first card gets the remainder of the division.
    first = NetworkCard(interfaces, size.network_mbps - share * len(cards))
    return InstanceTypeInfo(
        name=f"{name}.{size.name}",
        vcpus=size.vcpus,
        memory_mib=round(gib * _MIB_PER_GIB),
        architectures=("arm64",) if maker == _ARM64_MAKER else ("x86_64",),
        cards=(first, *cards),
        ipv4_per_interface=addresses,
        efa_max=size.efa_max,
        manufacturer=_MAKERS[maker],
        clock_mhz=round(float(clock[0]) * _MHZ_PER_GHZ) if clock else None,
        hypervisor="" if size.name.startswith(_METAL) else family.hypervisor,
        usage_classes=(ON_DEMAND,) if family.spot == 0 else (ON_DEMAND, SPOT),
        encrypts_in_transit=family.encrypts,
        has_ena=family.ena,
        ebs_mbps=size.ebs_mbps,
        disk_gb=round(disk_gb),
        is_nvme=family.nvme,
        gpus=_devices(family.gpu, place),
        neurons=_devices(family.neuron, place),
        accelerators=_devices(family.accelerator, place),
        has_nested_virtualization=family.nested and not size.name.startswith(_METAL),
    )


def _sizes(shape: _Shape) -> Iterator[_Size]:
    tokens = [each.partition("/") for each in shape.sizes.split()]
    names = [name for name, _, _ in tokens]
    vcpus = [int(given) if given else _vcpus(name) for name, _, given in tokens]
    network = _listed(shape.network, len(names))
    ebs = _listed(shape.ebs, len(names)) if shape.ebs else [0] * len(names)
    efa, cards = _named(shape.efa), _named(shape.cards)
    pairs = [_pair(each) for each in shape.interfaces.split()]
    for place, name in enumerate(names):
        yield _Size(
            name,
            vcpus[place],
            pairs[place] if pairs else _usual_interfaces(name, vcpus[place]),
            network[place],
            ebs[place] or None,
            efa.get(name, 0),
            cards.get(name, 1),
        )


def _vcpus(size: str) -> int:
    counted = _COUNTED.fullmatch(size)
    return int(counted[1]) * _VCPUS_PER_XLARGE if counted else _VCPUS.get(size, 1)


def _usual_interfaces(size: str, vcpus: int) -> tuple[int, int]:
    if size in _INTERFACES:
        return _INTERFACES[size]
    fitting = (pair for most, pair in _INTERFACES_BY_VCPUS if vcpus <= most)
    return next(fitting, _INTERFACES_MOST)


def _by_size(given: float | str, sizes: list[_Size]) -> dict[str, float]:
    """Return an amount for each size, which the table gives per vCPU, per size, or as both."""
    if not isinstance(given, str):
        return {each.name: given * each.vcpus for each in sizes}
    words = given.split()
    plain = [float(each) for each in words if "=" not in each]
    if len(plain) == len(sizes) > 1:
        return {each.name: amount for each, amount in zip(sizes, plain, strict=True)}
    share = plain[0] if plain else 0.0
    amounts = {each.name: share * each.vcpus for each in sizes}
    for each in words:
        name, is_named, amount = each.partition("=")
        if is_named:
            amounts[name] = float(amount)
    return amounts


def _disks(table: FamilyTable, family: _Family, sizes: list[_Size]) -> dict[str, float]:
    if family.disk == _USUAL:
        usual = _named(table.usual.disk)
        return {each.name: usual[str(each.vcpus)] for each in sizes}
    amounts = _listed(family.disk, len(sizes)) if family.disk else [0] * len(sizes)
    return {each.name: amount for each, amount in zip(sizes, amounts, strict=True)}


def _devices(devices: _Devices | None, place: int) -> tuple[Device, ...]:
    if devices is None:
        return ()
    count = int(devices.count.split()[place])
    return (Device(devices.name, devices.by, count, devices.mib, devices.cores),)


def _listed(text: str, length: int) -> list[int]:
    numbers = [int(each) for each in text.split()]
    assert len(numbers) == length, f"`{text}` are not {length} numbers"
    return numbers


def _named(text: str) -> dict[str, int]:
    parts = (each.partition("=") for each in text.split())
    return {name: int(amount) for name, _, amount in parts}


def _pair(text: str) -> tuple[int, int]:
    interfaces, _, addresses = text.partition("x")
    return int(interfaces), int(addresses)
