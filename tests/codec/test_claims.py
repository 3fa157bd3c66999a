from typing import Final

import pytest
from msgspec.structs import replace

from karpy.codec.claims import write_node_claim, write_requirement, write_resources
from karpy.codec.constraints import POOL_OPERATORS, read_requirement
from karpy.codec.fields import Fields, JsonObject
from karpy.model.labels import CAPACITY_TYPE, INSTANCE_TYPE
from karpy.model.requirements import Operator, Requirement, collect, require
from karpy.model.verdicts import Launch, LaunchOption
from tests.builders.clouds import catalog, instance_type

NODE_CLASS: Final = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "k"}
POOL: Final[JsonObject] = {
    "metadata": {
        "name": "web",
        "uid": "u1",
        "annotations": {"karpenter.sh/nodepool-hash": "1", "other": "x"},
    },
    "spec": {
        "template": {
            "metadata": {"labels": {"team": "red"}, "annotations": {"note": "hello"}},
            "spec": {
                "nodeClassRef": {
                    "group": "karpenter.kwok.sh",
                    "kind": "KWOKNodeClass",
                    "name": "k",
                },
                "taints": [{"key": "t", "effect": "NoSchedule"}],
                "expireAfter": "720h",
            },
        }
    },
}
SHOP = catalog((instance_type("small"), instance_type("large")))


def a_launch(*requirements: Requirement) -> Launch:
    options = (LaunchOption("small", 1, "a", "spot"),)
    return Launch("web-0", "web", (), collect(requirements), {"cpu": 1500, "pods": 1}, options)


def test_a_claim_has_the_template_of_its_pool() -> None:
    claim = write_node_claim(a_launch(), POOL, SHOP)

    meta, spec = claim["metadata"], claim["spec"]
    assert meta["generateName"] == "web-"
    assert meta["labels"] == {
        "team": "red",
        "karpenter.sh/nodepool": "web",
        "karpenter.kwok.sh/kwoknodeclass": "k",
    }
    assert meta["annotations"] == {
        "note": "hello",
        "karpenter.sh/nodepool-hash": "1",
        "karpenter.sh/nodeclaim-min-values-relaxed": "false",
    }
    assert meta["ownerReferences"] == [
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "name": "web",
            "uid": "u1",
            "blockOwnerDeletion": True,
        }
    ]
    assert spec["taints"] == [{"key": "t", "effect": "NoSchedule"}]
    assert spec["expireAfter"] == "720h"
    assert spec["resources"] == {"requests": {"cpu": "1500m", "pods": "1"}}


def test_a_claim_is_created_with_its_finalizer() -> None:
    """Without a finalizer, it could be deleted before its machine is terminated."""
    claim = write_node_claim(a_launch(), POOL, SHOP)

    assert claim["metadata"]["finalizers"] == ["karpenter.sh/termination"]


def test_a_claim_without_options_leaves_the_choice_to_the_cloud() -> None:
    arch = Requirement("kubernetes.io/arch", frozenset({"amd64"}))

    claim = write_node_claim(Launch("web", "web", (), collect([arch]), {}, ()), POOL, SHOP)

    assert claim["metadata"]["annotations"] == {"note": "hello", "karpenter.sh/nodepool-hash": "1"}
    assert claim["spec"] == {
        "nodeClassRef": NODE_CLASS,
        "taints": [{"key": "t", "effect": "NoSchedule"}],
        "expireAfter": "720h",
        "requirements": [
            {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
        ],
    }


def test_a_claim_names_its_instance_types_and_keeps_min_values() -> None:
    asked = Requirement(INSTANCE_TYPE, complement=True, min_values=1)

    claim = write_node_claim(a_launch(asked), POOL, SHOP)

    written = {each["key"]: each for each in claim["spec"]["requirements"]}
    assert written[INSTANCE_TYPE] == {
        "key": INSTANCE_TYPE,
        "operator": "In",
        "values": ["small"],
        "minValues": 1,
    }


def test_a_claim_has_all_capacity_types_of_its_instance_types() -> None:
    """A type whose spot machines are cheapest may still be had on demand."""
    claim = write_node_claim(a_launch(), POOL, SHOP)

    written = {each["key"]: each for each in claim["spec"]["requirements"]}
    sold = {offer.capacity_type for kind in SHOP.types[:1] for offer in kind.offerings}
    assert written[CAPACITY_TYPE]["values"] == sorted(sold)


def test_a_label_that_only_this_cluster_knows_gets_a_value() -> None:
    asked = require("team/size", Operator.IN, ("l", "m"))

    claim = write_node_claim(a_launch(asked), POOL, SHOP)

    assert claim["metadata"]["labels"]["team/size"] == "l"


@pytest.mark.parametrize(
    "requirement",
    [
        require("k", Operator.IN, ("a", "b")),
        require("k", Operator.NOT_IN, ("a",)),
        require("k", Operator.EXISTS),
        require("k", Operator.DOES_NOT_EXIST),
        require("k", Operator.GTE, ("3",)) & require("k", Operator.LTE, ("9",)),
        require("k", Operator.NOT_IN, ("5",)) & require("k", Operator.GTE, ("3",)),
        require("k", Operator.NOT_IN, ("5",)) & require("k", Operator.EXISTS),
        require("k", Operator.IN, ("a", "b"), min_values=2),
    ],
    ids=str,
)
def test_a_written_requirement_reads_the_same(requirement: Requirement) -> None:
    written = write_requirement(requirement)

    read = collect(read_requirement(Fields(each), POOL_OPERATORS) for each in written)

    assert read == {"k": requirement}


def test_amounts_are_written_as_quantities() -> None:
    amounts = {"cpu": 2000, "memory": 1024, "example.com/gpu": 1}

    assert write_resources(amounts) == {"cpu": "2", "example.com/gpu": "1", "memory": "1024"}
    assert write_resources({"cpu": 1}) == {"cpu": "1m"}


@pytest.mark.parametrize(
    ("overlaid", "expected"),
    [
        ({}, {}),
        ({"is_price_overlaid": True}, {"karpenter.sh/price-overlay-applied": "true"}),
        ({"is_capacity_overlaid": True}, {"karpenter.sh/capacity-overlay-applied": "true"}),
    ],
)
def test_a_claim_says_whether_an_overlay_changed_its_types(
    overlaid: dict[str, bool], expected: dict[str, str]
) -> None:
    other = replace(instance_type("large"), is_price_overlaid=True, is_capacity_overlaid=True)
    shop = catalog((replace(instance_type("small"), **overlaid), other))

    claim = write_node_claim(a_launch(), POOL, shop)

    annotations = claim["metadata"]["annotations"]
    assert {key: annotations[key] for key in annotations if "overlay" in key} == expected
