from hypothesis import given
from hypothesis import strategies as st

from karpy.codec.fields import JsonObject
from karpy.codec.patches.applying import merge_applied, without_fields
from karpy.codec.patches.fieldsets import (
    all_fields,
    applied_fields,
    compare,
    difference,
    intersection,
    paths,
    union,
)
from karpy.codec.patches.schemas import PLAIN, schema_of
from karpy.model.kinds import POD, SERVICE

TREES = st.recursive(
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 2), max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("abc"), st.integers(0, 2) | inner, max_size=3),
    max_leaves=8,
)


def test_fields_are_named_by_their_keys() -> None:
    pod = {
        "metadata": {"finalizers": ["a.b/c"], "labels": {}},
        "spec": {
            "containers": [{"name": "a", "ports": [{"containerPort": 80}]}],
            "nodeSelector": {"a": "b"},
        },
    }

    assert applied_fields(pod, schema_of(POD)) == {
        "f:metadata": {"f:finalizers": {'v:"a.b/c"': {}}, "f:labels": {}},
        "f:spec": {
            "f:containers": {
                'k:{"name":"a"}': {
                    ".": {},
                    "f:name": {},
                    "f:ports": {
                        'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}
                    },
                }
            },
            "f:nodeSelector": {},
        },
    }


def test_paths_read_like_code() -> None:
    service = {
        "spec": {"ports": [{"port": 80, "protocol": "TCP"}]},
        "metadata": {"finalizers": ["x"]},
    }

    assert list(paths(applied_fields(service, schema_of(SERVICE)))) == [
        '.metadata.finalizers[="x"]',
        '.spec.ports[port=80,protocol="TCP"]',
        '.spec.ports[port=80,protocol="TCP"].port',
        '.spec.ports[port=80,protocol="TCP"].protocol',
    ]


def test_a_change_is_reported_by_field() -> None:
    schema = schema_of(POD)
    old = {"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b"}]}}
    new = {"spec": {"containers": [{"name": "a", "image": "2"}], "nodeName": "n"}}

    changed, removed = compare(old, new, schema)

    assert list(paths(changed)) == [".spec.nodeName", '.spec.containers[name="a"].image']
    assert list(paths(removed)) == [
        '.spec.containers[name="b"]',
        '.spec.containers[name="b"].name',
    ]


@given(TREES, TREES)
def test_sets_behave_like_sets(one: JsonObject, two: JsonObject) -> None:
    mine, its = all_fields(one, PLAIN), all_fields(two, PLAIN)

    def members(fields: JsonObject) -> set[str]:
        return set(paths(fields))

    assert members(union(mine, its)) == members(mine) | members(its)
    assert members(difference(mine, its)) == members(mine) - members(its)
    assert members(intersection(mine, its)) == members(mine) & members(its)


@given(TREES, TREES)
def test_a_comparison_finds_what_a_merge_did(one: JsonObject, two: JsonObject) -> None:
    merged = merge_applied(one, two, PLAIN)

    changed, _ = compare(one, merged, PLAIN)

    allowed = set(paths(all_fields(two, PLAIN)))
    assert set(paths(changed)) <= allowed


@given(TREES)
def test_without_its_fields_an_object_is_empty(one: JsonObject) -> None:
    assert without_fields(one, all_fields(one, PLAIN), {}, PLAIN) == {}


def test_live_items_stay_beside_their_neighbours() -> None:
    live = {"spec": {"containers": [{"name": "x"}, {"name": "a"}, {"name": "y"}]}}
    config = {"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b"}]}}

    merged = merge_applied(live, config, schema_of(POD))

    names = [each["name"] for each in merged["spec"]["containers"]]
    assert names == ["x", "a", "y", "b"]
