from hypothesis import given
from hypothesis import strategies as st

from karpy.codec.fields import JsonObject
from karpy.codec.patches.merge import diff, merge

LEAVES = st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2)
TREES = st.recursive(
    st.dictionaries(st.sampled_from("abcd"), LEAVES, max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("abcd"), LEAVES | inner, max_size=3),
    max_leaves=8,
)


def test_objects_merge_lists_are_replaced_and_null_removes() -> None:
    target = {"a": {"b": 1, "c": 2}, "d": [1, 2], "e": 5}

    assert merge(target, {"a": {"b": None, "x": 3}, "d": [3], "e": None}) == {
        "a": {"c": 2, "x": 3},
        "d": [3],
    }


def test_unchanged_parts_are_shared() -> None:
    target: JsonObject = {"spec": {"a": 1}, "status": {"b": {"c": 2}, "d": 3}}

    merged = merge(target, {"status": {"d": 4}})

    assert merged["spec"] is target["spec"]
    assert merged["status"]["b"] is target["status"]["b"]
    assert target["status"]["d"] == 3


def test_nulls_in_something_new_are_left_out() -> None:
    assert merge({}, {"a": {"b": None, "c": 1}}) == {"a": {"c": 1}}


def test_an_object_takes_the_place_of_anything_else() -> None:
    assert merge({"a": 1, "b": [1]}, {"a": {"x": 1}, "b": {"y": 2}}) == {
        "a": {"x": 1},
        "b": {"y": 2},
    }


@given(TREES, TREES)
def test_a_difference_leads_from_one_object_to_the_other(one: JsonObject, two: JsonObject) -> None:
    assert merge(one, diff(one, two)) == two


@given(TREES, TREES)
def test_merging_twice_is_merging_once(one: JsonObject, two: JsonObject) -> None:
    merged = merge(one, two)

    assert merge(merged, two) == merged
