"""The IAM policies of the operator, its nodes and its queue, as narrow as AWS allows."""

from collections.abc import Mapping
from typing import Any, Final

from karpy.core.aws.setup.plan import POD_IDENTITY, JsonValue, SetupPlan

Statement = Mapping[str, Any]
_VERSION: Final = "2012-10-17"
_DISCOVERY: Final = (
    "CapacityReservations",
    "Images",
    "InstanceStatus",
    "InstanceTypeOfferings",
    "InstanceTypes",
    "Instances",
    "LaunchTemplates",
    "PlacementGroups",
    "SecurityGroups",
    "SpotPriceHistory",
    "Subnets",
)
_MADE: Final = (
    "fleet",
    "instance",
    "launch-template",
    "network-interface",
    "spot-instances-request",
    "volume",
)
"""The types of resources that a launch creates."""
_USED: Final = (
    "capacity-reservation",
    "placement-group",
    "security-group",
    "subnet",
)
"""The types of existing resources that a launch uses."""
_POOL: Final = "karpenter.sh/nodepool"
_CLASS: Final = "karpenter.k8s.aws/ec2nodeclass"
_CLUSTER: Final = "eks:eks-cluster-name"
_REGION: Final = "topology.kubernetes.io/region"


def controller_policies(plan: SetupPlan) -> dict[str, list[Statement]]:
    """Return the statements of the operator's policies, by the part that differs in their name."""
    return {
        "NodeLifecycle": _lifecycle(plan.cluster),
        "InstanceProfiles": _profiles(plan),
        "Discovery": _discovery(plan.cluster),
        "Interruption": [_interruption(plan.queue_name)],
        "ZonalShift": [_zonal_shift(plan.cluster)],
    }


def document(statements: list[Statement]) -> dict[str, Any]:
    """Return a policy document."""
    return {"Version": _VERSION, "Statement": statements}


def node_trust() -> dict[str, Any]:
    """Return the trust policy of nodes: EC2 may assume the role."""
    return document([_trust("ec2.{suffix}", ["sts:AssumeRole"])])


def pod_identity_trust() -> dict[str, Any]:
    """Return the trust policy of the operator with Pod Identity."""
    return document([_trust(POD_IDENTITY, ["sts:AssumeRole", "sts:TagSession"])])


def fargate_trust() -> dict[str, Any]:
    """Return the trust policy of the role that starts the operator on Fargate."""
    return document([_trust("eks-fargate-pods.amazonaws.com", ["sts:AssumeRole"])])


def irsa_trust(plan: SetupPlan, oidc: str) -> dict[str, Any]:
    """Return the trust policy of the operator with the OIDC provider of the cluster, `oidc`."""
    subject = f"system:serviceaccount:{plan.namespace}:{plan.service_account}"
    provider = "arn:{partition}:iam::{account}:oidc-provider/" + oidc
    return document(
        [
            {
                "Effect": "Allow",
                "Principal": {"Federated": provider},
                "Action": "sts:AssumeRoleWithWebIdentity",
                "Condition": {
                    "StringEquals": {f"{oidc}:sub": subject, f"{oidc}:aud": "sts.amazonaws.com"}
                },
            }
        ]
    )


def queue_policy(queue_arn: JsonValue) -> dict[str, Any]:
    """Return the policy of the queue: services of AWS may send messages, over TLS only."""
    return document(
        [
            {
                "Sid": "AllowEvents",
                "Effect": "Allow",
                "Principal": {"Service": ["events.amazonaws.com", "sqs.amazonaws.com"]},
                "Action": "sqs:SendMessage",
                "Resource": queue_arn,
            },
            {
                "Sid": "DenyWithoutTls",
                "Effect": "Deny",
                "Principal": "*",
                "Action": "sqs:*",
                "Resource": queue_arn,
                "Condition": {"Bool": {"aws:SecureTransport": "false"}},
            },
        ]
    )


def _lifecycle(cluster: str) -> list[Statement]:
    made = [_ec2(each) for each in _MADE]
    asked = _tagged("Request", cluster, {_CLUSTER: cluster}, likes=(_POOL,))
    ours = _tagged("Resource", cluster, {}, likes=(_POOL,))
    launch = ["ec2:CreateFleet", "ec2:RunInstances"]
    images = ["arn:{partition}:ec2:{region}::image/*", "arn:{partition}:ec2:{region}::snapshot/*"]
    actions = ["CreateFleet", "CreateLaunchTemplate", "RunInstances"]
    at_creation = {
        **asked,
        "StringEquals": {**asked["StringEquals"], "ec2:CreateAction": actions},
    }
    names = {
        **ours,
        "StringEqualsIfExists": {f"aws:RequestTag/{_CLUSTER}": cluster},
        "ForAllValues:StringEquals": {
            "aws:TagKeys": [_CLUSTER, "karpenter.sh/nodeclaim", "Name"],
        },
    }
    return [
        _allow("LaunchWith", launch, [*images, *map(_ec2, _USED)]),
        _allow("LaunchByTemplate", launch, [_ec2("launch-template")], ours),
        _allow("MakeTagged", [*launch, "ec2:CreateLaunchTemplate"], made, asked),
        _allow("TagWhatIsMade", ["ec2:CreateTags"], made, at_creation),
        _allow("NameMachines", ["ec2:CreateTags"], [_ec2("instance")], names),
        _allow(
            "EndOurs",
            ["ec2:DeleteLaunchTemplate", "ec2:TerminateInstances"],
            [_ec2("instance"), _ec2("launch-template")],
            ours,
        ),
    ]


def _profiles(plan: SetupPlan) -> list[Statement]:
    cluster, every = plan.cluster, ["arn:{partition}:iam::{account}:instance-profile/*"]
    here = {_REGION: "{region}"}
    asked = _tagged("Request", cluster, {_CLUSTER: cluster, **here}, likes=(_CLASS,))
    ours = _tagged("Resource", cluster, here, likes=(_CLASS,))
    both = {kind: {**asked[kind], **ours[kind]} for kind in asked}
    passed = {"StringEquals": {"iam:PassedToService": ["ec2.amazonaws.com", "ec2.{suffix}"]}}
    changes = ("AddRoleToInstanceProfile", "DeleteInstanceProfile", "RemoveRoleFromInstanceProfile")
    return [
        _allow(
            "PassNodeRole",
            ["iam:PassRole"],
            ["arn:{partition}:iam::{account}:role/" + plan.role],
            passed,
        ),
        _allow("MakeProfiles", ["iam:CreateInstanceProfile"], every, asked),
        _allow("TagProfiles", ["iam:TagInstanceProfile"], every, both),
        _allow("ChangeOurProfiles", [f"iam:{each}" for each in changes], every, ours),
        _allow("ReadProfiles", ["iam:GetInstanceProfile"], every),
        _allow("ListProfiles", ["iam:ListInstanceProfiles"], ["*"]),
    ]


def _discovery(cluster: str) -> list[Statement]:
    return [
        _allow(
            "SeeRegion",
            [f"ec2:Describe{each}" for each in _DISCOVERY],
            ["*"],
            {"StringEquals": {"aws:RequestedRegion": "{region}"}},
        ),
        _allow(
            "FindImages",
            ["ssm:GetParameter"],
            ["arn:{partition}:ssm:{region}::parameter/aws/service/*"],
        ),
        _allow("SeePrices", ["pricing:GetProducts"], ["*"]),
        _allow("SeeCluster", ["eks:DescribeCluster"], [_cluster(cluster)]),
    ]


def _interruption(queue: str) -> Statement:
    actions = ["sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"]
    return _allow("HearInterruptions", actions, ["arn:{partition}:sqs:{region}:{account}:" + queue])


def _zonal_shift(cluster: str) -> Statement:
    condition = {"StringEquals": {"arc-zonal-shift:ResourceIdentifier": _cluster(cluster)}}
    return _allow("SeeZonalShifts", ["arc-zonal-shift:GetManagedResource"], ["*"], condition)


def _cluster(name: str) -> str:
    return "arn:{partition}:eks:{region}:{account}:cluster/" + name


def _ec2(kind: str) -> str:
    return "arn:{partition}:ec2:{region}:*:" + kind + "/*"


def _tagged(
    side: str, cluster: str, equals: Mapping[str, str], likes: tuple[str, ...]
) -> dict[str, dict[str, Any]]:
    """Return the condition that a requested or existing resource has tags of this cluster."""
    tags = {f"kubernetes.io/cluster/{cluster}": "owned", **equals}
    return {
        "StringEquals": {f"aws:{side}Tag/{key}": value for key, value in tags.items()},
        "StringLike": {f"aws:{side}Tag/{key}": "*" for key in likes},
    }


def _allow(
    sid: str, actions: list[str], resources: list[str], condition: Mapping[str, Any] | None = None
) -> Statement:
    statement = {"Sid": sid, "Effect": "Allow", "Action": actions, "Resource": resources}
    return statement if condition is None else {**statement, "Condition": condition}


def _trust(service: str, actions: list[str]) -> Statement:
    return {"Effect": "Allow", "Principal": {"Service": service}, "Action": actions}
