import pytest

from karpy.codec.crds import read_overlay, read_pool
from karpy.codec.fields import FieldInvalid, Fields
from karpy.model.constraints import Taint
from karpy.model.labels import CAPACITY_TYPE
from karpy.model.pools import NodeOverlay, NodePool
from karpy.model.records import NodeClassRef
from karpy.model.requirements import Requirement, one_of
from tests.codec.plain import Json, plain_pool, wants


def fault(obj: Json) -> tuple[str, str]:
    with pytest.raises(FieldInvalid) as raised:
        read_pool(Fields(obj))
    return raised.value.path.removeprefix("spec."), raised.value.problem


def test_a_pool_is_read_whole() -> None:
    obj = plain_pool(
        "general",
        wants(CAPACITY_TYPE, "In", "spot", "on-demand", minValues=2),
        wants("gen", "Gt", "4"),
        weight=10,
        limits={"cpu": "100", "nodes": 5},
        labels={"team": "a"},
        taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}],
        startupTaints=[{"key": "s", "effect": "NoExecute"}],
    )
    obj["spec"]["template"]["metadata"]["annotations"] = {"note": "x"}

    assert read_pool(Fields(obj)) == NodePool(
        name="general",
        labels={"team": "a"},
        annotations={"note": "x"},
        requirements=(
            Requirement(CAPACITY_TYPE, frozenset({"spot", "on-demand"}), min_values=2),
            Requirement("gen", complement=True, gte=5),
        ),
        taints=(Taint("k", "NoSchedule", "v"),),
        startup_taints=(Taint("s", "NoExecute"),),
        node_class=NodeClassRef("example.com", "Class", "basic"),
        limits={"cpu": 100_000, "nodes": 5},
        weight=10,
    )


def test_a_bare_pool_is_ready() -> None:
    assert read_pool(Fields({"metadata": {"name": "p"}})) == NodePool("p")


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"type": "Ready", "status": "False"}, False),
        ({"type": "Ready", "status": "True"}, True),
        ({"type": "Ready", "status": "Unknown"}, True),
        ({"type": "NodeClassReady", "status": "False"}, True),
    ],
)
def test_a_pool_says_itself_whether_it_is_ready(condition: Json, *, expected: bool) -> None:
    assert read_pool(Fields(plain_pool(conditions=[condition]))).is_ready is expected


def test_the_node_class_of_an_older_pool_is_understood() -> None:
    obj = plain_pool()
    ref = {"apiVersion": "example.com/v1beta1", "kind": "Class", "name": "basic"}
    obj["spec"]["template"]["spec"]["nodeClassRef"] = ref

    assert read_pool(Fields(obj)).node_class == NodeClassRef("example.com", "Class", "basic")


def test_replicas_make_a_pool_static() -> None:
    assert read_pool(Fields(plain_pool(replicas=0))).is_static


def test_a_pool_may_be_deleting() -> None:
    obj = plain_pool()
    obj["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    assert read_pool(Fields(obj)).is_deleting


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (plain_pool(""), ("metadata.name", "is missing")),
        (plain_pool(weight=101), ("weight", "is 101")),
        (plain_pool(limits={"cpu": "-1"}), ("limits.cpu", "is `-1`, less than nothing")),
        (
            plain_pool("p", wants("a", "In", "x", minValues=2)),
            (
                "template.spec.requirements[0].minValues",
                "is 2, more than there are values",
            ),
        ),
        (
            plain_pool("p", wants("a", "Exists", minValues=51)),
            ("template.spec.requirements[0].minValues", "is 51"),
        ),
        (
            plain_pool("p", wants("a", "In")),
            ("template.spec.requirements[0].values", "is empty"),
        ),
        (
            plain_pool("p", wants("a", "Gte", "-1")),
            ("template.spec.requirements[0].values", "is [-1], which is no bound"),
        ),
    ],
)
def test_a_fault_of_a_pool_is_reported_with_its_path(obj: Json, expected: tuple[str, str]) -> None:
    assert fault(obj) == expected


def overlay(**spec: object) -> Json:
    return {"metadata": {"name": "o"}, "spec": {"requirements": [], **spec}}


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (
            overlay(requirements=[wants("a", "In", "b")], price="1.5", weight=10),
            NodeOverlay("o", (one_of("a", "b"),), price="1.5", weight=10),
        ),
        (overlay(priceAdjustment="-10%"), NodeOverlay("o", price_adjustment="-10%")),
        (overlay(priceAdjustment="+0.5"), NodeOverlay("o", price_adjustment="+0.5")),
        (
            overlay(capacity={"example.com/gpu": "2"}),
            NodeOverlay("o", capacity={"example.com/gpu": 2}),
        ),
    ],
)
def test_overlays_are_read_whole(obj: Json, expected: NodeOverlay) -> None:
    assert read_overlay(Fields(obj)) == expected


@pytest.mark.parametrize(
    ("obj", "path"),
    [
        (overlay(price="-1"), "spec.price"),
        (overlay(price="1", priceAdjustment="+1"), "spec.priceAdjustment"),
        (overlay(priceAdjustment="10%"), "spec.priceAdjustment"),
        (overlay(priceAdjustment="-101%"), "spec.priceAdjustment"),
        (overlay(capacity={"cpu": "1"}), "spec.capacity.cpu"),
        (overlay(weight=10_001), "spec.weight"),
    ],
)
def test_a_bad_overlay_is_named(obj: Json, path: str) -> None:
    with pytest.raises(FieldInvalid) as raised:
        read_overlay(Fields(obj))

    assert raised.value.path == path
