"""EC2NodeClasses, images and types for tests of decisions about them."""

from datetime import UTC, datetime
from typing import Final

from msgspec.structs import replace

from karpy.core.aws.catalog import CatalogMaker
from karpy.model.conditions import Conditions
from karpy.model.ec2 import InstanceSettings, InstanceTypeInfo
from karpy.model.ec2nodeclass import (
    Ec2NodeClass,
    Ec2NodeClassSpec,
    Ec2NodeClassStatus,
    FoundImage,
    FoundSecurityGroup,
    FoundSubnet,
    ImageTerm,
    SecurityGroupTerm,
    SubnetTerm,
)
from karpy.model.instances import InstanceType
from karpy.model.labels import ARCH
from karpy.model.records import Identity
from karpy.model.requirements import Requirement, one_of
from tests.builders.ec2 import ZONE_IDS, ZONES, JsonAnything, region

NOON: Final = datetime(2026, 1, 5, 12, tzinfo=UTC)
GPU_COUNT: Final = "karpenter.k8s.aws/instance-gpu-count"
NO_GPU: Final = Requirement(GPU_COUNT, frozenset())
AMD64: Final = FoundImage("ami-amd", "al2023-x86", (one_of(ARCH, "amd64"), NO_GPU))
ARM64: Final = FoundImage("ami-arm", "al2023-arm", (one_of(ARCH, "arm64"), NO_GPU))
SPEC: Final = Ec2NodeClassSpec(
    subnet_terms=(SubnetTerm({"karpenter.sh/discovery": "shop"}),),
    security_group_terms=(SecurityGroupTerm({"karpenter.sh/discovery": "shop"}),),
    image_terms=(ImageTerm(alias="al2023@latest"),),
    role="KarpenterNodeRole-shop",
)
STATUS: Final = Ec2NodeClassStatus(
    subnets=tuple(FoundSubnet(f"subnet-{zone[-1]}", zone, ZONE_IDS[zone]) for zone in ZONES),
    security_groups=(FoundSecurityGroup("sg-1", "nodes"),),
    images=(AMD64, ARM64),
    instance_profile="shop_1",
)
DEPENDENTS: Final = (
    "AMIsReady",
    "SubnetsReady",
    "SecurityGroupsReady",
    "InstanceProfileReady",
    "ValidationSucceeded",
    "PlacementGroupReady",
)


def node_class(
    spec: Ec2NodeClassSpec = SPEC, status: Ec2NodeClassStatus = STATUS, **meta: JsonAnything
) -> Ec2NodeClass:
    """Return an EC2NodeClass; `meta` changes its identity."""
    identity = Identity("default", uid="uid-1", generation=1, created=NOON)
    return Ec2NodeClass(replace(identity, **meta), spec, status)


def begun() -> Ec2NodeClass:
    """Return an EC2NodeClass for which nothing was found yet."""
    return node_class(status=Ec2NodeClassStatus(conditions=Conditions((), DEPENDENTS)))


def types_of(
    *infos: InstanceTypeInfo, settings: InstanceSettings | None = None
) -> list[InstanceType]:
    """Return instance types as a cluster sees them, sold in both zones."""
    made = CatalogMaker().make(region(*infos), {}, usual=settings or InstanceSettings())
    return list(made.types)
