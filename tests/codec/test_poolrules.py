import pytest

from karpy.codec.fields import Fields
from karpy.codec.poolrules import (
    find_faults,
    find_overlay_faults,
    why_not_ready,
)
from karpy.model.labels import ARCH, CAPACITY_TYPE, HOSTNAME, NODE_POOL, WELL_KNOWN
from tests.codec.plain import Json, plain_pool, wants

REQUIREMENTS = "spec.template.spec.requirements"
LABELS = "spec.template.metadata.labels"


@pytest.mark.parametrize(
    "obj",
    [
        {},
        plain_pool("p", wants(CAPACITY_TYPE, "In", "spot"), wants(ARCH, "In", "arm64")),
        plain_pool(labels={"team": "a", "example.com/x": ""}),
        plain_pool(replicas=2, limits={"nodes": 3}),
        plain_pool("p", wants("my.kubernetes.io/x", "Exists")),
    ],
)
def test_a_valid_pool_is_ready(obj: Json) -> None:
    assert why_not_ready(Fields(obj), WELL_KNOWN) is None


def taint(key: str, value: str = "") -> Json:
    return {"key": key, "value": value, "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (
            plain_pool("p", wants(CAPACITY_TYPE, "In", "sopt")),
            f"`{REQUIREMENTS}[0].values` is [sopt]; too few of them exist",
        ),
        (
            plain_pool("p", wants(CAPACITY_TYPE, "In", "spot", "x", minValues=2)),
            f"`{REQUIREMENTS}[0].values` is [spot, x]; too few of them exist",
        ),
        (
            plain_pool("p", wants("a", "In", "b c")),
            f"`{REQUIREMENTS}[0].values[0]` is `b c`, which is no label value",
        ),
        (
            plain_pool("p", wants("karpenter.sh/x", "Exists")),
            f"`{REQUIREMENTS}[0].key` is `karpenter.sh/x`, which may not be asked for",
        ),
        (
            plain_pool(labels={NODE_POOL: "x"}),
            f"`{LABELS}[{NODE_POOL}]` is `{NODE_POOL}`, which may not be asked for",
        ),
        (
            plain_pool(taints=[taint("a"), taint("b")], startupTaints=[taint("a", "x")]),
            "`spec.template.spec.startupTaints[0]` repeats a:NoSchedule",
        ),
        (
            plain_pool(taints=[taint("a", "b c")]),
            "`spec.template.spec.taints[0].value` is `b c`, which is no taint value",
        ),
    ],
)
def test_a_fault_that_only_karpenter_finds_makes_a_pool_not_ready(obj: Json, expected: str) -> None:
    assert str(why_not_ready(Fields(obj), WELL_KNOWN)) == expected


def test_every_fault_of_a_pool_is_found() -> None:
    obj = plain_pool(
        "p",
        wants("karpenter.sh/x", "In", "b c"),
        wants("a b", "Almost"),
        wants("size", "Gt", "many"),
        wants("team", "In"),
        wants(CAPACITY_TYPE, "In", "spot", minValues=2),
        labels={HOSTNAME: "b c", "team": "a"},
        taints=[taint("a b"), {"key": "a", "value": "b c", "effect": "Never"}],
        startupTaints=[taint("a b")],
    )

    faults = [str(each) for each in find_faults(Fields(obj), WELL_KNOWN)]

    taints = "spec.template.spec.taints"
    startup = "spec.template.spec.startupTaints"
    assert faults == [
        f"`{LABELS}[{HOSTNAME}]` is `b c`, which is no label value",
        f"`{LABELS}[{HOSTNAME}]` is `{HOSTNAME}`, which may not be asked for",
        f"`{taints}[0].key` is `a b`, which is no label key",
        f"`{taints}[1].value` is `b c`, which is no taint value",
        f"`{taints}[1].effect` is `Never`",
        f"`{startup}[0].key` is `a b`, which is no label key",
        f"`{startup}[0]` repeats a b:NoSchedule",
        f"`{REQUIREMENTS}[0].key` is `karpenter.sh/x`, which may not be asked for",
        f"`{REQUIREMENTS}[0].values[0]` is `b c`, which is no label value",
        f"`{REQUIREMENTS}[1].key` is `a b`, which is no label key",
        f"`{REQUIREMENTS}[2].values` is [many], which is no bound",
        f"`{REQUIREMENTS}[3].values` is empty",
        f"`{REQUIREMENTS}[4].values` is [spot]; too few of them exist",
        f"`{REQUIREMENTS}[4].minValues` is 2, more than there are values",
    ]


def test_some_unknown_capacity_types_next_to_known_ones_are_fine() -> None:
    obj = plain_pool("p", wants(CAPACITY_TYPE, "In", "spot", "barter"))

    assert why_not_ready(Fields(obj), WELL_KNOWN) is None


def test_providers_may_open_labels_of_their_own() -> None:
    obj = plain_pool("p", wants("kwok.karpenter.sh/x", "Exists"))

    assert why_not_ready(Fields(obj), WELL_KNOWN | {"kwok.karpenter.sh/x"}) is None


@pytest.mark.parametrize(
    ("entry", "path"),
    [
        (wants("a", "NotIn"), "spec.requirements[0].values"),
        (wants(HOSTNAME, "In", "x"), "spec.requirements[0].key"),
    ],
)
def test_an_overlay_obeys_the_same_rules(entry: Json, path: str) -> None:
    fields = Fields({"spec": {"requirements": [entry]}})

    assert {each.path for each in find_overlay_faults(fields, WELL_KNOWN)} == {path}


def test_an_overlay_may_be_about_some_pools() -> None:
    obj = {"spec": {"requirements": [wants(NODE_POOL, "In", "web")]}}

    assert list(find_overlay_faults(Fields(obj), WELL_KNOWN)) == []
