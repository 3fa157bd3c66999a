"""What goes wrong in an account: it is named in a condition, and costs no machine."""

import asyncio
from datetime import timedelta

import pytest

from karpy.codec.fields import JsonObject
from karpy.model.kinds import DEPLOYMENT, EC2_NODE_CLASS, NODE_CLAIM, NODE_POOL
from karpy.model.labels import CAPACITY_TYPE, ZONE
from karpy.sim.faults import InjectedFault, unreachable
from tests.aws.manifests import class_ref, ec2_node_class, ec2_pool, one_of
from tests.aws.stage import AwsStage, aws_stage, condition
from tests.scenarios.manifests import deployment
from tests.sim.stories import on_virtual_time

SELECTED = [{"tags": {"team": "shop"}}]
RESERVED = {"InstanceMatchCriteria": "targeted", "Tags": [{"Key": "team", "Value": "shop"}]}


def said(stage: AwsStage, type_: str) -> JsonObject:
    """Return a condition of the node class."""
    found: list[JsonObject] = stage.node_class()["status"]["conditions"]
    return next(each for each in found if each["type"] == type_)


def said_now(stage: AwsStage, type_: str) -> str:
    """Return the message of a condition; empty as long as there is none."""
    found = (stage.node_class().get("status") or {}).get("conditions") or []
    return next((each.get("message", "") for each in found if each["type"] == type_), "")


async def settled(stage: AwsStage, *requirements: JsonObject, **spec: object) -> None:
    """Have two pods run on machines of a node class."""
    stage.apply(EC2_NODE_CLASS, ec2_node_class("default", **spec))
    stage.apply(NODE_POOL, ec2_pool("default", *requirements))
    stage.apply(DEPLOYMENT, deployment(replicas=2))
    await stage.until_running("inflate", 2)


@on_virtual_time
async def test_a_reservation_is_used_first_and_on_demand_when_it_is_used_up() -> None:
    async with aws_stage() as stage:
        stage.tables.reserve("cr-1", "m5.large", "us-west-2b", 1, **RESERVED)
        wanted = one_of(CAPACITY_TYPE, "reserved", "on-demand")
        await settled(stage, wanted, capacityReservationSelectorTerms=SELECTED)

        by_type = {each["InstanceType"]: each for each in stage.ec2.alive()}
        assert by_type["m5.large"]["CapacityReservationId"] == "cr-1"
        reserved = [each for each in stage.nodes if _label(each, CAPACITY_TYPE) == "reserved"]
        assert [_label(each, "karpenter.k8s.aws/capacity-reservation-id") for each in reserved] == [
            "cr-1"
        ]
        assert stage.tables.market.left == {"cr-1": 0}
        assert stage.labels(CAPACITY_TYPE) == {"reserved", "on-demand"}


@on_virtual_time
async def test_a_machine_whose_tags_are_removed_is_released() -> None:
    """It is a person's from then on: never terminated, though its NodeClaim goes."""
    async with aws_stage() as stage:
        await settled(stage)
        [instance] = stage.ec2.alive()
        tags = instance["Tags"]
        instance["Tags"] = [each for each in tags if not each["Key"].startswith("kubernetes.io/")]

        stage.delete(DEPLOYMENT, "inflate")
        stage.delete(NODE_POOL, "default")
        await stage.until(lambda: not stage.claims)
        await asyncio.sleep(600)

        assert stage.ec2.alive() == [instance]


@on_virtual_time
async def test_a_machine_whose_status_checks_fail_is_replaced() -> None:
    async with aws_stage() as stage:
        await settled(stage)
        before = stage.instance_of(stage.nodes[0])
        since = stage.world.clock.now() - timedelta(minutes=3)
        stage.tables.impair(before, since=since)

        await stage.until(lambda: before not in map(stage.instance_of, stage.nodes), 300)
        await stage.until_running("inflate", 2)

        assert [each["InstanceId"] for each in stage.ec2.alive()] != [before]


@on_virtual_time
async def test_nothing_is_launched_in_a_zone_that_traffic_is_shifted_away_from() -> None:
    async with aws_stage(has_operator=False, enable_zonal_shift=True) as stage:
        subnet = stage.ec2.subnets[0]
        until = stage.world.clock.now() + timedelta(minutes=20)
        stage.tables.shift(str(subnet["AvailabilityZoneId"]), until)
        stage.hire()
        stage.apply(EC2_NODE_CLASS, ec2_node_class())
        stage.apply(NODE_POOL, ec2_pool("default", one_of(ZONE, str(subnet["AvailabilityZone"]))))
        stage.apply(DEPLOYMENT, deployment(replicas=1))
        await asyncio.sleep(600)
        assert stage.ec2.launched == 0

        # The shift is over by itself.
        await stage.until_running("inflate", 1)


@on_virtual_time
async def test_messages_that_are_none_do_not_block_the_queue() -> None:
    async with aws_stage() as stage:
        await settled(stage)
        before = stage.instance_of(stage.nodes[0])
        for body in ("", "{", "[]", '{"version": "1"}', '{"detail": 1}', "x" * 10_000):
            stage.ec2.send(body)

        stage.ec2.interrupt(before)

        await stage.until(lambda: before not in map(stage.instance_of, stage.nodes), 120)
        await stage.until(lambda: not stage.ec2.messages, 60)


@on_virtual_time
async def test_a_permission_that_lacks_is_named_and_pools_wait() -> None:
    async with aws_stage(has_operator=False) as stage:
        denied = "You are not authorized to perform this operation."
        stage.tables.refuse("CreateFleet", "UnauthorizedOperation", denied, times=1_000)
        stage.hire()
        stage.apply(EC2_NODE_CLASS, ec2_node_class())
        stage.apply(NODE_POOL, ec2_pool())
        stage.apply(DEPLOYMENT, deployment(replicas=1))
        await stage.until(lambda: condition(stage.node_class(), "ValidationSucceeded") == "False")

        found = said(stage, "ValidationSucceeded")
        assert found["reason"] == "CreateFleetAuthCheckFailed"
        assert "CreateFleet" in found["message"]
        assert condition(stage.store.get(NODE_POOL, "default"), "Ready") == "False"
        assert stage.ec2.launched == 0


@pytest.mark.parametrize(
    ("action", "type_"),
    [
        ("ssm:GetParameter", "AMIsReady"),
        ("ec2:DescribeImages", "AMIsReady"),
        ("ec2:DescribeSubnets", "SubnetsReady"),
        ("ec2:DescribeSecurityGroups", "SecurityGroupsReady"),
        ("ec2:DescribeCapacityReservations", "CapacityReservationsReady"),
        ("ec2:DescribePlacementGroups", "PlacementGroupReady"),
        ("iam:GetInstanceProfile", "InstanceProfileReady"),
        ("iam:CreateInstanceProfile", "InstanceProfileReady"),
        ("iam:AddRoleToInstanceProfile", "InstanceProfileReady"),
        ("ec2:CreateLaunchTemplate", "ValidationSucceeded"),
        ("ec2:CreateFleet", "ValidationSucceeded"),
        ("ec2:RunInstances", "ValidationSucceeded"),
    ],
)
@on_virtual_time
async def test_the_condition_of_a_call_that_is_denied_names_the_statement_that_allows_it(
    action: str, type_: str
) -> None:
    async with aws_stage(has_operator=False) as stage:
        call = action.partition(":")[2]
        stage.tables.group("pg-1", "close", "cluster")
        stage.tables.refuse(call, "UnauthorizedOperation", "You may not.", times=1_000)
        stage.hire()
        terms = {"capacityReservationSelectorTerms": [{"tags": {"team": "shop"}}]}
        selector = {"placementGroupSelector": {"name": "close"}}
        stage.apply(EC2_NODE_CLASS, ec2_node_class("default", **terms, **selector))
        statement = f'{{"Effect": "Allow", "Action": "{action}", "Resource": "*"}}'
        await stage.until(lambda: statement in said_now(stage, type_), 60)

        assert condition(stage.node_class(), "Ready") != "True"


@on_virtual_time
async def test_a_node_class_that_could_not_be_worked_on_is_looked_at_again_soon() -> None:
    async with aws_stage() as stage:
        stage.tables.refuse("DescribeSubnets", "InternalError", "try again", times=3)
        stage.apply(EC2_NODE_CLASS, ec2_node_class())

        await stage.until(lambda: condition(stage.node_class(), "Ready") == "True", 10)


@on_virtual_time
async def test_a_subnet_without_addresses_is_left_for_another() -> None:
    async with aws_stage() as stage:
        for subnet in stage.ec2.subnets[1:]:
            subnet["AvailableIpAddressCount"] = 0
        await settled(stage)

        [instance] = stage.ec2.alive()
        assert instance["SubnetId"] == stage.ec2.subnets[0]["SubnetId"]


@on_virtual_time
async def test_pool_and_claim_report_a_node_class_that_does_not_exist() -> None:
    async with aws_stage() as stage:
        stage.apply(NODE_POOL, ec2_pool("default"))
        own = {"requirements": [], "nodeClassRef": class_ref("gone")}
        stage.apply(NODE_CLAIM, {"metadata": {"name": "own"}, "spec": own})
        await stage.until(lambda: len(stage.events("FailedResolvingNodeClass")) > 1)

        told = {
            (each["involvedObject"]["kind"], each["message"])
            for each in stage.events("FailedResolvingNodeClass")
        }
        assert told == {
            ("NodePool", "Failed resolving NodeClass `default`"),
            ("NodeClaim", "Failed resolving NodeClass `gone`"),
        }
        await stage.until(lambda: not stage.claims)


@on_virtual_time
async def test_a_machine_that_cannot_be_written_down_for_minutes_is_kept_for_its_claim() -> None:
    async with aws_stage() as stage:
        stage.apply(EC2_NODE_CLASS, ec2_node_class())
        stage.apply(NODE_POOL, ec2_pool())
        await stage.until_ready()
        stage.faults.add(InjectedFault(unreachable, ("patch",), NODE_CLAIM))
        stage.apply(DEPLOYMENT, deployment(replicas=1))
        await asyncio.sleep(180)
        claims = len(stage.claims)

        stage.faults.clear()
        await stage.until_running("inflate", 1)

        assert stage.ec2.launched == claims


@on_virtual_time
async def test_a_launch_that_is_denied_names_the_statement_that_allows_it() -> None:
    async with aws_stage() as stage:
        stage.apply(EC2_NODE_CLASS, ec2_node_class())
        stage.apply(NODE_POOL, ec2_pool())
        await stage.until_ready()
        long = "You are not authorized. Encoded authorization failure message: " + "x" * 900
        stage.tables.refuse("CreateFleet", "UnauthorizedOperation", long, times=1_000)
        stage.apply(DEPLOYMENT, deployment(replicas=1))
        await stage.until(lambda: "Unauthorized" in str(stage.claims[:1]), 60)

        [claim] = stage.claims
        launched = next(c for c in claim["status"]["conditions"] if c["type"] == "Launched")
        assert (launched["status"], launched["reason"]) == ("Unknown", "Unauthorized")
        statement = '{"Effect": "Allow", "Action": "ec2:CreateFleet", "Resource": "*"}'
        assert statement in launched["message"]


@on_virtual_time
async def test_machines_that_no_claim_names_are_ended_together() -> None:
    async with aws_stage() as stage:
        await settled(stage)
        instance, kept = stage.ec2.alive()[0], len(stage.ec2.alive())
        for each in range(40):
            id_ = f"i-{each:017x}"
            ours = [tag for tag in instance["Tags"] if tag["Key"] != "karpenter.sh/nodeclaim"]
            stage.ec2.instances[id_] = {**instance, "InstanceId": id_, "Tags": ours}
        asked = stage.tables.calls.get("TerminateInstances", 0)
        await stage.until(lambda: len(stage.ec2.alive()) == kept, 300)

        assert stage.tables.calls["TerminateInstances"] - asked <= 4


@on_virtual_time
async def test_everything_is_sold_out_for_a_while() -> None:
    async with aws_stage() as stage:
        stage.tables.market.sell_out()
        stage.apply(EC2_NODE_CLASS, ec2_node_class())
        stage.apply(NODE_POOL, ec2_pool())
        stage.apply(DEPLOYMENT, deployment(replicas=2))
        await asyncio.sleep(300)
        assert (stage.ec2.launched, stage.nodes) == (0, [])
        asked = stage.tables.calls["CreateFleet"]

        stage.tables.market.restock()
        await stage.until_running("inflate", 2)

        # What is sold out is not asked for again and again.
        assert asked < 40


def _label(node: JsonObject, key: str) -> str:
    value: str = node["metadata"]["labels"].get(key, "")
    return value
