"""Stories of fleets that fail in part: what is learned from each error."""

from collections.abc import Callable
from typing import Any

import pytest

from karpy.codec.fields import JsonObject
from karpy.model.kinds import DEPLOYMENT, EC2_NODE_CLASS, NODE_POOL
from karpy.model.labels import CAPACITY_TYPE, ZONE
from tests.aws.manifests import ec2_node_class, ec2_pool, one_of
from tests.aws.stage import AwsStage, aws_stage
from tests.scenarios.manifests import deployment
from tests.sim.stories import on_virtual_time

Judge = Callable[[JsonObject, JsonObject], str]
"""Says of an override of a request with which code it fails; empty if it does not."""


def fail(stage: AwsStage, monkeypatch: pytest.MonkeyPatch, judge: Judge) -> list[JsonObject]:
    """Have fleets fail for some overrides; return the requests as they come."""
    launch, requests = stage.ec2.create_fleet, list[JsonObject]()

    def create_fleet(request: JsonObject) -> JsonObject:
        if request.get("DryRun"):
            return launch(request)
        requests.append(request)
        errors: list[JsonObject] = []
        configs = []
        for config in request["LaunchTemplateConfigs"]:
            kept = []
            for each in config["Overrides"]:
                code = judge(request, each)
                if code:
                    overrides = {"Overrides": each}
                    error: dict[str, Any] = {"LaunchTemplateAndOverrides": overrides}
                    errors.append({**error, "ErrorCode": code, "ErrorMessage": f"{code}!"})
                else:
                    kept.append(each)
            if kept:
                configs.append({**config, "Overrides": kept})
        if not configs:
            return {"Instances": [], "Errors": errors}
        answer = launch({**request, "LaunchTemplateConfigs": configs})
        return {**answer, "Errors": [*answer["Errors"], *errors]}

    create_fleet.__name__ = "create_fleet"
    monkeypatch.setattr(stage.ec2, "create_fleet", create_fleet)
    return requests


def asked(requests: list[JsonObject], field: str) -> set[str]:
    """Return the values that a field of overrides has."""
    return {
        each[field]
        for request in requests
        for config in request["LaunchTemplateConfigs"]
        for each in config["Overrides"]
    }


def is_spot(request: JsonObject) -> bool:
    target: JsonObject = request["TargetCapacitySpecification"]
    return bool(target["DefaultTargetCapacityType"] == "spot")


@on_virtual_time
async def test_without_the_role_of_spot_machines_are_on_demand_and_an_event_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with aws_stage() as stage:
        role = "AuthFailure.ServiceLinkedRoleCreationNotPermitted"
        fail(stage, monkeypatch, lambda request, _: role if is_spot(request) else "")
        stage.apply(EC2_NODE_CLASS, ec2_node_class())
        stage.apply(NODE_POOL, ec2_pool("default", one_of(CAPACITY_TYPE, "spot", "on-demand")))
        stage.apply(DEPLOYMENT, deployment(replicas=2))
        await stage.until_running("inflate", 2)

        assert stage.labels(CAPACITY_TYPE) == {"on-demand"}
        assert stage.events("SpotServiceLinkedRoleCreationFailure")


@on_virtual_time
async def test_a_subnet_without_addresses_is_left_alone_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with aws_stage() as stage:
        full = stage.ec2.subnets[0]["SubnetId"]
        requests = fail(
            stage,
            monkeypatch,
            lambda _, each: "InsufficientFreeAddressesInSubnet" if each["SubnetId"] == full else "",
        )
        stage.apply(EC2_NODE_CLASS, ec2_node_class())
        stage.apply(NODE_POOL, ec2_pool())
        stage.apply(DEPLOYMENT, deployment(replicas=1))
        await stage.until_running("inflate", 1)
        first = len(requests)
        stage.change(DEPLOYMENT, "inflate", {"spec": {"replicas": 30}})
        await stage.until_running("inflate", 30)

        assert stage.ec2.subnets[0]["AvailabilityZone"] not in stage.labels(ZONE)
        later = asked(requests[first:], "SubnetId")
        assert later
        assert full not in later


@on_virtual_time
async def test_what_was_sold_out_is_not_asked_for_again_although_a_machine_was_had(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with aws_stage() as stage:
        requests = fail(
            stage,
            monkeypatch,
            lambda _, each: (
                "InsufficientInstanceCapacity" if each["InstanceType"].startswith("m5") else ""
            ),
        )
        stage.apply(EC2_NODE_CLASS, ec2_node_class())
        stage.apply(NODE_POOL, ec2_pool())
        stage.apply(DEPLOYMENT, deployment(replicas=1))
        await stage.until_running("inflate", 1)
        first = len(requests)
        stage.change(DEPLOYMENT, "inflate", {"spec": {"replicas": 30}})
        await stage.until_running("inflate", 30)

        sold_out = {each for each in asked(requests[:first], "InstanceType") if "m5." in each}
        later = asked(requests[first:], "InstanceType")
        assert sold_out
        assert later
        assert sold_out.isdisjoint(later)
