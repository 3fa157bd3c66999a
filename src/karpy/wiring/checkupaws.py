"""The facts about an AWS account that `karpy doctor` judges, from calls that change nothing."""

from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Final, TypeAlias

from karpy.adapters.clouds.aws.calls import AwsCalls
from karpy.adapters.clouds.aws.client import AwsTimeouts, connect_aws
from karpy.core.aws.refusals import DRY_RUN
from karpy.core.doctor import CloudAccount, RefusedCall
from karpy.errors import AwsRefused, KarpyError
from karpy.wiring.checkup import NamedSettings

_PATIENCE: Final = AwsTimeouts(seconds=30.0, tries=2)
_IMAGE: Final = "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/recommended"
_QUEUE: Final = "sqs:GetQueueUrl"

Try: TypeAlias = Callable[[], Awaitable[object]]


async def ask_account(asked: NamedSettings, queue: str) -> CloudAccount:
    """Return the identity of the caller, and which calls of the operator are refused."""
    try:
        calls = await connect_aws(patience=_PATIENCE)
    except KarpyError as error:
        return CloudAccount(refused=(RefusedCall("region", error.message, error.hint),))
    try:
        return await _ask(calls, asked, queue)
    finally:
        await calls.close()


async def _ask(calls: AwsCalls, asked: NamedSettings, queue: str) -> CloudAccount:
    try:
        identity = await calls.get_caller_identity()
    except KarpyError as error:
        return CloudAccount(refused=(RefusedCall("identity", error.message, error.hint),))
    refused = []
    for call, attempt in _attempts(calls, asked.cluster_name, queue):
        try:
            await attempt()
        except KarpyError as error:
            if not (isinstance(error, AwsRefused) and error.aws_code == DRY_RUN):
                refused.append(RefusedCall(call, error.message, error.hint))
    return CloudAccount(
        identity=str(identity.get("Arn", "")),
        region=calls.region,
        refused=tuple(refused),
        queue=queue,
        is_queue_there=_QUEUE not in {each.call for each in refused},
    )


def _attempts(calls: AwsCalls, cluster: str, queue: str) -> Iterator[tuple[str, Try]]:
    """Return the read-only calls of the operator by action, dry runs where possible."""
    ec2 = {
        "DescribeInstanceTypes": calls.describe_instance_types,
        "DescribeInstanceTypeOfferings": calls.describe_instance_type_offerings,
        "DescribeSubnets": calls.describe_subnets,
        "DescribeSecurityGroups": calls.describe_security_groups,
        "DescribeLaunchTemplates": calls.describe_launch_templates,
        "DescribeInstances": calls.describe_instances,
        "DescribeCapacityReservations": calls.describe_capacity_reservations,
        "DescribeSpotPriceHistory": calls.describe_spot_price_history,
    }
    for name, call in ec2.items():
        yield f"ec2:{name}", partial(call, DryRun=True)
    yield "ec2:DescribeImages", partial(calls.describe_images, DryRun=True, Owners=["self"])
    yield "ssm:GetParameter", partial(calls.get_parameter, Name=f"{_IMAGE}/image_id")
    yield (
        "iam:ListInstanceProfiles",
        partial(calls.list_instance_profiles, PathPrefix="/karpenter/"),
    )
    if cluster:
        yield "eks:DescribeCluster", partial(calls.describe_cluster, name=cluster)
    if queue:
        yield _QUEUE, partial(calls.get_queue_url, QueueName=queue)
