from copy import deepcopy

import pytest

from karpy.codec.fields import JsonObject
from karpy.codec.schemas.definitions import CUSTOM_KINDS
from karpy.codec.validation.validator import CrdValidator
from karpy.model.kinds import EC2_NODE_CLASS, KWOK_NODE_CLASS, NODE_POOL
from tests.codec.validation.gadgets import definition_of, gadget, validator
from tests.contract.crdcases.cases import base_of

TEXT = {"type": "string"}
OURS = {each.kind: CrdValidator(each.to_json()) for each in CUSTOM_KINDS}


@pytest.mark.parametrize(
    ("schema", "given", "kept"),
    [
        ({"type": "object", "properties": {"a": TEXT}}, {"a": "1", "b": "2"}, {"a": "1"}),
        ({"type": "object"}, {"a": "1"}, {}),
        (
            {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            {"a": {"b": None}},
            {"a": {"b": None}},
        ),
        (
            {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": True,
                "properties": {"known": {"type": "object", "properties": {"a": TEXT}}},
            },
            {"known": {"a": "1", "b": "2"}, "other": {"c": 1}},
            {"known": {"a": "1"}, "other": {"c": 1}},
        ),
        (
            {
                "type": "object",
                "additionalProperties": {"type": "object", "properties": {"a": TEXT}},
            },
            {"x": {"a": "1", "b": "2"}},
            {"x": {"a": "1"}},
        ),
        (
            {"type": "array", "items": {"type": "object", "properties": {"a": TEXT}}},
            [{"a": "1", "b": "2"}],
            [{"a": "1"}],
        ),
        (
            {
                "type": "object",
                "x-kubernetes-embedded-resource": True,
                "properties": {"spec": TEXT},
            },
            {"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}, "spec": "s", "b": 1},
            {"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}, "spec": "s"},
        ),
    ],
)
def test_unknown_fields_are_pruned(schema: object, given: object, kept: object) -> None:
    admitted = validator(x=schema).admit(gadget(x=given), None)

    assert admitted["spec"] == {"x": kept}


@pytest.mark.parametrize(
    ("schema", "given", "made"),
    [
        ({"type": "string", "default": "d"}, {}, {"x": "d"}),
        ({"type": "string", "default": "d"}, {"x": "e"}, {"x": "e"}),
        ({"type": "string", "default": "d"}, {"x": None}, {"x": "d"}),
        ({"type": "string"}, {"x": None}, {}),
        ({"type": "string", "nullable": True, "default": "d"}, {"x": None}, {"x": None}),
        (
            {
                "type": "object",
                "default": {},
                "properties": {"y": {"type": "integer", "default": 3}},
            },
            {},
            {"x": {"y": 3}},
        ),
        (
            {
                "type": "array",
                "items": {"type": "object", "properties": {"y": {"type": "integer", "default": 3}}},
            },
            {"x": [{}, {"y": 4}]},
            {"x": [{"y": 3}, {"y": 4}]},
        ),
    ],
)
def test_defaults_fill_the_gaps(schema: object, given: JsonObject, made: object) -> None:
    admitted = validator(x=schema).admit(gadget(**given), None)

    assert admitted["spec"] == made


def test_the_metadata_is_left_alone() -> None:
    obj = {**gadget(), "metadata": {"name": "g", "labels": {"a": "b"}, "uid": "1"}}

    admitted = validator().admit(obj, None)

    assert admitted["metadata"] == obj["metadata"]


def test_a_definition_without_a_schema_keeps_everything() -> None:
    obj = gadget(a={"b": [1, None]})

    admitted = CrdValidator(definition_of(None)).admit(obj, None)

    assert admitted == obj


def test_the_given_object_is_not_changed() -> None:
    obj = base_of(NODE_POOL)
    copy = deepcopy(obj)

    OURS[NODE_POOL].admit(obj, None)

    assert obj == copy


def test_defaults_are_not_shared_between_objects() -> None:
    first = OURS[NODE_POOL].admit(base_of(NODE_POOL), None)
    first["spec"]["disruption"]["budgets"].clear()

    second = OURS[NODE_POOL].admit(base_of(NODE_POOL), None)

    assert second["spec"]["disruption"]["budgets"] == [{"nodes": "10%"}]


def test_a_pool_gets_the_defaults_of_karpenter() -> None:
    admitted = OURS[NODE_POOL].admit(base_of(NODE_POOL), None)

    assert admitted["spec"]["disruption"] == {
        "budgets": [{"nodes": "10%"}],
        "consolidateAfter": "0s",
        "consolidationPolicy": "WhenEmptyOrUnderutilized",
    }
    assert admitted["spec"]["template"]["spec"]["expireAfter"] == "720h"


def test_a_kwok_node_class_is_ready_from_the_start() -> None:
    admitted = OURS[KWOK_NODE_CLASS].admit(base_of(KWOK_NODE_CLASS), None)

    assert [each["status"] for each in admitted["status"]["conditions"]] == ["True"]


def test_the_metadata_service_of_ec2_is_guarded_by_default() -> None:
    admitted = OURS[EC2_NODE_CLASS].admit(base_of(EC2_NODE_CLASS), None)

    assert admitted["spec"]["metadataOptions"] == {
        "httpEndpoint": "enabled",
        "httpProtocolIPv6": "disabled",
        "httpPutResponseHopLimit": 1,
        "httpTokens": "required",
    }
