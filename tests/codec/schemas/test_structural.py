from typing import Annotated, Literal

import pytest
from msgspec import Meta

from karpy.codec.schemas.structural import structural
from karpy.codec.schemas.wire import (
    Int32,
    Quantity,
    SchemaRule,
    Wire,
    about,
    default,
    list_type,
    map_type,
    rules,
    wire_name,
)


class Inner(Wire, frozen=True):
    """What is inside."""

    node_name: str


class Outer(Wire, frozen=True):
    """What is outside."""

    inner: Inner
    other: Annotated[Inner | None, about("Another one."), default({"nodeName": "a"})] = None
    colour: Annotated[Literal["red", "blue"] | None, about("A colour.")] = None
    names: Annotated[Annotated[list[str], Meta(max_length=3), list_type("set")] | None, rules()] = (
        None
    )
    amount: dict[str, Quantity] | None = None
    count: Int32 = 3


@pytest.mark.parametrize(
    ("name", "wire"),
    [
        ("node_name", "nodeName"),
        ("provider_id", "providerID"),
        ("id", "id"),
        ("ip_prefix_count", "ipPrefixCount"),
        ("associate_public_ip_address", "associatePublicIPAddress"),
        ("http_protocol_ipv6", "httpProtocolIPv6"),
        ("image_gc_high_threshold_percent", "imageGCHighThresholdPercent"),
        ("cpu_cfs_quota", "cpuCFSQuota"),
    ],
)
def test_names_are_those_of_kubernetes(name: str, wire: str) -> None:
    assert wire_name(name) == wire


def test_a_type_is_written_out_in_full() -> None:
    inner = {
        "description": "What is inside.",
        "properties": {"nodeName": {"type": "string"}},
        "required": ["nodeName"],
        "type": "object",
    }
    quantity = structural(Quantity)

    assert structural(Outer) == {
        "description": "What is outside.",
        "properties": {
            "amount": {"additionalProperties": quantity, "type": "object"},
            "colour": {"description": "A colour.", "enum": ["blue", "red"], "type": "string"},
            "count": {"default": 3, "format": "int32", "type": "integer"},
            "inner": inner,
            "names": {
                "items": {"type": "string"},
                "maxItems": 3,
                "type": "array",
                "x-kubernetes-list-type": "set",
                "x-kubernetes-validations": [],
            },
            "other": {**inner, "description": "Another one.", "default": {"nodeName": "a"}},
        },
        "required": ["inner"],
        "type": "object",
    }


def test_a_quantity_is_a_number_or_a_text() -> None:
    schema = structural(Quantity)

    assert schema["anyOf"] == [{"type": "integer"}, {"type": "string"}]
    assert schema["x-kubernetes-int-or-string"] is True
    assert "type" not in schema


def test_rules_carry_their_message() -> None:
    ruled = Annotated[Inner, rules(SchemaRule("self.nodeName != ''", "say a name"))]

    assert structural(ruled)["x-kubernetes-validations"] == [
        {"message": "say a name", "rule": "self.nodeName != ''"}
    ]


def test_lists_and_maps_say_how_they_are_merged() -> None:
    listed = structural(Annotated[list[Inner], list_type("map", "nodeName")])
    mapped = structural(Annotated[dict[str, str], map_type("granular")])

    assert listed["x-kubernetes-list-map-keys"] == ["nodeName"]
    assert mapped["x-kubernetes-map-type"] == "granular"
