import asyncio

import pytest

from karpy.adapters.clouds.aws.machines import FleetLaunch, Machines
from karpy.adapters.clouds.aws.reports import Reports
from karpy.errors import AwsRefused, MachineNotFound
from karpy.model.ec2 import Instance
from karpy.sim.loop import run
from tests.adapters.clouds.aws.accounts import Account, account

GONE = f"i-{'f' * 17}"


def request(*zones: str) -> dict[str, object]:
    return {
        "LaunchTemplateConfigs": [
            {
                "LaunchTemplateSpecification": {"LaunchTemplateName": "lt"},
                "Overrides": [
                    {
                        "InstanceType": "c6a.large",
                        "AvailabilityZone": zone,
                        "SubnetId": f"subnet-{zone}",
                        "ImageId": "ami-1",
                    }
                    for zone in zones
                ],
            }
        ],
        "TargetCapacitySpecification": {"DefaultTargetCapacityType": "on-demand"},
    }


def with_template(some: Account) -> Machines:
    some.cloud.create_launch_template({"LaunchTemplateName": "lt", "LaunchTemplateData": {}})
    return Machines(some.calls, "demo")


def test_launches_that_are_alike_cost_one_call() -> None:
    async def story(some: Account) -> tuple[list[FleetLaunch], int]:
        machines = with_template(some)
        fleets = await asyncio.gather(
            *(machines.launch(request("us-west-2a")) for _ in range(20)),
            machines.launch(request("us-west-2b")),
        )
        return fleets, some.made("CreateFleet")

    with account() as some:
        fleets, calls = run(story(some))

    assert calls == 2
    launched = [each.launched for each in fleets if each.launched is not None]
    assert len({each.id for each in launched}) == 21
    assert [each.zone for each in launched].count("us-west-2b") == 1


def test_errors_are_raised_for_launches_without_a_machine_and_reported_for_the_others() -> None:
    async def story(some: Account) -> list[FleetLaunch]:
        machines = with_template(some)
        some.tables.market.sell_out(zone="us-west-2a")
        return [
            await machines.launch(request("us-west-2a")),
            await machines.launch(request("us-west-2a", "us-west-2b")),
        ]

    with account() as some:
        failed, launched = run(story(some))

    assert failed.launched is None
    assert {each.code for each in failed.errors} == {"InsufficientInstanceCapacity"}
    assert launched.launched is not None
    assert launched.launched.zone == "us-west-2b"


def test_a_machine_that_is_gone_does_not_hide_the_others() -> None:
    async def story(some: Account) -> tuple[list[Instance | BaseException], int]:
        machines = Machines(some.calls, "demo")
        ids = [some.run_instance()["InstanceId"] for _ in range(3)]
        found = await asyncio.gather(
            *(machines.find(each) for each in [*ids, GONE]), return_exceptions=True
        )
        return found, some.made("DescribeInstances")

    with account() as some:
        found, calls = run(story(some))

    assert isinstance(found[3], MachineNotFound)
    assert not any(isinstance(each, Exception) for each in found[:3])
    assert calls == 5


def test_what_was_seen_is_not_asked_for_again_unless_it_must_be_fresh() -> None:
    async def story(some: Account) -> list[str]:
        machines = Machines(some.calls, "demo")
        instance = some.run_instance()
        id_ = instance["InstanceId"]
        states = [(await machines.find(id_)).state]
        instance["State"] = {"Name": "stopping"}
        states.append((await machines.find(id_)).state)
        states.append((await machines.find(id_, is_fresh=True)).state)
        known = machines.known(id_)
        return [*states, "" if known is None else known.state]

    with account() as some:
        assert run(story(some)) == ["running", "running", "stopping", "stopping"]


def test_machines_of_others_are_not_listed() -> None:
    async def story(some: Account) -> list[str]:
        mine = some.run_instance()
        some.run_instance(Tags=[{"Key": "kubernetes.io/cluster/other", "Value": "owned"}])
        some.run_instance(State={"Name": "terminated"})
        found = await Machines(some.calls, "demo").list()
        assert [each.id for each in found] == [mine["InstanceId"]]
        return [found[0].instance_type, found[0].zone, found[0].tags["karpenter.sh/nodepool"]]

    with account() as some:
        assert run(story(some)) == ["c6a.large", "us-west-2a", "web"]


def test_the_end_of_many_machines_is_one_call_and_known_in_the_end() -> None:
    async def story(some: Account) -> int:
        machines = Machines(some.calls, "demo")
        ids = [some.run_instance()["InstanceId"] for _ in range(10)]
        await asyncio.gather(*map(machines.terminate, ids))
        await machines.terminate(ids[0])
        await asyncio.sleep(30)
        with pytest.raises(MachineNotFound):
            await machines.terminate(ids[0])
        return some.made("TerminateInstances")

    with account() as some:
        assert run(story(some)) == 1


def test_an_end_that_is_refused_for_one_is_tried_for_each() -> None:
    async def story(some: Account) -> list[object]:
        machines = Machines(some.calls, "demo")
        ids = [some.run_instance()["InstanceId"] for _ in range(2)]
        some.tables.refuse("TerminateInstances", "InternalError")
        return await asyncio.gather(*map(machines.terminate, ids), return_exceptions=True)

    with account() as some:
        assert run(story(some)) == [None, None]
        assert some.cloud.alive() == []


def test_tags_of_a_machine_that_is_gone_say_so() -> None:
    async def story(some: Account) -> None:
        machines = Machines(some.calls, "demo")
        id_ = some.run_instance()["InstanceId"]
        await machines.tag(id_, {"Name": "node-1"})
        with pytest.raises(MachineNotFound):
            await machines.tag(GONE, {"Name": "x"})
        some.tables.refuse("CreateTags", "UnauthorizedOperation")
        with pytest.raises(AwsRefused):
            await machines.tag(id_, {"Name": "x"})

    with account() as some:
        run(story(some))
        tags = next(iter(some.cloud.instances.values()))["Tags"]
        assert {"Key": "Name", "Value": "node-1"} in tags


def test_batches_are_measured() -> None:
    async def story(some: Account) -> None:
        machines = Machines(some.calls, "demo", reports=Reports(count=some.counts.append))
        ids = [some.run_instance()["InstanceId"] for _ in range(3)]
        await asyncio.gather(*map(machines.find, ids))

    with account() as some:
        run(story(some))
        size = some.counted("cloudprovider_batcher_batch_size")
        ((labels, seconds),) = some.counted("cloudprovider_batcher_batch_time_seconds")

    assert size == [({"batcher": "describe_instances"}, 3.0)]
    assert labels == {"batcher": "describe_instances"}
    assert seconds == pytest.approx(0.1)


def test_a_machine_without_the_tag_of_the_cluster_is_not_ended() -> None:
    async def story(some: Account) -> None:
        machines = Machines(some.calls, "demo")
        id_ = some.run_instance(Tags=[])["InstanceId"]
        with pytest.raises(MachineNotFound):
            await machines.terminate(id_)

    with account() as some:
        run(story(some))
        assert len(some.cloud.alive()) == 1
