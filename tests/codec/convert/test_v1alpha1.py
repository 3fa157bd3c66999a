from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.codec.convert.manifests import NODE_TEMPLATE
from tests.codec.convert.texts import converted, notes_in, refused, shown, spec_of

BARE = """\
apiVersion: karpenter.k8s.aws/v1alpha1
kind: AWSNodeTemplate
metadata: {name: bare}
spec:
  subnetSelector: {a: b}
  securityGroupSelector: {a: b}
"""
SETTINGS = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: karpenter-global-settings}
data: {aws.defaultInstanceProfile: Usual}
"""
UBUNTU = """\
  amiFamily: Ubuntu
  amiSelector: {aws-ids: ami-0a1}
"""


def test_every_field_of_a_node_template_is_carried_or_named(snapshot: SnapshotAssertion) -> None:
    assert shown(converted(NODE_TEMPLATE)) == snapshot


def test_no_family_means_al2() -> None:
    spec = spec_of(converted(BARE), "EC2NodeClass")

    assert spec["amiSelectorTerms"] == [{"alias": "al2@latest"}]


@pytest.mark.parametrize(
    ("selector", "terms"),
    [
        ('{Name: "*private*"}', [{"tags": {"Name": "*private*"}}]),
        ('{x: "*", y: z}', [{"tags": {"x": "*", "y": "z"}}]),
        ("{Name: 'a, b', x: y}", [{"tags": {"Name": each, "x": "y"}} for each in ("a", "b")]),
        ("{aws-ids: 'subnet-1,subnet-2'}", [{"id": "subnet-1"}, {"id": "subnet-2"}]),
        ("{Name: '', x: y}", [{"tags": {"Name": "*", "x": "y"}}]),
        ("{aws::ids: subnet-1}", [{"id": "subnet-1"}]),
        ("{n: 1, t: true}", [{"tags": {"n": "1", "t": "true"}}]),
    ],
)
def test_a_selector_becomes_terms(selector: str, terms: list[dict[str, Any]]) -> None:
    text = BARE.replace("subnetSelector: {a: b}", f"subnetSelector: {selector}")

    assert spec_of(converted(text), "EC2NodeClass")["subnetSelectorTerms"] == terms


def test_tags_beside_ids_are_noted_as_lost() -> None:
    text = BARE.replace("subnetSelector: {a: b}", "subnetSelector: {aws-ids: subnet-1, a: b}")

    assert ("LOST", "spec.subnetSelector.a") in notes_in(converted(text))


def test_names_of_local_disks_are_noted_as_lost() -> None:
    disk = (
        "  blockDeviceMappings: [{deviceName: /dev/sdb, virtualName: ephemeral0, ebs: {size: 1}}]\n"
    )

    assert notes_in(converted(BARE + disk, role="Nodes"))[-3:-1] == [
        ("DROPPED", "spec.blockDeviceMappings[0].ebs.size"),
        ("LOST", "spec.blockDeviceMappings[0].virtualName"),
    ]


def test_ubuntu_starts_as_al2_does(snapshot: SnapshotAssertion) -> None:
    assert shown(converted(BARE + UBUNTU, role="Nodes")) == snapshot


@pytest.mark.parametrize(
    ("texts", "role", "identity"),
    [
        ((BARE,), "", {"role": "${KARPENTER_NODE_ROLE}"}),
        ((BARE,), "Nodes", {"role": "Nodes"}),
        ((BARE, SETTINGS), "", {"instanceProfile": "Usual"}),
        ((BARE + "  instanceProfile: Mine\n", SETTINGS), "Nodes", {"instanceProfile": "Mine"}),
    ],
)
def test_machines_keep_their_identity(
    texts: tuple[str, ...], role: str, identity: dict[str, str]
) -> None:
    conversion = converted(*texts, role=role)

    spec = spec_of(conversion, "EC2NodeClass")
    assert {key: spec[key] for key in ("role", "instanceProfile") if key in spec} == identity
    is_known = "${KARPENTER_NODE_ROLE}" not in identity.values()
    assert (("LOST", "spec.role") not in notes_in(conversion)) is is_known
    assert refused(conversion) == []


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("", {"httpPutResponseHopLimit": 2, "httpTokens": "required"}),
        (
            "  metadataOptions: {httpPutResponseHopLimit: 3}\n",
            {"httpPutResponseHopLimit": 3, "httpTokens": "optional"},
        ),
        ("  metadataOptions: {httpTokens: required}\n", {"httpTokens": "required"}),
    ],
)
def test_metadata_is_answered_as_it_was(line: str, options: dict[str, Any]) -> None:
    assert spec_of(converted(BARE + line), "EC2NodeClass")["metadataOptions"] == options


@pytest.mark.parametrize(
    ("line", "path", "problem", "hint"),
    [
        (
            "subnetSelector: {aws-ids: ' , '}",
            "spec.subnetSelector.aws-ids",
            "names no id",
            "write ids with commas between, or remove it",
        ),
        (
            "launchTemplate: mine",
            "spec.launchTemplate",
            "names a launch template, and today nothing is launched by one",
            "write its images, disks, user data and security groups as fields of an EC2NodeClass",
        ),
        (
            "amiFamily: Ubuntu",
            "spec.amiFamily",
            "is Ubuntu without `amiSelector`, and today no image is known by that name",
            "add `amiSelector` with the id, name or tags of the images",
        ),
        (
            "amiFamily: Custom",
            "spec.amiFamily",
            "is Custom without `amiSelector`, and today no image is known by that name",
            "add `amiSelector` with the id, name or tags of the images",
        ),
        (
            "amiFamily: Debian",
            "spec.amiFamily",
            "is `Debian`",
            "use one of: AL2, AL2023, Bottlerocket, Windows2019, Windows2022, Windows2025, Custom",
        ),
        (
            "subnetSelector: null",
            "spec.subnetSelector",
            "is missing",
            "add `subnetSelector` with tags or ids",
        ),
    ],
)
def test_an_object_that_cannot_be_converted_is_named(
    line: str, path: str, problem: str, hint: str
) -> None:
    text = BARE.replace("  subnetSelector: {a: b}\n", "") if "subnet" in path else BARE

    assert refused(converted(f"{text}  {line}\n")) == [(path, problem, hint)]


@pytest.mark.parametrize(
    ("family", "user_data", "problem"),
    [
        ("", "[settings.kubernetes]", ["is TOML, which Bottlerocket takes alone"]),
        ("amiFamily: Bottlerocket", "#!/bin/sh", ["is no TOML, which Bottlerocket takes alone"]),
        ("amiFamily: Bottlerocket", "[settings.kubernetes]", []),
        ("amiFamily: AL2023", "#!/bin/sh", []),
    ],
)
def test_user_data_agree_with_the_images(family: str, user_data: str, problem: list[str]) -> None:
    lines = f'  {family}\n  userData: "{user_data}"\n  instanceProfile: Nodes\n'

    conversion = converted(BARE + lines)

    assert [each for _, each, _ in refused(conversion)] == problem
    assert len(conversion.objects) == 1
