"""Tags of the resources that Karpy creates in AWS, and names of instance profiles."""

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from msgspec import Struct

from karpy.core.nodepool.hash import hash_text

CLUSTER_NAME: Final = "eks:eks-cluster-name"
NODE_POOL: Final = "karpenter.sh/nodepool"
NODE_CLAIM: Final = "karpenter.sh/nodeclaim"
NODE_CLASS: Final = "karpenter.k8s.aws/ec2nodeclass"
NAME: Final = "Name"
OWNED: Final = "owned"
_RESTRICTED: Final = re.compile(
    r"kubernetes\.io/cluster/[0-9A-Za-z][A-Za-z0-9\-_]{0,99}|karpenter\.sh/nodepool|"
    r"eks:eks-cluster-name|karpenter\.k8s\.aws/ec2nodeclass|karpenter\.sh/nodeclaim",
    re.ASCII,
)
REGION_TAG: Final = "topology.kubernetes.io/region"
_PROFILE_NAME_MAX: Final = 128
_PROFILE_NAME: Final = re.compile(r"[\w+=,.@-]{1,128}", re.ASCII)


class MachineOwner(Struct, frozen=True, gc=False):
    """The cluster, EC2NodeClass and NodePool of a machine."""

    cluster: str
    node_class: str
    pool: str = ""


def cluster_tag(cluster: str) -> str:
    """Return the key of the tag that marks resources of a cluster."""
    return f"kubernetes.io/cluster/{cluster}"


def restricted_tags(tags: Mapping[str, str]) -> list[str]:
    """List the tags of a node class that only the provider may set."""
    return sorted(key for key in tags if _RESTRICTED.fullmatch(key))


def machine_tags(tags: Mapping[str, str], owner: MachineOwner) -> dict[str, str]:
    """Return the tags of a machine, its volumes and interfaces."""
    return {
        **tags,
        cluster_tag(owner.cluster): OWNED,
        NODE_POOL: owner.pool,
        CLUSTER_NAME: owner.cluster,
        NODE_CLASS: owner.node_class,
    }


def ec2_tags(tags: Mapping[str, str]) -> list[dict[str, str]]:
    """Return tags in the format of EC2's API, ordered by key."""
    return [{"Key": key, "Value": tags[key]} for key in sorted(tags)]


def profile_path(region: str, cluster: str, uid: str = "") -> str:
    """Return the IAM path of the profiles of a cluster, or of one node class."""
    return f"/karpenter/{region}/{cluster}/" + (f"{uid}/" if uid else "")


def profile_name(cluster: str, region: str, node_class: str, role: str) -> str:
    """Return the name of the instance profile for a role; each role has its own profile."""
    # Differs: the name of an instance profile: Karpenter draws it at random; Karpy derives it from
    # the role, so that the profile is found again after a restart.
    digest = sha256(f"{region}/{node_class}/{role}".encode()).digest()
    number = int.from_bytes(digest[:8], "big")
    return f"{cluster}_{number}"[:_PROFILE_NAME_MAX]


def legacy_name(cluster: str, region: str, node_class: str) -> str:
    """Return the name that profiles had in Karpenter before each role had its own profile."""
    return f"{cluster}_{hash_text(region + node_class)}"


def is_profile_name(name: str) -> bool:
    """Say whether a name is valid for an instance profile."""
    return _PROFILE_NAME.fullmatch(name) is not None


def profile_tags(
    tags: Mapping[str, str], cluster: str, node_class: str, region: str
) -> dict[str, str]:
    """Return the tags of a profile."""
    return {
        **tags,
        cluster_tag(cluster): OWNED,
        CLUSTER_NAME: cluster,
        NODE_CLASS: node_class,
        REGION_TAG: region,
    }


def role_name(role: str) -> str:
    """Return the name of a role without its path."""
    return role.rpartition("/")[2]
