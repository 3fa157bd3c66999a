from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest
import yaml

from karpy.codec.fields import JsonObject
from karpy.codec.schemas.definitions import CUSTOM_KINDS, CustomKind
from karpy.model.kinds import CUSTOM

BY_NAME: Final = {each.kind.plural: each for each in CUSTOM_KINDS}
each_kind = pytest.mark.parametrize("custom", CUSTOM_KINDS, ids=lambda custom: custom.name)


def version(plural: str) -> JsonObject:
    made: JsonObject = BY_NAME[plural].to_json()["spec"]["versions"][0]
    return made


def columns(plural: str) -> list[tuple[str, int]]:
    listed = version(plural)["additionalPrinterColumns"]
    return [(each["name"], each.get("priority", 0)) for each in listed]


def test_every_custom_kind_has_a_definition() -> None:
    assert {each.kind for each in CUSTOM_KINDS} == set(CUSTOM)


@each_kind
def test_yaml_says_the_same_as_json(custom: CustomKind) -> None:
    assert yaml.safe_load(custom.to_yaml()) == custom.to_json()


@each_kind
def test_every_field_is_explained(custom: CustomKind) -> None:
    silent = [path for path, schema in fields(custom.schema()) if not schema.get("description")]

    assert silent == ["metadata"]


@each_kind
def test_every_field_has_a_type(custom: CustomKind) -> None:
    """An API server refuses a definition that is not structural."""
    typeless = [
        path
        for path, schema in fields(custom.schema())
        if "type" not in schema and "x-kubernetes-int-or-string" not in schema
    ]

    assert typeless == []


@each_kind
def test_the_status_is_written_on_its_own(custom: CustomKind) -> None:
    assert version(custom.kind.plural)["subresources"]["status"] == {}


def test_a_pool_can_be_scaled() -> None:
    assert version("nodepools")["subresources"]["scale"] == {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.nodes",
    }


def test_names_are_those_of_karpenter() -> None:
    assert {name: custom.to_json()["spec"]["names"] for name, custom in BY_NAME.items()} == {
        "nodepools": names("NodePool", "nodepools"),
        "nodeclaims": names("NodeClaim", "nodeclaims"),
        "nodeoverlays": names("NodeOverlay", "nodeoverlays", shortNames=["overlays"]),
        "capacitybuffers": names(
            "CapacityBuffer", "capacitybuffers", shortNames=["cb"], categories=["autoscaling"]
        ),
        "kwoknodeclasses": names(
            "KWOKNodeClass", "kwoknodeclasses", shortNames=["kwoknc", "kwokncs"]
        ),
        "ec2nodeclasses": names("EC2NodeClass", "ec2nodeclasses", shortNames=["ec2nc", "ec2ncs"]),
    }


def test_columns_are_those_of_karpenter() -> None:
    """The number is the priority; only `-o wide` shows columns with a priority above 0."""
    assert columns("nodepools") == [
        ("NodeClass", 0),
        ("Nodes", 0),
        ("Ready", 0),
        ("Age", 0),
        ("Weight", 1),
        ("CPU", 1),
        ("Memory", 1),
    ]
    assert columns("nodeclaims") == [
        ("Type", 0),
        ("Capacity", 0),
        ("Zone", 0),
        ("Node", 0),
        ("Ready", 0),
        ("Age", 0),
        ("ImageID", 1),
        ("ID", 1),
        ("NodePool", 1),
        ("NodeClass", 1),
        ("Drifted", 1),
    ]
    assert columns("nodeoverlays") == [("Ready", 0), ("Age", 0), ("Weight", 1)]
    assert columns("ec2nodeclasses") == [("Ready", 0), ("Age", 0), ("Role", 1)]


def test_a_label_in_a_column_is_escaped() -> None:
    first = version("nodeclaims")["additionalPrinterColumns"][0]

    assert first["jsonPath"] == r".metadata.labels.node\.kubernetes\.io/instance-type"


def names(kind: str, plural: str, **more: object) -> dict[str, object]:
    return {
        "categories": ["karpenter"],
        "kind": kind,
        "listKind": f"{kind}List",
        "plural": plural,
        "singular": kind.lower(),
        **more,
    }


def fields(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Walk through the fields of a schema, with their paths."""
    for name, below in schema.get("properties", {}).items():
        place = f"{path}.{name}" if path else name
        yield place, below
        yield from fields(below, place)
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from fields(schema[key], f"{path}[]")
