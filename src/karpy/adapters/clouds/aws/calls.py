"""
The calls to AWS that the provider makes, as a Protocol.

Requests and answers are the plain objects of botocore (`{"InstanceIds": […]}`), with moments as
aware datetimes. `adapters.clouds.aws.client` makes the calls over HTTP, `memory` answers them from
an EC2 in memory. Both raise subclasses of CloudError; an error that AWS returns is `AwsRefused`
with AWS' code.
"""

from typing import Any, Protocol

JsonObject = dict[str, Any]


class Ec2Calls(Protocol):
    """EC2; a call in the plural returns the items of all pages."""

    async def describe_instance_types(self, **request: object) -> list[JsonObject]: ...

    async def describe_instance_type_offerings(self, **request: object) -> list[JsonObject]: ...

    async def describe_subnets(self, **request: object) -> list[JsonObject]: ...

    async def describe_security_groups(self, **request: object) -> list[JsonObject]: ...

    async def describe_images(self, **request: object) -> list[JsonObject]: ...

    async def describe_capacity_reservations(self, **request: object) -> list[JsonObject]: ...

    async def describe_placement_groups(self, **request: object) -> list[JsonObject]: ...

    async def describe_launch_templates(self, **request: object) -> list[JsonObject]: ...

    async def describe_instances(self, **request: object) -> list[JsonObject]:
        """Return the instances of all `Reservations` of the answer, which stand for launches."""

    async def describe_instance_status(self, **request: object) -> list[JsonObject]: ...

    async def describe_spot_price_history(self, **request: object) -> list[JsonObject]: ...

    async def create_launch_template(self, **request: object) -> JsonObject: ...

    async def delete_launch_template(self, **request: object) -> JsonObject: ...

    async def create_fleet(self, **request: object) -> JsonObject: ...

    async def run_instances(self, **request: object) -> JsonObject:
        """Check a launch; used with DryRun only."""

    async def terminate_instances(self, **request: object) -> JsonObject: ...

    async def create_tags(self, **request: object) -> JsonObject: ...


class IamCalls(Protocol):
    """Instance profiles."""

    async def get_instance_profile(self, **request: object) -> JsonObject: ...

    async def list_instance_profiles(self, **request: object) -> list[JsonObject]: ...

    async def create_instance_profile(self, **request: object) -> JsonObject: ...

    async def delete_instance_profile(self, **request: object) -> JsonObject: ...

    async def add_role_to_instance_profile(self, **request: object) -> JsonObject: ...

    async def remove_role_from_instance_profile(self, **request: object) -> JsonObject: ...


class OtherCalls(Protocol):
    """Calls to EKS, Pricing, SSM, SQS, ARC zonal shift and STS."""

    async def describe_cluster(self, **request: object) -> JsonObject: ...

    async def get_products(self, **request: object) -> list[JsonObject]:
        """Return the products of all pages, each decoded from its JSON text."""

    async def get_parameter(self, **request: object) -> JsonObject: ...

    async def get_queue_url(self, **request: object) -> JsonObject: ...

    async def receive_message(self, **request: object) -> JsonObject: ...

    async def delete_message(self, **request: object) -> JsonObject: ...

    async def get_managed_resource(self, **request: object) -> JsonObject: ...

    async def get_caller_identity(self, **request: object) -> JsonObject: ...


class AwsCalls(Ec2Calls, IamCalls, OtherCalls, Protocol):
    """All calls to AWS."""

    @property
    def region(self) -> str:
        """The region that the calls go to."""

    @property
    def partition(self) -> str:
        """`aws`, `aws-cn` or `aws-us-gov`."""

    async def close(self) -> None:
        """Close all connections."""
