import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from karpy.codec.convert.drafts import NamedCluster
from karpy.codec.fields import JsonObject
from karpy.codec.schemas.definitions import CUSTOM_KINDS
from karpy.codec.validation.validator import CrdValidator
from tests.codec.convert.groups import NODE_GROUP, SCALING_GROUP
from tests.codec.convert.texts import again, converted, notes_in, proposed, refused, shown, spec_of

VALIDATORS: Final = {each.kind.name: CrdValidator(each.to_json()) for each in CUSTOM_KINDS}
SHOP: Final = NamedCluster("shop")
AWS_HINT: Final = (
    "give what `aws eks describe-nodegroup` or "
    "`aws autoscaling describe-auto-scaling-groups` prints"
)


def node_group(**fields: object) -> str:
    return json.dumps({"nodegroup": {**NODE_GROUP, **fields}})


def scaling_group(**fields: object) -> str:
    return json.dumps({"AutoScalingGroups": [{**SCALING_GROUP, **fields}]})


def requirements(text: str) -> dict[str, list[str]]:
    spec = spec_of(proposed(text), "NodePool")["template"]["spec"]
    return {each["key"].partition("/")[2]: each["values"] for each in spec["requirements"]}


def test_every_field_of_a_node_group_is_carried_or_named(snapshot: SnapshotAssertion) -> None:
    assert shown(proposed(node_group())) == snapshot


def test_every_field_of_a_scaling_group_is_carried_or_named(snapshot: SnapshotAssertion) -> None:
    assert shown(proposed(scaling_group())) == snapshot


@pytest.mark.parametrize(
    ("kind", "alias", "arch"),
    [
        ("AL2_x86_64", "al2@latest", ["amd64"]),
        ("AL2_ARM_64", "al2@latest", ["arm64"]),
        ("AL2023_ARM_64_STANDARD", "al2023@latest", ["arm64"]),
        ("BOTTLEROCKET_x86_64_NVIDIA", "bottlerocket@latest", ["amd64"]),
        ("WINDOWS_CORE_2022_x86_64", "windows2022@latest", ["amd64"]),
        ("CUSTOM", "al2023@latest", None),
    ],
)
def test_the_type_of_images_is_an_alias(kind: str, alias: str, arch: list[str] | None) -> None:
    text = node_group(amiType=kind)

    spec = spec_of(proposed(text), "EC2NodeClass")

    assert spec["amiSelectorTerms"] == [{"alias": alias}]
    assert requirements(text).get("arch") == arch


@pytest.mark.parametrize("kind", ["CUSTOM", "BOTTLEROCKET_ARM_64_FIPS", "WINDOWS_FULL_2019_x86_64"])
def test_images_without_an_alias_are_noted_as_lost(kind: str) -> None:
    assert ("LOST", "nodegroup.amiType") in notes_in(proposed(node_group(amiType=kind)))


@pytest.mark.parametrize(
    ("fields", "types"),
    [
        ({"capacityType": "ON_DEMAND"}, ["on-demand"]),
        ({"capacityType": None}, ["on-demand"]),
        ({"capacityType": "CAPACITY_BLOCK"}, ["reserved"]),
    ],
)
def test_the_capacity_type_of_a_node_group_is_required(
    fields: dict[str, object], types: list[str]
) -> None:
    assert requirements(node_group(**fields))["capacity-type"] == types


@pytest.mark.parametrize(
    ("shares", "types"),
    [
        ({}, ["on-demand"]),
        ({"OnDemandPercentageAboveBaseCapacity": 0}, ["spot"]),
        (
            {"OnDemandBaseCapacity": 1, "OnDemandPercentageAboveBaseCapacity": 0},
            ["spot", "on-demand"],
        ),
    ],
)
def test_the_distribution_of_a_scaling_group_is_required(
    shares: dict[str, int], types: list[str]
) -> None:
    text = scaling_group(MixedInstancesPolicy={"InstancesDistribution": shares})

    assert requirements(text)["capacity-type"] == types


def test_a_group_without_a_policy_has_the_types_of_its_machines() -> None:
    assert requirements(scaling_group(MixedInstancesPolicy=None))["instance-type"] == ["m6i.large"]


def test_unknown_types_are_noted_as_lost() -> None:
    notes = notes_in(proposed(node_group(instanceTypes=None)))

    assert ("LOST", "nodegroup.instanceTypes") in notes


def test_a_group_without_subnets_has_those_of_its_cluster_in_its_zones() -> None:
    text = scaling_group(VPCZoneIdentifier="")

    assert requirements(text)["zone"] == ["us-east-1a", "us-east-1b"]
    assert spec_of(proposed(text), "EC2NodeClass")["subnetSelectorTerms"] == [
        {"tags": {"karpenter.sh/discovery": "shop"}}
    ]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("kubernetes.io/cluster/prod", "owned"),
        ("k8s.io/cluster-autoscaler/prod", "owned"),
        ("eks:cluster-name", "prod"),
    ],
)
def test_tags_name_the_cluster(key: str, value: str) -> None:
    text = scaling_group(Tags=[{"Key": key, "Value": value}])

    assert spec_of(proposed(text), "EC2NodeClass")["role"] == "KarpenterNodeRole-prod"


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([{"nodegroup": NODE_GROUP}, {"AutoScalingGroups": [SCALING_GROUP]}]),
        json.dumps([NODE_GROUP, SCALING_GROUP]),
        node_group() + "\n" + scaling_group(),
    ],
)
def test_groups_are_found_in_lists_and_one_after_the_other(text: str) -> None:
    conversion = proposed(text)

    assert [(each["kind"], each["metadata"]["name"]) for each in conversion.objects] == [
        ("NodePool", "batch-gpu"),
        ("EC2NodeClass", "batch-gpu"),
        ("NodePool", "web"),
        ("EC2NodeClass", "web"),
    ]
    assert (conversion.total.converted, conversion.problems) == (2, ())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            node_group(capacityType="CHEAP"),
            (
                "nodegroup.capacityType",
                "is `CHEAP`",
                "write one of: ON_DEMAND, SPOT, CAPACITY_BLOCK",
            ),
        ),
        (
            node_group(subnets=["a"]),
            (
                "nodegroup.subnets",
                "names `a`, not the id of a subnet",
                "write `subnet-…`",
            ),
        ),
        (
            node_group(scalingConfig={"minSize": "two"}),
            (
                "nodegroup.scalingConfig.minSize",
                "is the text `two`, not a whole number",
                "write `0` or more",
            ),
        ),
        ('{"AutoScalingGroups": []}', ("", "describes no group of machines", AWS_HINT)),
        (
            '{"nodegroups": ["web"]}',
            (
                "",
                "describes no group of machines",
                AWS_HINT,
            ),
        ),
        (
            scaling_group(Tags=[{"Key": "a", "Value": "b"}]),
            (
                "AutoScalingGroups[0]",
                "has no tags to find a security group by",
                "add `--cluster-name NAME` or `--security-group-tag KEY=VALUE`",
            ),
        ),
    ],
)
def test_a_group_that_cannot_be_converted_is_named(
    text: str, problem: tuple[str, str, str]
) -> None:
    conversion = proposed(text)

    assert (conversion.objects, refused(conversion)) == ((), [problem])


def test_an_incomplete_answer_is_named() -> None:
    text = json.dumps({"AutoScalingGroups": [SCALING_GROUP], "NextToken": "abc"})

    conversion = proposed(text)

    assert (conversion.total.converted, [each[:2] for each in refused(conversion)]) == (
        1,
        [("NextToken", "says that there are more groups than these")],
    )


def test_two_groups_do_not_take_one_name() -> None:
    conversion = proposed(node_group(nodegroupName="a_b"), node_group(nodegroupName="a-b"))

    assert (conversion.objects, [each[0] for each in refused(conversion)]) == (
        (),
        ["nodegroup", "nodegroup"],
    )


@pytest.mark.parametrize("text", [node_group(), scaling_group()])
def test_a_group_among_manifests_says_how_to_read_it(text: str) -> None:
    assert refused(converted(text)) == [("", "is a group of machines", "add `--from-nodegroups`")]


names = st.sampled_from(sorted(NODE_GROUP.keys() - {"nodegroupName", "clusterName"}))
keys = st.sampled_from(sorted(SCALING_GROUP.keys() - {"AutoScalingGroupName"}))


def without(group: JsonObject, left_out: set[str]) -> dict[str, Any]:
    return {key: each for key, each in group.items() if key not in left_out}


@given(st.sets(names), st.sets(keys))
def test_converted_objects_are_accepted_by_an_api_server(no: set[str], none: set[str]) -> None:
    groups = [{"nodegroup": without(NODE_GROUP, no)}, without(SCALING_GROUP, none)]

    conversion = proposed(json.dumps(groups), cluster=SHOP)

    admitted = [VALIDATORS[each["kind"]].admit(each, None) for each in conversion.objects]
    assert (len(admitted), conversion.problems) == (4, ())
    assert again(conversion).objects == conversion.objects


junk: st.SearchStrategy[object] = st.sampled_from(
    [None, True, 0, -1, 1.5, "", "text", [], ["a"], [[]], [{}], {}, {"a": 1}]
)


@given(names, keys, junk)
def test_any_input_is_converted_or_named(name: str, key: str, bad: object) -> None:
    groups = [{**NODE_GROUP, name: bad}, {**SCALING_GROUP, key: bad}]

    conversion = proposed(json.dumps(groups), cluster=SHOP)

    admitted = [VALIDATORS[each["kind"]].admit(each, None) for each in conversion.objects]
    assert len(admitted) // 2 + len(conversion.problems) == len(groups)
