"""Instance profiles that are made for the role of a node class: names, paths and tags."""

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from karpy.core.aws.tags import CLUSTER_NAME, NODE_CLASS, OWNED, cluster_tag
from karpy.core.structhash import hash_text

REGION_TAG: Final = "topology.kubernetes.io/region"
_NAME_MAX: Final = 128
_NAME: Final = re.compile(r"[\w+=,.@-]{1,128}", re.ASCII)


def profile_path(region: str, cluster: str, uid: str = "") -> str:
    """Return where the profiles of a cluster are, or of one node class."""
    return f"/karpenter/{region}/{cluster}/" + (f"{uid}/" if uid else "")


def profile_name(cluster: str, region: str, node_class: str, role: str) -> str:
    """Return the name of the profile for a role: another role has another profile."""
    # Differs: the name of an instance profile: Karpenter draws it at random; Karpy derives it from
    # the role, so that the profile is found again after a restart.
    digest = sha256(f"{region}/{node_class}/{role}".encode()).digest()
    number = int.from_bytes(digest[:8], "big")
    return f"{cluster}_{number}"[:_NAME_MAX]


def legacy_name(cluster: str, region: str, node_class: str) -> str:
    """Return the name that profiles of a node class had before each role had its own."""
    return f"{cluster}_{hash_text(region + node_class)}"


def is_profile_name(name: str) -> bool:
    """Say whether IAM takes a name for a profile."""
    return _NAME.fullmatch(name) is not None


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
