"""
Measure decisions and launches with the catalog of EC2.

    python -m benchmarks.aws    half a minute; it needs the extra aws-fake
"""

import asyncio
import gc
import json
import resource
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace

from karpy.adapters.clouds.aws.builtin import builtin_region
from karpy.adapters.clouds.aws.machines import Machines
from karpy.adapters.clouds.awsfake.tables import Tables
from karpy.adapters.clouds.awsfake.typetable import types_of, zones_of
from karpy.bench.workloads import encode_workload, find_recipe
from karpy.codec.aws.instancetypes import read_instance_types
from karpy.codec.karpbench import read_workload
from karpy.core.aws.catalog import CatalogMaker
from karpy.core.scheduling.decide import decide
from karpy.model.ec2 import Ec2Market, InstanceSettings, Region
from karpy.model.instances import Catalog
from karpy.model.snapshot import Snapshot
from karpy.sim.clock import LoopClock
from karpy.sim.ec2.calls import MemoryCalls
from karpy.sim.ec2.cloud import Ec2Cloud
from karpy.sim.ec2.machines import SimulatedMachines as Metal
from karpy.sim.kubelets.hardware import Hardware
from karpy.sim.loop import run
from karpy.sim.world import START

REGION: Final = "us-east-1"
WORKLOADS: Final = ("diverse-200", "diverse-1000", "preference-500")
_ROUNDS: Final = 7
_FEW_TYPES: Final = 800
_LAUNCHES: Final = 500
_KIB: Final = 1024
_PLAIN: Final = InstanceSettings()
_TEMPLATE: Final = "karpenter.k8s.aws/1"


class _Nothing:
    """Ignores boots and halts: no machine runs."""

    def boot(self, hardware: Hardware) -> None:
        """Do nothing."""

    def halt(self, name: str) -> None:
        """Do nothing."""


def main() -> None:
    """Print what was measured."""
    answers, zones = list(types_of().values()), zones_of(REGION)
    seconds = statistics.median(_cpu(lambda: _catalog(answers, zones)) for _ in range(_ROUNDS))
    maker, catalog = _catalog(answers, zones)
    offers = sum(len(each.offerings) for each in catalog.types_for("a"))
    types = len(catalog.types_for("a"))
    print(f"catalog of {REGION}: {types:,} types, {offers:,} offerings, {seconds:.2f} s of CPU")
    made = maker.made
    same = maker.make(_region(answers, zones), {"a": _PLAIN}) is catalog
    print(f"asked again with equal answers: the same catalog {same}, {maker.made - made} made")
    for name in WORKLOADS:
        whole, part = _decisions(name)
        print(
            f"decision on {name}: {whole:.3f} s, with {_FEW_TYPES} types {part:.3f} s, "
            f"{whole / part:.2f} times"
        )
    print(f"{_LAUNCHES} launches of one shape within a second: {run(_launches())} calls")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _KIB
    print(f"memory of all this: {peak:.0f} MB")


def _region(answers: Sequence[object], zones: Mapping[str, Sequence[str]]) -> Region:
    infos, _ = read_instance_types(answers)
    prices = {each.name: each.vcpus * 48_000 for each in infos}
    sold = {name: frozenset(some) for name, some in zones.items()}
    return Region(REGION, infos, Ec2Market(sold, on_demand=prices))


def _catalog(
    answers: Sequence[object], zones: Mapping[str, Sequence[str]]
) -> tuple[CatalogMaker, Catalog]:
    maker = CatalogMaker()
    return maker, maker.make(_region(answers, zones), {"a": _PLAIN})


def _decisions(workload: str) -> tuple[float, float]:
    """Return the CPU seconds with all types and with some, each the median of its runs."""
    region = builtin_region(REGION)
    whole = CatalogMaker().make(region, {}, _PLAIN)
    some = replace(region, types=region.types[:_FEW_TYPES])
    part = CatalogMaker().make(some, {}, _PLAIN)
    times: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(_ROUNDS):
        for is_whole, catalog in ((True, whole), (False, part)):
            snapshot = replace(_snapshot(workload), catalog=catalog)
            times[is_whole].append(_cpu(partial(decide, snapshot)))
    return statistics.median(times[True]), statistics.median(times[False])


def _snapshot(workload: str) -> Snapshot:
    made = json.loads(encode_workload(find_recipe(workload).make()))
    return read_workload(made, workload)


async def _launches() -> int:
    """Return how many calls the launches took."""
    types = types_of(("c6a",))
    tables = Tables(REGION, {}, types, zones_of(REGION))
    cloud = Ec2Cloud(tables, LoopClock(START), Metal(_Nothing(), types.values()))
    data = {"ImageId": "ami-1"}
    cloud.create_launch_template({"LaunchTemplateName": _TEMPLATE, "LaunchTemplateData": data})
    machines = Machines(MemoryCalls(cloud), "demo")
    override = {"InstanceType": "c6a.large", "AvailabilityZone": f"{REGION}a"}
    config = {
        "LaunchTemplateSpecification": {"LaunchTemplateName": _TEMPLATE},
        "Overrides": [override],
    }
    request = {
        "LaunchTemplateConfigs": [config],
        "TargetCapacitySpecification": {"TotalTargetCapacity": 1},
    }

    async def launch(number: int) -> None:
        await asyncio.sleep(number / _LAUNCHES)
        await machines.launch(request)

    await asyncio.gather(*map(launch, range(_LAUNCHES)))
    return machines.fleet_calls


def _cpu(work: Callable[[], object]) -> float:
    gc.collect()
    began = time.process_time()
    work()
    return time.process_time() - began


if __name__ == "__main__":
    main()
