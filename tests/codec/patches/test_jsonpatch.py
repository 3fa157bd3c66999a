import pytest

from karpy.codec.fields import JsonObject
from karpy.codec.patches.jsonpatch import apply_json_patch
from karpy.errors import Invalid

TARGET: JsonObject = {"a": {"b": [1, 2, 3], "c/d": 1, "e~f": 2}, "flag": True, "n": None}


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ({"op": "add", "path": "/x", "value": 1}, {**TARGET, "x": 1}),
        ({"op": "replace", "path": "/flag", "value": False}, {**TARGET, "flag": False}),
        ({"op": "test", "path": "/flag", "value": True}, TARGET),
        ({"op": "test", "path": "/missing", "value": None}, TARGET),
        ({"op": "copy", "from": "/flag", "path": "/x"}, {**TARGET, "x": True}),
    ],
)
def test_an_operation_does_what_it_says(operation: JsonObject, expected: JsonObject) -> None:
    assert apply_json_patch(TARGET, [operation]) == expected


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ({"op": "add", "path": "/a/b/-", "value": 4}, [1, 2, 3, 4]),
        ({"op": "add", "path": "/a/b/0", "value": 0}, [0, 1, 2, 3]),
        ({"op": "add", "path": "/a/b/3", "value": 4}, [1, 2, 3, 4]),
        ({"op": "replace", "path": "/a/b/1", "value": 9}, [1, 9, 3]),
        ({"op": "remove", "path": "/a/b/0"}, [2, 3]),
        ({"op": "move", "from": "/a/b/0", "path": "/a/b/2"}, [2, 3, 1]),
    ],
)
def test_lists_are_addressed_by_index(operation: JsonObject, expected: list[int]) -> None:
    assert apply_json_patch(TARGET, [operation])["a"]["b"] == expected


def test_operations_follow_each_other() -> None:
    patch: list[JsonObject] = [
        {"op": "add", "path": "/x", "value": {}},
        {"op": "add", "path": "/x/y", "value": [1]},
        {"op": "remove", "path": "/x/y/0"},
        {"op": "replace", "path": "/a/c~1d", "value": 7},
        {"op": "remove", "path": "/a/e~0f"},
    ]

    result = apply_json_patch(TARGET, patch)

    assert result["x"] == {"y": []}
    assert result["a"] == {"b": [1, 2, 3], "c/d": 7}
    assert TARGET["a"]["c/d"] == 1


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/missing"},
        {"op": "replace", "path": "/missing", "value": 1},
        {"op": "add", "path": "/missing/x", "value": 1},
        {"op": "add", "path": "/a/b/9", "value": 1},
        {"op": "add", "path": "/a/b/01", "value": 1},
        {"op": "add", "path": "/flag/x", "value": 1},
        {"op": "remove", "path": "/flag/x"},
        {"op": "remove", "path": ""},
        {"op": "add", "path": "x", "value": 1},
        {"op": "add", "path": "/x"},
        {"op": "add", "value": 1},
        {"op": "jump", "path": "/x"},
        {"op": "test", "path": "/flag", "value": 1},
        {"op": "test", "path": "/flag", "value": False},
        {"op": "copy", "from": "/missing", "path": "/x"},
        {"op": "add", "path": "", "value": 5},
    ],
)
def test_an_impossible_operation_is_refused(operation: JsonObject) -> None:
    with pytest.raises(Invalid, match="the server rejected our request") as error:
        apply_json_patch(TARGET, [operation])

    assert error.value.status == 422
