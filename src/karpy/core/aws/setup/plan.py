"""The plan of a set-up with its names, and the facts about AWS that all formats share."""

import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final, TypeAlias

from msgspec import Struct

JsonValue: TypeAlias = Any
"""Any JSON value."""

NODE_POLICIES: Final = (
    "AmazonEKS_CNI_Policy",
    "AmazonEKSWorkerNodePolicy",
    "AmazonEC2ContainerRegistryPullOnly",
    "AmazonSSMManagedInstanceCore",
)
"""The managed policies of AWS for the role of nodes."""
EVENTS: Final[Mapping[str, Mapping[str, list[str]]]] = {
    "ScheduledChange": {"source": ["aws.health"], "detail-type": ["AWS Health Event"]},
    "SpotInterruption": {
        "source": ["aws.ec2"],
        "detail-type": ["EC2 Spot Instance Interruption Warning"],
    },
    "Rebalance": {
        "source": ["aws.ec2"],
        "detail-type": ["EC2 Instance Rebalance Recommendation"],
    },
    "StateChange": {
        "source": ["aws.ec2"],
        "detail-type": ["EC2 Instance State-change Notification"],
    },
    "ReservationInterruption": {
        "source": ["aws.ec2"],
        "detail-type": ["EC2 Capacity Reservation Instance Interruption Warning"],
    },
}
"""The event patterns that EventBridge forwards to the queue, by rule."""
MESSAGE_SECONDS: Final = 300
"""The retention of messages in the queue; an older message about a machine is of no use."""
ENDPOINTS: Final = ("ec2", "ecr.api", "ecr.dkr", "eks", "eks-auth", "sqs", "ssm", "sts")
"""Services that need an interface endpoint in a private VPC; S3 has a gateway."""
DISCOVERY: Final = "karpenter.sh/discovery"
SPOT_SERVICE: Final = "spot.amazonaws.com"
POD_IDENTITY: Final = "pods.eks.amazonaws.com"
PARTITIONS: Final[Mapping[str, str]] = {
    "aws": "amazonaws.com",
    "aws-cn": "amazonaws.com.cn",
    "aws-us-gov": "amazonaws.com",
}
"""The partitions of AWS, and the suffix of their service names."""
_ROLE_NAME_MAX: Final = 64
_QUEUE_NAME_MAX: Final = 80
_FORMS: Final = {
    "cluster": (re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,99}", re.ASCII), "the name of the cluster"),
    "namespace": (re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII), "a namespace"),
    "service_account": (
        re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", re.ASCII),
        "the name of a ServiceAccount",
    ),
    "role": (re.compile(r"[0-9A-Za-z_+=,.@-]{1,64}", re.ASCII), "the name of a role"),
    "queue_name": (re.compile(r"[0-9A-Za-z_-]{1,80}", re.ASCII), "the name of a queue"),
    "oidc": (
        re.compile(r"([0-9A-Za-z.-]+(/[0-9A-Za-z_-]+)*)?", re.ASCII),
        "an OIDC provider without https://",
    ),
}


class OperatorHost(Enum):
    """Where the operator itself runs; never on nodes that it launches."""

    ELSEWHERE = "elsewhere"
    FARGATE = "fargate"
    NODE_GROUP = "nodegroup"


class SetupPlan(Struct, frozen=True, kw_only=True):
    """The choices of a set-up, and the names that follow from them."""

    cluster: str
    partition: str = "aws"
    namespace: str = "karpenter"
    service_account: str = "karpenter"
    node_role: str = ""
    """Empty means KarpenterNodeRole-CLUSTER."""
    queue: str = ""
    """Empty means the name of the cluster."""
    oidc: str = ""
    """The OIDC provider of the cluster without https://, for IRSA; empty means Pod Identity."""
    is_private: bool = False
    host: OperatorHost = OperatorHost.ELSEWHERE

    @property
    def role(self) -> str:
        return self.node_role or f"KarpenterNodeRole-{self.cluster}"[:_ROLE_NAME_MAX]

    @property
    def queue_name(self) -> str:
        return self.queue or self.cluster[:_QUEUE_NAME_MAX]

    @property
    def controller(self) -> str:
        return f"KarpyController-{self.cluster}"[:_ROLE_NAME_MAX]

    @property
    def fargate_role(self) -> str:
        return f"KarpyFargate-{self.cluster}"[:_ROLE_NAME_MAX]

    def policy_name(self, part: str) -> str:
        """Return the name of one of the policies of the controller."""
        return f"KarpyController{part}Policy-{self.cluster}"


class PlaceNotation(Struct, frozen=True):
    """The notation of a format for account, region, partition and suffix of service names."""

    partition: str
    region: str
    account: str
    suffix: str

    def written(self, value: JsonValue, text: Callable[[str], JsonValue] = str) -> JsonValue:
        """Replace placeholders such as `{region}` in a JSON value; `text` wraps changed texts."""
        match value:
            case str():
                filled = self._filled(value)
                return value if filled == value else text(filled)
            case Mapping():
                return {key: self.written(each, text) for key, each in value.items()}
            case list():
                return [self.written(each, text) for each in value]
        return value

    def _filled(self, text: str) -> str:
        for field in self.__struct_fields__:
            text = text.replace("{" + field + "}", getattr(self, field))
        return text


def find_misnomer(plan: SetupPlan) -> tuple[str, str, str] | None:
    """Return field, value and expected form of the first invalid name, or None."""
    for field, (form, meaning) in _FORMS.items():
        value = getattr(plan, field)
        if not form.fullmatch(value):
            return field, value, meaning
    return None
