"""AwsCalls on EC2 in memory, with injected faults."""

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from karpy.codec.fields import JsonObject
from karpy.sim.ec2.cloud import Ec2Cloud, refusal
from karpy.sim.faults import Faults

T = TypeVar("T")

_SERVICES: Final = {
    "GetProducts": "pricing",
    "DescribeCluster": "eks",
    "GetParameter": "ssm",
    "GetQueueUrl": "sqs",
    "DeleteMessage": "sqs",
    "GetManagedResource": "arc-zonal-shift",
    "GetCallerIdentity": "sts",
}
_SECONDS: Final = 0.05
"""Latency of a call."""


class MemoryCalls:
    """The AWS client of one operator; faults and crashes can hit each call."""

    def __init__(self, cloud: Ec2Cloud, faults: Faults | None = None) -> None:
        self._cloud = cloud
        self._faults = faults or Faults()

    @property
    def region(self) -> str:
        """The AWS region."""
        return self._cloud.tables.region

    @property
    def partition(self) -> str:
        """The partition `aws`."""
        return "aws"

    async def close(self) -> None:
        """Do nothing: there are no connections."""

    async def describe_instance_types(self, **request: object) -> list[JsonObject]:
        return await self._answer(self._cloud.describe_instance_types, request)

    async def describe_instance_type_offerings(self, **request: object) -> list[JsonObject]:
        return await self._answer(self._cloud.describe_instance_type_offerings, request)

    async def describe_subnets(self, **request: object) -> list[JsonObject]:
        return await self._answer(self._cloud.describe_subnets, request)

    async def describe_security_groups(self, **request: object) -> list[JsonObject]:
        return await self._answer(self._cloud.describe_security_groups, request)

    async def describe_images(self, **request: object) -> list[JsonObject]:
        return await self._answer(self._cloud.describe_images, request)

    async def describe_capacity_reservations(self, **request: object) -> list[JsonObject]:
        return await self._answer(self._cloud.describe_capacity_reservations, request)

    async def describe_placement_groups(self, **request: object) -> list[JsonObject]:
        return await self._answer(self._cloud.describe_placement_groups, request)

    async def describe_launch_templates(self, **request: object) -> list[JsonObject]:
        return await self._answer(self._cloud.describe_launch_templates, request)

    async def describe_instances(self, **request: object) -> list[JsonObject]:
        return await self._answer(self._cloud.describe_instances, request)

    async def describe_instance_status(self, **request: object) -> list[JsonObject]:
        return await self._answer(self._cloud.describe_instance_status, request)

    async def describe_spot_price_history(self, **request: object) -> list[JsonObject]:
        return await self._answer(self._cloud.describe_spot_price_history, request)

    async def create_launch_template(self, **request: object) -> JsonObject:
        return await self._answer(self._cloud.create_launch_template, request)

    async def delete_launch_template(self, **request: object) -> JsonObject:
        return await self._answer(self._cloud.delete_launch_template, request)

    async def create_fleet(self, **request: object) -> JsonObject:
        return await self._answer(self._cloud.create_fleet, request)

    async def run_instances(self, **request: object) -> JsonObject:
        return await self._answer(self._cloud.run_instances, request)

    async def terminate_instances(self, **request: object) -> JsonObject:
        return await self._answer(self._cloud.terminate_instances, request)

    async def create_tags(self, **request: object) -> JsonObject:
        return await self._answer(self._cloud.create_tags, request)

    async def list_instance_profiles(self, **request: object) -> list[JsonObject]:
        return await self._answer(self._cloud.list_instance_profiles, request)

    async def get_instance_profile(self, **request: object) -> JsonObject:
        return await self._answer(self._cloud.get_instance_profile, request)

    async def create_instance_profile(self, **request: object) -> JsonObject:
        return await self._answer(self._cloud.create_instance_profile, request)

    async def delete_instance_profile(self, **request: object) -> JsonObject:
        return await self._answer(self._cloud.delete_instance_profile, request)

    async def add_role_to_instance_profile(self, **request: object) -> JsonObject:
        return await self._answer(self._cloud.add_role_to_instance_profile, request)

    async def remove_role_from_instance_profile(self, **request: object) -> JsonObject:
        return await self._answer(self._cloud.remove_role_from_instance_profile, request)

    async def get_products(self, **request: object) -> list[JsonObject]:
        return await self._answer(self._cloud.get_products, request)

    async def describe_cluster(self, **request: object) -> JsonObject:
        return await self._answer(self._cloud.describe_cluster, request)

    async def get_parameter(self, **request: object) -> JsonObject:
        return await self._answer(self._cloud.get_parameter, request)

    async def get_queue_url(self, **request: object) -> JsonObject:
        return await self._answer(self._cloud.get_queue_url, request)

    async def delete_message(self, **request: object) -> JsonObject:
        return await self._answer(self._cloud.delete_message, request)

    async def get_managed_resource(self, **request: object) -> JsonObject:
        return await self._answer(self._cloud.get_managed_resource, request)

    async def get_caller_identity(self, **request: object) -> JsonObject:
        return await self._answer(self._cloud.get_caller_identity, request)

    async def receive_message(self, **request: object) -> JsonObject:
        async def receive() -> JsonObject:
            return await self._cloud.receive_message(request)

        return await self._faults.around("ReceiveMessage", None, receive)

    async def _answer(self, do: Callable[[JsonObject], T], request: JsonObject) -> T:
        call = do.__name__.title().replace("_", "")

        async def make() -> T:
            await asyncio.sleep(_SECONDS)
            refused = self._cloud.tables.admit(call)
            if refused is not None:
                raise refusal(f"{_service_of(call)}:{call}", *refused)
            return do(request)

        return await self._faults.around(call, None, make)


def _service_of(call: str) -> str:
    if call.endswith(("InstanceProfile", "InstanceProfiles")):
        return "iam"
    return _SERVICES.get(call, "ec2")
