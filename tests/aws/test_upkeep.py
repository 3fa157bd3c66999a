"""Stories of what AWS takes back, forbids or moves, and what becomes of machines then."""

import asyncio
from base64 import b64decode
from datetime import timedelta

import pytest

from karpy.codec.fields import JsonObject
from karpy.model.kinds import DEPLOYMENT, EC2_NODE_CLASS, NODE_CLAIM, NODE_POOL
from karpy.model.labels import CAPACITY_TYPE, ZONE
from tests.aws.manifests import ec2_node_class, ec2_pool, one_of
from tests.aws.stage import AUTHORITY, AwsStage, aws_stage, condition
from tests.scenarios.manifests import deployment
from tests.sim.stories import on_virtual_time

RESERVATION = "karpenter.k8s.aws/capacity-reservation-id"
PARTITION = "karpenter.k8s.aws/placement-group-partition"
EVERY = one_of(CAPACITY_TYPE, "reserved", "spot", "on-demand")


def said(obj: JsonObject, type_: str) -> tuple[str, str, str]:
    found = (obj.get("status") or {}).get("conditions") or []
    (only,) = [each for each in found if each["type"] == type_]
    return only["status"], only["reason"], only["message"]


def reserving() -> JsonObject:
    return ec2_node_class(capacityReservationSelectorTerms=[{"id": "cr-1"}])


async def with_pods(stage: AwsStage, node_class: JsonObject, *asked: JsonObject) -> None:
    stage.apply(EC2_NODE_CLASS, node_class)
    stage.apply(NODE_POOL, ec2_pool("default", *asked))
    stage.apply(DEPLOYMENT, deployment(replicas=1))
    await stage.until_running("inflate", 1)


@on_virtual_time
async def test_reserved_machines_go_before_all_others_as_long_as_there_are_any() -> None:
    async with aws_stage() as stage:
        stage.tables.reserve("cr-1", "m5.xlarge", "us-west-2a", 1)
        await with_pods(stage, reserving(), EVERY)

        (instance,) = stage.ec2.alive()
        assert instance["CapacityReservationId"] == "cr-1"
        assert stage.labels(CAPACITY_TYPE) == {"reserved"}
        assert stage.labels(RESERVATION) == {"cr-1"}

        stage.change(DEPLOYMENT, "inflate", {"spec": {"replicas": 20}})
        await stage.until_running("inflate", 20)
        assert stage.labels(CAPACITY_TYPE) == {"reserved", "spot"}
        reserved = [each for each in stage.ec2.alive() if each.get("CapacityReservationId")]
        assert len(reserved) == 1


@on_virtual_time
async def test_a_change_of_the_node_class_does_not_forget_what_was_launched() -> None:
    """Until EC2 is asked again, a reservation has as many machines left as launches have left."""
    async with aws_stage() as stage:
        stage.tables.reserve("cr-1", "m5.xlarge", "us-west-2a", 1)
        await with_pods(stage, reserving(), EVERY)
        stage.change(EC2_NODE_CLASS, "default", {"metadata": {"labels": {"team": "shop"}}})
        await asyncio.sleep(2)
        stage.change(DEPLOYMENT, "inflate", {"spec": {"replicas": 20}})
        await stage.until_running("inflate", 20)

        assert stage.labels(CAPACITY_TYPE) == {"reserved", "spot"}
        assert stage.events("InsufficientCapacityError") == []


@on_virtual_time
async def test_a_machine_whose_reservation_ends_is_on_demand_from_then_on() -> None:
    async with aws_stage() as stage:
        stage.tables.reserve("cr-1", "m5.xlarge", "us-west-2a", 1)
        await with_pods(stage, reserving(), EVERY)
        (instance,) = stage.ec2.alive()
        stage.change(NODE_POOL, "default", {"spec": {"disruption": {"budgets": [{"nodes": "0"}]}}})

        del instance["CapacityReservationId"]
        del stage.tables.reservations["cr-1"]
        await stage.until(lambda: stage.labels(CAPACITY_TYPE) == {"on-demand"}, 200)

        assert stage.labels(RESERVATION) == {""}
        (claim,) = stage.claims
        assert claim["metadata"]["labels"][CAPACITY_TYPE] == "on-demand"


@on_virtual_time
async def test_machines_of_a_capacity_block_go_before_it_ends() -> None:
    async with aws_stage() as stage:
        ends = stage.world.clock.now() + timedelta(hours=1)
        stage.tables.reserve(
            "cr-1", "m5.xlarge", "us-west-2a", 2, ReservationType="capacity-block", EndDate=ends
        )
        await with_pods(stage, reserving(), EVERY)
        assert stage.labels(CAPACITY_TYPE) == {"reserved"}

        await asyncio.sleep(30 * 60)
        await stage.until_running("inflate", 1)

        found = stage.node_class()["status"]["capacityReservations"]
        assert [each["state"] for each in found] == ["expiring"]
        assert stage.labels(CAPACITY_TYPE) == {"spot"}


@on_virtual_time
async def test_a_node_registers_once_ec2_has_chosen_its_partition() -> None:
    async with aws_stage() as stage:
        stage.tables.group("pg-1", "spread-out", "partition", 3)
        selector = {"name": "spread-out"}
        running = asyncio.create_task(
            with_pods(stage, ec2_node_class(placementGroupSelector=selector))
        )
        held = ("Unknown", "RegistrationHookPending", "PlacementGroupPartition")
        await stage.until(lambda: bool(stage.nodes), 60)
        await stage.until(lambda: said(stage.claims[0], "Registered") == held, 60)
        (instance,) = stage.ec2.alive()
        assert instance["Placement"]["GroupId"] == "pg-1"

        instance["Placement"]["PartitionNumber"] = 2
        await running
        assert stage.labels(PARTITION) == {"2"}

        assert stage.labels("karpenter.k8s.aws/placement-group-id") == {"pg-1"}
        (claim,) = stage.claims
        assert claim["metadata"]["labels"][PARTITION] == "2"


@on_virtual_time
async def test_a_machine_whose_tag_a_person_removes_is_released() -> None:
    async with aws_stage() as stage:
        await with_pods(stage, ec2_node_class())
        (instance,) = stage.ec2.alive()
        owned = "kubernetes.io/cluster/demo"
        instance["Tags"] = [each for each in instance["Tags"] if each["Key"] != owned]
        stage.delete(DEPLOYMENT, "inflate")
        for each in stage.claims:
            stage.delete(NODE_CLAIM, each["metadata"]["name"])

        await stage.until(lambda: not stage.claims and not stage.nodes)

        assert [each["InstanceId"] for each in stage.ec2.alive()] == [instance["InstanceId"]]


@on_virtual_time
async def test_nothing_is_launched_in_a_zone_that_traffic_is_shifted_away_from() -> None:
    async with aws_stage(enable_zonal_shift=True) as stage:
        stage.apply(EC2_NODE_CLASS, ec2_node_class())
        stage.apply(NODE_POOL, ec2_pool())
        await stage.until_ready()
        zones = {each["zone"]: each["zoneID"] for each in stage.node_class()["status"]["subnets"]}
        left = max(zones)
        for zone in zones.keys() - {left}:
            stage.tables.shift(zones[zone], stage.world.clock.now() + timedelta(hours=1))
        await asyncio.sleep(40)

        stage.apply(DEPLOYMENT, deployment(replicas=3))
        await stage.until_running("inflate", 3)

        assert stage.labels(ZONE) == {left}


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("CreateLaunchTemplate", "CreateLaunchTemplateAuthCheckFailed"),
        ("CreateFleet", "CreateFleetAuthCheckFailed"),
        ("RunInstances", "RunInstancesAuthCheckFailed"),
    ],
)
def test_what_the_operator_may_not_do_is_said_by_the_node_class(call: str, reason: str) -> None:
    @on_virtual_time
    async def story() -> None:
        async with aws_stage(has_operator=False) as stage:
            stage.tables.refuse(call, "UnauthorizedOperation", "You are not authorized", times=50)
            stage.hire()
            stage.apply(EC2_NODE_CLASS, ec2_node_class())
            stage.apply(NODE_POOL, ec2_pool())
            await stage.until(
                lambda: condition(stage.node_class(), "ValidationSucceeded") == "False", 60
            )

            status, found, message = said(stage.node_class(), "ValidationSucceeded")
            assert (status, found) == ("False", reason)
            assert "You are not authorized" in message
            assert condition(stage.node_class(), "Ready") == "False"

    story()


@on_virtual_time
async def test_machines_know_the_cluster_by_the_authority_of_the_kubeconfig() -> None:
    """The hash of node classes covers it, and Karpenter takes it from there."""
    async with aws_stage() as stage:
        await with_pods(stage, ec2_node_class())

        made = [each["data"]["UserData"] for each in stage.ec2.templates.values()]
        assert made
        assert all(f"Authority: {AUTHORITY}" in b64decode(each).decode() for each in made)


@on_virtual_time
async def test_user_data_that_is_almost_too_long_is_remarked() -> None:
    async with aws_stage() as stage:
        await with_pods(stage, ec2_node_class(userData="#!/bin/sh\n#" + "x" * 14_000))

        (said, *_) = [each for each in stage.voice.remarks if "user data" in each.event]
        assert said.event == "user data takes 90 % of the limit or more"
        assert (said.fields["EC2NodeClass"], said.fields["limit"]) == ("default", "16384")
        assert 14_746 < int(said.fields["bytes"]) < 16_384


@on_virtual_time
async def test_user_data_that_is_too_long_is_named() -> None:
    async with aws_stage() as stage:
        long = "User data is limited to 16384 bytes"
        stage.tables.refuse("CreateLaunchTemplate", "InvalidUserData.Malformed", long)
        stage.apply(EC2_NODE_CLASS, ec2_node_class())
        await stage.until(
            lambda: condition(stage.node_class(), "ValidationSucceeded") == "False", 60
        )

        assert said(stage.node_class(), "ValidationSucceeded") == (
            "False",
            "UserDataSizeLimitExceeded",
            long,
        )


@on_virtual_time
async def test_a_launch_that_is_refused_says_why_on_its_claim() -> None:
    async with aws_stage(disable_dry_run=True) as stage:
        stage.apply(EC2_NODE_CLASS, ec2_node_class())
        stage.apply(NODE_POOL, ec2_pool())
        await stage.until_ready()
        stage.tables.refuse("CreateFleet", "PendingVerification", "verify the account", times=99)
        stage.apply(DEPLOYMENT, deployment(replicas=1))
        await stage.until(lambda: bool(stage.claims) and has_said(stage, "Launched"), 60)

        status, reason, message = said(stage.claims[0], "Launched")
        assert (status, reason) == ("Unknown", "AccountPendingVerification")
        assert "verify the account" in message


def has_said(stage: AwsStage, type_: str) -> bool:
    found = (stage.claims[0].get("status") or {}).get("conditions") or []
    return any(
        (each["type"], each["reason"]) != (type_, "AwaitingReconciliation")
        for each in found
        if each["type"] == type_
    )


@on_virtual_time
async def test_a_node_class_that_is_used_waits_for_its_last_claim() -> None:
    async with aws_stage() as stage:
        await with_pods(stage, ec2_node_class())
        stage.delete(EC2_NODE_CLASS, "default")
        await asyncio.sleep(5)

        assert stage.node_class()["metadata"]["deletionTimestamp"]
        assert stage.ec2.profiles
        stage.delete(DEPLOYMENT, "inflate")
        stage.delete(NODE_POOL, "default")
        await stage.until_clean()
        await stage.until(lambda: not stage.store.list(EC2_NODE_CLASS), 60)
