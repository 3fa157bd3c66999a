"""The fake AWS over HTTP does what AWS does, also where moto alone does not."""

import base64
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest

from karpy.adapters.clouds.aws.calls import JsonObject
from karpy.adapters.clouds.aws.client import AwsClient, connect_aws
from karpy.adapters.clouds.awsfake.server import DISCOVERY, AwsFake, FakeAccount
from karpy.errors import AwsRefused
from tests.contract.awsclouds import serving

FAMILIES: Final = ("c6a", "g4ad", "dl1", "p3", "m5")
STANDARD: Final = (
    "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/recommended/image_id"
)
TEMPLATE: Final = "karpenter.k8s.aws/1"


@pytest.fixture
def fake() -> Iterator[AwsFake]:
    with serving(FakeAccount(families=FAMILIES)) as made:
        yield made


@pytest.fixture
async def aws(fake: AwsFake) -> AsyncIterator[AwsClient]:
    del fake
    client = await connect_aws()
    yield client
    await client.close()


async def refused(aws: AwsClient, call: str, **request: object) -> str:
    """Return the code with which a call is refused."""
    with pytest.raises(AwsRefused) as error:
        await getattr(aws, call)(**request)
    return error.value.aws_code


async def templated(aws: AwsClient, **data: object) -> list[JsonObject]:
    """Have a launch template, and return the subnets."""
    subnets = await aws.describe_subnets(Filters=[{"Name": f"tag:{DISCOVERY}", "Values": ["demo"]}])
    image = (await aws.get_parameter(Name=STANDARD))["Parameter"]["Value"]
    await aws.create_launch_template(
        LaunchTemplateName=TEMPLATE, LaunchTemplateData={"ImageId": image, **data}
    )
    return subnets


def fleet(
    subnets: list[JsonObject], *priced: tuple[str, float], target: str = "on-demand", **more: object
) -> JsonObject:
    """Ask for one machine, in the first zone."""
    place = {
        "AvailabilityZone": subnets[0]["AvailabilityZone"],
        "SubnetId": subnets[0]["SubnetId"],
    }
    return {
        "Type": "instant",
        "LaunchTemplateConfigs": [
            {
                "LaunchTemplateSpecification": {
                    "LaunchTemplateName": TEMPLATE,
                    "Version": "$Latest",
                },
                "Overrides": [
                    {"InstanceType": name, "Priority": price, **place} for name, price in priced
                ],
            }
        ],
        "TargetCapacitySpecification": {
            "DefaultTargetCapacityType": target,
            "TotalTargetCapacity": 1,
        },
        **more,
    }


async def test_types_come_in_pages_with_accelerators_that_moto_lacks(aws: AwsClient) -> None:
    types = {each["InstanceType"]: each for each in await aws.describe_instance_types()}

    makers = {
        name: types[name]["GpuInfo"]["Gpus"][0]["Manufacturer"]
        for name in ("g4ad.xlarge", "dl1.24xlarge", "p3.2xlarge")
    }
    assert makers == {"g4ad.xlarge": "AMD", "dl1.24xlarge": "Habana", "p3.2xlarge": "NVIDIA"}
    assert types["c6a.large"]["VCpuInfo"]["DefaultVCpus"] == 2
    assert await refused(aws, "describe_instance_types", DryRun=True) == "DryRunOperation"
    assert await refused(aws, "describe_instance_types", InstanceTypes=["x"]) == (
        "InvalidInstanceType"
    )


async def test_prices_on_demand_and_spot_come_from_one_table(aws: AwsClient, fake: AwsFake) -> None:
    fake.tables.market.set_price("c6a.large", 100_000)

    products = await aws.get_products(
        ServiceCode="AmazonEC2",
        Filters=[{"Type": "TERM_MATCH", "Field": "instanceType", "Value": "c6a.large"}],
    )
    history = await aws.describe_spot_price_history()

    assert [each["product"]["attributes"]["instanceType"] for each in products] == ["c6a.large"]
    assert "0.1000000000" in str(products)
    spot = [float(each["SpotPrice"]) for each in history if each["InstanceType"] == "c6a.large"]
    assert len(spot) == 4
    assert all(0.03 <= each <= 0.06 for each in spot)


@pytest.mark.parametrize(
    ("strategy", "expected"), [("lowest-price", "c6a.large"), ("prioritized", "c6a.xlarge")]
)
async def test_a_fleet_heeds_its_strategy(aws: AwsClient, strategy: str, expected: str) -> None:
    subnets = await templated(aws)
    priced = (("c6a.large", 2.0), ("c6a.xlarge", 1.0))

    answer = await aws.create_fleet(
        **fleet(subnets, *priced, OnDemandOptions={"AllocationStrategy": strategy})
    )

    assert answer["Instances"][0]["InstanceType"] == expected
    assert not answer.get("Errors")


async def test_what_is_sold_out_is_an_error_beside_the_machine(
    aws: AwsClient, fake: AwsFake
) -> None:
    subnets = await templated(aws)
    fake.tables.market.sell_out("spot", "c6a.large")
    asked = fleet(subnets, ("c6a.large", 1.0), ("c6a.xlarge", 2.0), target="spot")

    answer = await aws.create_fleet(**asked)
    [error] = answer["Errors"]
    assert error["ErrorCode"] == "InsufficientInstanceCapacity"
    overrides = error["LaunchTemplateAndOverrides"]["Overrides"]
    assert overrides["AvailabilityZone"] == subnets[0]["AvailabilityZone"]
    assert answer["Instances"][0]["InstanceType"] == "c6a.xlarge"

    fake.tables.market.sell_out("spot")
    answer = await aws.create_fleet(**asked)
    assert not answer.get("Instances")
    assert len(answer["Errors"]) == 2


async def test_a_machine_is_what_its_launch_template_says(aws: AwsClient, fake: AwsFake) -> None:
    groups = await aws.describe_security_groups()
    await aws.create_instance_profile(InstanceProfileName="nodes")
    subnets = await templated(
        aws,
        IamInstanceProfile={"Name": "nodes"},
        UserData=base64.b64encode(b"hello").decode(),
        MetadataOptions={"HttpTokens": "required"},
        Placement={"Tenancy": "dedicated"},
        NetworkInterfaces=[{"DeviceIndex": 0, "Groups": [groups[0]["GroupId"]]}],
    )
    tags = [{"Key": "team", "Value": "shop"}]

    answer = await aws.create_fleet(
        **fleet(
            subnets,
            ("c6a.large", 1.0),
            target="spot",
            TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
        )
    )

    [instance] = await aws.describe_instances(InstanceIds=answer["Instances"][0]["InstanceIds"])
    assert instance["SpotInstanceRequestId"].startswith("sir-")
    assert [each["GroupId"] for each in instance["SecurityGroups"]] == [groups[0]["GroupId"]]
    assert instance["IamInstanceProfile"]["Arn"].endswith("/nodes")
    assert instance["MetadataOptions"]["HttpTokens"] == "required"
    assert instance["Placement"]["Tenancy"] == "dedicated"
    assert instance["Placement"]["AvailabilityZoneId"] == subnets[0]["AvailabilityZoneId"]
    assert {"Key": "team", "Value": "shop"} in instance["Tags"]
    assert [each.user_data for each in fake.instances()] == ["hello"]


async def test_two_filters_of_one_name_must_both_be_met(aws: AwsClient) -> None:
    subnets = await templated(aws)
    ids = []
    for keys in (("a",), ("a", "b")):
        tags = [{"Key": each, "Value": ""} for each in keys]
        specification = [{"ResourceType": "instance", "Tags": tags}]
        asked = fleet(subnets, ("c6a.large", 1.0), TagSpecifications=specification)
        ids += (await aws.create_fleet(**asked))["Instances"][0]["InstanceIds"]

    for first, second in ("ab", "ba"):
        filters = [{"Name": "tag-key", "Values": [each]} for each in (first, second)]
        found = await aws.describe_instances(Filters=filters)
        assert [each["InstanceId"] for each in found] == ids[1:]


async def test_what_does_not_exist_is_said_so(aws: AwsClient) -> None:
    missing = "i-0123456789abcdef0"
    tags = [{"Key": "a", "Value": "b"}]
    long = base64.b64encode(b"x" * 16_385).decode()

    assert await refused(aws, "create_tags", Resources=[missing], Tags=tags) == (
        "InvalidInstanceID.NotFound"
    )
    assert await refused(
        aws, "delete_launch_template", LaunchTemplateId="lt-0123456789abcdef0"
    ) == ("InvalidLaunchTemplateId.NotFound")
    assert await refused(
        aws, "create_launch_template", LaunchTemplateName="a", LaunchTemplateData={"UserData": long}
    ) == ("InvalidUserData.Malformed")
    assert await refused(
        aws, "describe_capacity_reservations", CapacityReservationIds=["cr-0"]
    ) == ("InvalidCapacityReservationId.NotFound")
    assert await refused(aws, "describe_placement_groups", GroupNames=["x"]) == (
        "InvalidPlacementGroup.Unknown"
    )
    assert await refused(aws, "get_parameter", Name="/aws/service/eks/nothing") == (
        "ParameterNotFound"
    )


async def test_profiles_are_listed_by_their_path(aws: AwsClient) -> None:
    for name, path in (("ours", "/karpenter/us-west-2/demo/"), ("theirs", "/")):
        await aws.create_instance_profile(InstanceProfileName=name, Path=path)

    found = await aws.list_instance_profiles(PathPrefix="/karpenter/")

    assert [each["InstanceProfileName"] for each in found] == ["ours"]


async def test_machines_of_a_reservation_are_counted(aws: AwsClient, fake: AwsFake) -> None:
    subnets = await aws.describe_subnets()
    fake.tables.reserve("cr-1", "c6a.large", subnets[0]["AvailabilityZone"], 1)
    target = {"CapacityReservationTarget": {"CapacityReservationId": "cr-1"}}
    only = {"CapacityReservationPreference": "capacity-reservations-only", **target}
    subnets = await templated(aws, CapacityReservationSpecification=only)
    asked = fleet(subnets, ("c6a.large", 1.0))

    async def left() -> int:
        [found] = await aws.describe_capacity_reservations(CapacityReservationIds=["cr-1"])
        count: int = found["AvailableInstanceCount"]
        return count

    ids = (await aws.create_fleet(**asked))["Instances"][0]["InstanceIds"]
    [instance] = await aws.describe_instances(InstanceIds=ids)
    again = await aws.create_fleet(**asked)

    assert (instance["CapacityReservationId"], await left()) == ("cr-1", 0)
    assert again["Errors"][0]["ErrorCode"] == "ReservationCapacityExceeded"
    await aws.terminate_instances(InstanceIds=ids)
    assert await left() == 1


async def test_health_shifts_and_refusals_are_as_a_test_sets_them(
    aws: AwsClient, fake: AwsFake
) -> None:
    subnets = await templated(aws)
    answer = await aws.create_fleet(**fleet(subnets, ("c6a.large", 1.0)))
    [id_] = answer["Instances"][0]["InstanceIds"]
    impaired = [{"Name": "instance-status.status", "Values": ["impaired"]}]
    assert await aws.describe_instance_status(Filters=impaired) == []
    fake.tables.impair(id_)
    fake.tables.group("pg-1", "spread", "spread")
    fake.tables.shift("usw2-az1", datetime.now(UTC) + timedelta(hours=1))
    fake.tables.refuse("DescribeSubnets", "UnauthorizedOperation", "You are not allowed.")

    [found] = await aws.describe_instance_status(Filters=impaired)
    [group] = await aws.describe_placement_groups(GroupNames=["spread"])
    resource = await aws.get_managed_resource(resourceIdentifier="arn:aws:eks:x:1:cluster/demo")

    assert found["InstanceId"] == id_
    assert group["Strategy"] == "spread"
    assert [each["awayFrom"] for each in resource["zonalShifts"]] == ["usw2-az1"]
    assert await refused(aws, "describe_subnets") == "UnauthorizedOperation"
    assert await aws.describe_subnets()


async def test_interruptions_arrive_in_the_queue(aws: AwsClient, fake: AwsFake) -> None:
    url = (await aws.get_queue_url(QueueName="demo"))["QueueUrl"]

    fake.interrupt("i-1")

    [message] = (await aws.receive_message(QueueUrl=url))["Messages"]
    assert '"detail-type": "EC2 Spot Instance Interruption Warning"' in message["Body"]
    assert '"instance-id": "i-1"' in message["Body"]


async def test_a_release_moves_the_aliases_of_all_images(aws: AwsClient, fake: AwsFake) -> None:
    before = (await aws.get_parameter(Name=STANDARD))["Parameter"]["Value"]
    fake.release_images("v20260301")
    after = (await aws.get_parameter(Name=STANDARD))["Parameter"]["Value"]

    images = {each["ImageId"]: each for each in await aws.describe_images(Owners=["amazon"])}

    assert before != after
    assert images[after]["Name"] == "amazon-eks-node-al2023-x86_64-standard-1.34-v20260301"
    assert images[after]["CreationDate"] > images[before]["CreationDate"]
    assert images[after]["Architecture"] == "x86_64"


async def test_haste_is_answered_by_patience(aws: AwsClient, fake: AwsFake) -> None:
    fake.tables.refuse("DescribeSubnets", "RequestLimitExceeded", times=2)

    assert len(await aws.describe_subnets()) == 4
    assert fake.tables.calls["DescribeSubnets"] == 3


async def test_an_account_can_be_sold_out_from_the_start() -> None:
    with serving(FakeAccount(families=FAMILIES, sold_out=("spot/c6a.large/*",))):
        client = await connect_aws()
        subnets = await templated(client)

        asked = fleet(subnets, ("c6a.large", 1.0), ("c6a.xlarge", 2.0), target="spot")
        answer = await client.create_fleet(**asked)
        await client.close()

    assert [each["ErrorCode"] for each in answer["Errors"]] == ["InsufficientInstanceCapacity"]
    assert [each["InstanceType"] for each in answer["Instances"]] == ["c6a.xlarge"]
