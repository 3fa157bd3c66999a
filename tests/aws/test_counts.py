"""What launches cost AWS, counted in calls."""

import asyncio

import pytest

from karpy.adapters.clouds.aws.machines import Machines
from karpy.adapters.clouds.awsfake.tables import Tables
from karpy.adapters.clouds.awsfake.typetable import types_of, zones_of
from karpy.codec.fields import JsonObject
from karpy.sim.clock import LoopClock
from karpy.sim.ec2.calls import MemoryCalls
from karpy.sim.ec2.cloud import Ec2Cloud
from karpy.sim.ec2.machines import SimulatedMachines as Metal
from karpy.sim.kubelets.hardware import Hardware
from karpy.sim.world import START
from tests.aws.stage import REGION
from tests.sim.stories import on_virtual_time

TEMPLATE = "karpenter.k8s.aws/1"


class Nothing:
    """Machines that never boot."""

    def boot(self, hardware: Hardware) -> None:
        """Do nothing."""

    def halt(self, name: str) -> None:
        """Do nothing."""


def account() -> Ec2Cloud:
    types = {name: each for name, each in types_of(("c6a",)).items() if name == "c6a.large"}
    tables = Tables(REGION, {"c6a.large": 76_500}, types, zones_of(REGION))
    cloud = Ec2Cloud(tables, LoopClock(START), Metal(Nothing(), types.values()))
    cloud.create_launch_template(
        {"LaunchTemplateName": TEMPLATE, "LaunchTemplateData": {"ImageId": "ami-1"}}
    )
    return cloud


def wanted(team: str = "shop") -> JsonObject:
    override = {"InstanceType": "c6a.large", "AvailabilityZone": "us-west-2a", "Priority": 1.0}
    tags = [{"Key": "team", "Value": team}]
    return {
        "Type": "instant",
        "LaunchTemplateConfigs": [
            {
                "LaunchTemplateSpecification": {"LaunchTemplateName": TEMPLATE},
                "Overrides": [override],
            }
        ],
        "TargetCapacitySpecification": {
            "DefaultTargetCapacityType": "on-demand",
            "TotalTargetCapacity": 1,
        },
        "TagSpecifications": [{"ResourceType": "instance", "Tags": tags}],
    }


@on_virtual_time
@pytest.mark.parametrize("seconds", [0.0, 0.9])
async def test_five_hundred_launches_of_one_shape_take_few_calls(seconds: float) -> None:
    cloud = account()
    machines = Machines(MemoryCalls(cloud), "demo")

    async def launch(number: int) -> str:
        await asyncio.sleep(seconds * number / 500)
        launched = (await machines.launch(wanted())).launched
        assert launched is not None
        return launched.id

    ids = await asyncio.gather(*map(launch, range(500)))

    assert len(set(ids)) == len(cloud.alive()) == 500
    assert cloud.tables.calls["CreateFleet"] == machines.fleet_calls <= 5


@on_virtual_time
async def test_launches_of_different_shapes_share_no_call() -> None:
    cloud = account()
    machines = Machines(MemoryCalls(cloud), "demo")

    await asyncio.gather(*(machines.launch(wanted(team)) for team in ("shop", "bank", "shop")))

    assert cloud.tables.calls["CreateFleet"] == 2


@on_virtual_time
async def test_machines_of_which_there_are_too_few_are_shared_out() -> None:
    """A caller that gets none gets the reason."""
    cloud = account()
    machines = Machines(MemoryCalls(cloud), "demo")
    cloud.tables.market.sell_out("on-demand", "c6a.large", "us-west-2a")

    fleets = await asyncio.gather(*(machines.launch(wanted()) for _ in range(3)))

    assert [each.launched for each in fleets] == [None] * 3
    assert {error.code for each in fleets for error in each.errors} == {
        "InsufficientInstanceCapacity"
    }
    assert cloud.tables.calls["CreateFleet"] == 1
