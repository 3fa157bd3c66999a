"""EC2NodeClasses and NodePools as users write them."""

from typing import Final

from karpy.codec.fields import JsonObject
from tests.scenarios.manifests import one_of

__all__ = ["class_ref", "ec2_node_class", "ec2_pool", "one_of"]

_DISCOVERED: Final = [{"tags": {"karpenter.sh/discovery": "demo"}}]


def ec2_node_class(name: str = "default", **spec: object) -> JsonObject:
    """An EC2NodeClass of the latest AL2023, and what the test is about."""
    return {
        "metadata": {"name": name},
        "spec": {
            "role": "KarpenterNodeRole-demo",
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "subnetSelectorTerms": _DISCOVERED,
            "securityGroupSelectorTerms": _DISCOVERED,
            **spec,
        },
    }


def class_ref(name: str = "default") -> JsonObject:
    """Return how a NodePool or a NodeClaim names an EC2NodeClass."""
    return {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": name}


def ec2_pool(
    name: str = "default",
    *requirements: JsonObject,
    node_class: str = "default",
    template: JsonObject | None = None,
    **spec: object,
) -> JsonObject:
    """A NodePool of c and m machines, unless it asks for categories of its own."""
    category = "karpenter.k8s.aws/instance-category"
    usual = [one_of(category, "c", "m")] if all(r["key"] != category for r in requirements) else []
    node = {"requirements": [*requirements, *usual], "nodeClassRef": class_ref(node_class)}
    return {
        "metadata": {"name": name},
        "spec": {"template": {"spec": {**node, **(template or {})}}, **spec},
    }
