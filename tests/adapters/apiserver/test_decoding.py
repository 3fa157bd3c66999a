import pytest

from karpy.adapters.apiserver.decoding import Decoder, Mismatch
from karpy.adapters.apiserver.shapes import SCALARS, inner, shape_of, shapes
from karpy.model.kinds import BUILT_IN, Kind

DEPLOYMENT = shapes()["apps.v1.Deployment"]
POD = shapes()["core.v1.Pod"]


def container(**fields: object) -> dict[str, object]:
    return {"spec": {"containers": [{"name": "a", **fields}]}}


@pytest.mark.parametrize("kind", BUILT_IN, ids=str)
def test_every_built_in_kind_has_a_shape(kind: Kind) -> None:
    assert shape_of(kind) is not None


def test_types_of_fields_are_known() -> None:
    types = {inner(field.type) for shape in shapes().values() for field in shape.fields.values()}
    inlined = {name for shape in shapes().values() for name in shape.inlined.values()}

    assert (types - SCALARS) | inlined <= set(shapes())


def test_numbers_of_protobuf_are_unique() -> None:
    doubled = [
        shape.name
        for shape in shapes().values()
        if len(numbers := [each.number for each in shape.fields.values() if each.number])
        + len(shape.inlined)
        != len({*numbers, *shape.inlined})
    ]

    assert doubled == []


def test_unknown_fields_are_dropped_and_noted_in_the_order_they_come() -> None:
    decoder = Decoder()

    read = decoder.read({"spec": {"replicas": 1, "repl": 2}, "foo": {}}, DEPLOYMENT)

    assert read == {"spec": {"replicas": 1}}
    assert decoder.unknown == ["spec.repl", "foo"]


def test_null_is_dropped() -> None:
    read = Decoder().read({"metadata": {"creationTimestamp": None}, "spec": None}, DEPLOYMENT)

    assert read == {"metadata": {}}


def test_null_in_a_patch_deletes() -> None:
    patch = {"spec": {"replicas": None, "template": {"$patch": "replace"}}}

    assert Decoder(is_patch=True).read(patch, DEPLOYMENT) == patch


@pytest.mark.parametrize(
    ("field", "value", "read"),
    [
        ("resources", {"requests": {"cpu": 2}}, {"requests": {"cpu": "2"}}),
        ("resources", {"requests": {"cpu": 0.5}}, {"requests": {"cpu": "0.5"}}),
        ("resources", {"limits": {"memory": "1Gi"}}, {"limits": {"memory": "1Gi"}}),
        ("livenessProbe", {"httpGet": {"port": "http"}}, {"httpGet": {"port": "http"}}),
        ("livenessProbe", {"httpGet": {"port": 80}}, {"httpGet": {"port": 80}}),
        ("stdin", True, True),
        ("args", ["a"], ["a"]),
    ],
)
def test_values_fit_their_types(field: str, value: object, read: object) -> None:
    assert Decoder().read(container(**{field: value}), POD) == container(**{field: read})


@pytest.mark.parametrize(
    ("obj", "problem"),
    [
        ([], "cannot unmarshal array into Go value of type v1.Pod"),
        ({"spec": []}, "array into Go struct field Pod.spec of type v1.PodSpec"),
        (
            {"spec": {"containers": "x"}},
            "string into Go struct field PodSpec.spec.containers of type []v1.Container",
        ),
        (
            container(args="x"),
            "string into Go struct field Container.spec.containers.args of type []string",
        ),
        (
            container(stdin=1),
            "number into Go struct field Container.spec.containers.stdin of type bool",
        ),
        (
            container(image={}),
            "object into Go struct field Container.spec.containers.image of type string",
        ),
        ({"spec": {"priority": 2**31}}, "of type int32"),
        ({"spec": {"priority": 1.5}}, "number 1.5 into"),
        ({"spec": {"priority": True}}, "bool into"),
        ({"spec": {"nodeSelector": []}}, "of type map[string]string"),
        (container(resources={"requests": {"cpu": "much"}}), "quantities must match"),
        (container(resources={"requests": {"cpu": True}}), "quantities must match"),
        (container(livenessProbe={"httpGet": {"port": 1.5}}), "of type int32"),
        ({"metadata": {"creationTimestamp": "today"}}, 'parsing time "today"'),
        ({"metadata": {"creationTimestamp": "2026-01-01"}}, "parsing time"),
        ({"metadata": {"managedFields": [{"fieldsV1": []}]}}, "of type map[string]interface {}"),
    ],
)
def test_values_of_the_wrong_type_have_the_message_of_go(obj: object, problem: str) -> None:
    with pytest.raises(Mismatch) as raised:
        Decoder().read(obj, POD)

    assert problem in str(raised.value)
