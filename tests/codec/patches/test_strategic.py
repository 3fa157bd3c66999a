import pytest

from karpy.codec.fields import JsonObject
from karpy.codec.patches.schemas import schema_of
from karpy.codec.patches.strategic import merge_strategically
from karpy.errors import ClusterError
from karpy.model.kinds import DEPLOYMENT, DISRUPTION_BUDGET, POD

POD_SCHEMA = schema_of(POD)


def patched_spec(spec: JsonObject, patch: JsonObject) -> JsonObject:
    result: JsonObject = merge_strategically({"spec": spec}, {"spec": patch}, POD_SCHEMA)["spec"]
    return result


def named(*names: str) -> list[JsonObject]:
    return [{"name": name} for name in names]


def test_items_of_a_list_merge_by_their_key() -> None:
    spec = {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]}

    result = patched_spec(spec, {"containers": [{"name": "b", "image": "2"}, {"name": "c"}]})

    assert result["containers"] == [
        {"name": "a", "image": "1"},
        {"name": "b", "image": "2"},
        {"name": "c"},
    ]


def test_lists_within_items_merge_too() -> None:
    spec = {"containers": [{"name": "a", "env": [{"name": "X", "value": "1"}]}]}
    patch = {"containers": [{"name": "a", "env": [{"name": "Y", "value": "2"}]}]}

    env = patched_spec(spec, patch)["containers"][0]["env"]

    assert env == [{"name": "Y", "value": "2"}, {"name": "X", "value": "1"}]


def test_a_list_without_keys_is_replaced() -> None:
    spec = {"tolerations": [{"key": "a"}]}

    assert patched_spec(spec, {"tolerations": [{"key": "b"}]}) == {"tolerations": [{"key": "b"}]}


def test_an_item_can_be_deleted() -> None:
    patch = {"containers": [{"name": "a", "$patch": "delete"}]}

    assert patched_spec({"containers": named("a", "b")}, patch) == {"containers": named("b")}


def test_a_list_can_be_replaced() -> None:
    patch = {"containers": [{"name": "c"}, {"$patch": "replace"}]}

    assert patched_spec({"containers": named("a", "b")}, patch) == {"containers": named("c")}


def test_an_object_can_be_replaced_or_emptied() -> None:
    spec = {"securityContext": {"a": 1}}

    replaced = patched_spec(spec, {"securityContext": {"$patch": "replace", "b": 2}})
    emptied = patched_spec(spec, {"securityContext": {"$patch": "delete"}})

    assert replaced == {"securityContext": {"b": 2}}
    assert emptied == {"securityContext": {}}


def test_conditions_merge_by_type() -> None:
    target = {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "x"}]}}
    patch = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}

    assert merge_strategically(target, patch, POD_SCHEMA)["status"]["conditions"] == [
        {"type": "Ready", "status": "True", "reason": "x"}
    ]


def test_finalizers_are_a_set() -> None:
    target = {"metadata": {"finalizers": ["a", "b"]}}

    added = merge_strategically(target, {"metadata": {"finalizers": ["b", "c"]}}, POD_SCHEMA)
    dropped = merge_strategically(
        target, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}, POD_SCHEMA
    )

    assert added["metadata"]["finalizers"] == ["a", "b", "c"]
    assert dropped["metadata"]["finalizers"] == ["b"]


def test_a_patch_may_order_a_list() -> None:
    patch = {"$setElementOrder/containers": named("b", "c", "a"), "containers": named("c")}

    result = patched_spec({"containers": named("a", "b")}, patch)

    assert result["containers"] == named("b", "c", "a")


def test_order_alone_reorders() -> None:
    patch = {"$setElementOrder/containers": named("b", "a")}

    result = patched_spec({"containers": named("a", "b", "x")}, patch)

    assert [each["name"] for each in result["containers"]] == ["b", "a", "x"]


def test_retained_keys_are_all_that_is_left() -> None:
    target = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}

    result = merge_strategically(target, patch, schema_of(DEPLOYMENT))

    assert result == {"spec": {"strategy": {"type": "Recreate"}}}


def test_the_selector_of_a_budget_is_replaced_whole() -> None:
    target = {"spec": {"selector": {"matchLabels": {"a": "1"}}}}
    patch = {"spec": {"selector": {"matchLabels": {"b": "2"}}}}

    assert merge_strategically(target, patch, schema_of(DISRUPTION_BUDGET)) == patch


def test_null_removes_and_directives_leave_no_trace() -> None:
    patch = {"nodeSelector": None, "volumes": [{"name": "v", "emptyDir": {"$patch": "replace"}}]}

    assert patched_spec({"nodeSelector": {"a": "b"}}, patch) == {
        "volumes": [{"name": "v", "emptyDir": {}}]
    }


def test_unchanged_parts_are_shared() -> None:
    target: JsonObject = {"spec": {"containers": named("a")}, "status": {}}

    result = merge_strategically(target, {"status": {"phase": "Running"}}, POD_SCHEMA)

    assert result["spec"] is target["spec"]
    assert target["status"] == {}


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        ({"containers": [{"image": "x"}]}, "does not contain declared merge key: name"),
        ({"containers": [None, {"$patch": "replace"}]}, "list element types are not identical"),
        ({"$patch": "explode"}, "Unknown patch type found: explode"),
        ({"$patch": []}, r"Unknown patch type found: \[\]"),
        ({"$retainKeys": [{}]}, r"invalid patch format of \$retainKeys"),
        ({"$setElementOrder/containers": 5}, "invalid patch format of"),
        (
            {"$setElementOrder/containers": [{"name": []}], "containers": [{"name": "a"}]},
            "is no name of an item",
        ),
    ],
)
def test_an_invalid_patch_is_refused(patch: JsonObject, why: str) -> None:
    with pytest.raises(ClusterError, match=why):
        patched_spec({}, patch)
