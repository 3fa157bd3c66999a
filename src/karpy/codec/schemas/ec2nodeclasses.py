"""EC2NodeClass, karpenter.k8s.aws/v1."""

from typing import Annotated, Final, Literal

from karpy.codec.schemas.conditions import PlainConditions
from karpy.codec.schemas.ec2devices import (
    CONNECTION_RULES,
    METADATA_DEFAULT,
    BlockDeviceMappings,
    ConnectionTracking,
    CPUOptions,
    MetadataOptions,
    NetworkInterfaces,
)
from karpy.codec.schemas.ec2kubelet import KUBELET_RULES, Kubelet
from karpy.codec.schemas.ec2selectors import (
    PLACEMENT_GROUP_RULES,
    ImageTerms,
    MatchCriteria,
    OwnerId,
    PlacementGroupSelector,
    ReservationId,
    ReservationTerms,
    SecurityGroupTerms,
    SubnetTerms,
)
from karpy.codec.schemas.wire import (
    Natural32,
    SchemaRule,
    Time,
    Wire,
    about,
    default,
    list_type,
    rules,
)

_FAMILIES: Final = {
    "al2": "AL2",
    "al2023": "AL2023",
    "bottlerocket": "Bottlerocket",
    "windows2019": "Windows2019",
    "windows2022": "Windows2022",
    "windows2025": "Windows2025",
}


def _not_a_tag(condition: str, what: str) -> SchemaRule:
    return SchemaRule(f"self.all(k, {condition})", f"tag contains a restricted tag matching {what}")


_Tags = Annotated[
    dict[str, str],
    rules(
        SchemaRule("self.all(k, k != '')", "empty tag keys aren't supported"),
        _not_a_tag("k != 'eks:eks-cluster-name'", "eks:eks-cluster-name"),
        _not_a_tag("!k.startsWith('kubernetes.io/cluster')", "kubernetes.io/cluster/"),
        _not_a_tag("k != 'karpenter.sh/nodepool'", "karpenter.sh/nodepool"),
        _not_a_tag("k != 'karpenter.sh/nodeclaim'", "karpenter.sh/nodeclaim"),
        _not_a_tag("k != 'karpenter.k8s.aws/ec2nodeclass'", "karpenter.k8s.aws/ec2nodeclass"),
    ),
]


class EC2NodeClassSpec(Wire, frozen=True):
    """What machines of the class are launched with."""

    ami_selector_terms: Annotated[ImageTerms, about("How to find images.")]
    security_group_selector_terms: Annotated[
        SecurityGroupTerms, about("How to find security groups.")
    ]
    subnet_selector_terms: Annotated[SubnetTerms, about("How to find subnets.")]
    ami_family: Annotated[
        Literal[
            "AL2", "AL2023", "Bottlerocket", "Custom", "Windows2019", "Windows2022", "Windows2025"
        ]
        | None,
        about("How images are told to join the cluster. An alias says it already."),
    ] = None
    associate_public_ip_address: Annotated[
        bool | None, about("Whether machines get a public address; the subnet decides if unset.")
    ] = None
    block_device_mappings: Annotated[
        BlockDeviceMappings | None, about("Disks; those of the image's family if unset.")
    ] = None
    capacity_reservation_selector_terms: Annotated[
        ReservationTerms | None, about("How to find capacity reservations.")
    ] = None
    connection_tracking: Annotated[ConnectionTracking | None, CONNECTION_RULES] = None
    context: Annotated[str | None, about("Passed on to EC2 CreateFleet as it is.")] = None
    cpu_options: CPUOptions | None = None
    detailed_monitoring: Annotated[
        bool | None, about("Whether CloudWatch gets figures every minute.")
    ] = None
    instance_profile: Annotated[
        Annotated[str, rules(SchemaRule("self != ''", "instanceProfile cannot be empty"))] | None,
        about("The instance profile of machines; instead of `role`."),
    ] = None
    instance_store_policy: Annotated[
        Literal["RAID0"] | None,
        about("Put local disks together and use them for pods' ephemeral storage."),
    ] = None
    ip_prefix_count: Annotated[
        Natural32 | None, about("How many address prefixes the primary interface gets.")
    ] = None
    kubelet: Annotated[Kubelet | None, KUBELET_RULES] = None
    metadata_options: Annotated[MetadataOptions | None, default(METADATA_DEFAULT)] = None
    network_interfaces: Annotated[
        NetworkInterfaces | None, about("Network interfaces; one usual one if unset.")
    ] = None
    placement_group_selector: Annotated[PlacementGroupSelector | None, PLACEMENT_GROUP_RULES] = None
    role: Annotated[
        Annotated[str, rules(SchemaRule("self != ''", "role cannot be empty"))] | None,
        about("The IAM role of machines; an instance profile is made for it."),
    ] = None
    tags: Annotated[_Tags | None, about("Tags for everything that is made in EC2.")] = None
    user_data: Annotated[
        str | None, about("What machines run when they start, besides what the family needs.")
    ] = None


def _family(alias: str, family: str) -> SchemaRule:
    return SchemaRule(
        "!has(self.amiFamily) || self.amiFamily in ['Custom', "
        f"'{family}'] || !self.amiSelectorTerms.exists(x, has(x.alias) && "
        f"x.alias.split('@')[0] == '{alias}')",
        f"amiFamily must be '{family}' or 'Custom' with an alias of {alias}",
    )


RuledEC2NodeClassSpec = Annotated[
    EC2NodeClassSpec,
    rules(
        SchemaRule(
            "has(self.role) != has(self.instanceProfile)",
            "must specify exactly one of 'role', 'instanceProfile'",
        ),
        *(_family(alias, family) for alias, family in _FAMILIES.items()),
        SchemaRule(
            "has(self.amiFamily) || self.amiSelectorTerms.exists(x, has(x.alias))",
            "must specify amiFamily if amiSelectorTerms does not contain an alias",
        ),
    ),
]


class ImageRequirement(Wire, frozen=True):
    """A condition on the instance types that an image suits."""

    key: Annotated[str, about("The label that the requirement is about.")]
    operator: Annotated[str, about("How the label relates to the values.")]
    values: Annotated[
        Annotated[list[str], list_type("atomic")] | None, about("What the label is compared with.")
    ] = None


class Image(Wire, frozen=True):
    """An image that was found."""

    id: Annotated[str, about("Its id.")]
    requirements: Annotated[list[ImageRequirement], about("Which instance types it suits.")]
    deprecated: Annotated[bool | None, about("Whether its makers advise against it.")] = None
    name: Annotated[str | None, about("Its name.")] = None


class CapacityReservation(Wire, frozen=True):
    """A capacity reservation that was found."""

    availability_zone: Annotated[str, about("Its zone.")]
    id: Annotated[ReservationId, about("Its id.")]
    instance_match_criteria: Annotated[
        MatchCriteria, about("Whether machines come into it by themselves or only if asked to.")
    ]
    instance_type: Annotated[str, about("The instance type it is for.")]
    owner_id: Annotated[OwnerId, about("The account that owns it.")]
    end_time: Annotated[Time | None, about("When it ends; never if unset.")] = None
    interruptible: Annotated[bool | None, about("Whether its owner may take it back.")] = None
    reservation_type: Annotated[
        Literal["default", "capacity-block"], about("On demand, or a block bought for a time.")
    ] = "default"
    state: Annotated[
        Literal["active", "expiring"], about("Whether it can be launched into, or is about to end.")
    ] = "active"


class SecurityGroup(Wire, frozen=True):
    """A security group that was found."""

    id: Annotated[str, about("Its id.")]
    name: Annotated[str | None, about("Its name.")] = None


class Subnet(Wire, frozen=True):
    """A subnet that was found."""

    id: Annotated[str, about("Its id.")]
    zone: Annotated[str, about("Its zone.")]
    zone_id: Annotated[str | None, about("What the zone is called in every account.")] = None


class EC2NodeClassStatus(Wire, frozen=True):
    """What the selectors found."""

    amis: Annotated[list[Image] | None, about("The images.")] = None
    capacity_reservations: Annotated[
        list[CapacityReservation] | None, about("The capacity reservations.")
    ] = None
    conditions: PlainConditions | None = None
    instance_profile: Annotated[str | None, about("The instance profile in use.")] = None
    security_groups: Annotated[list[SecurityGroup] | None, about("The security groups.")] = None
    subnets: Annotated[list[Subnet] | None, about("The subnets.")] = None
