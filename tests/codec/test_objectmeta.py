import pytest

from karpy.codec.objectmeta import metadata_faults
from tests.codec.plain import Json, Value

KEY_HINT = "use letters, digits, `-`, `_` and `.`, as in `example.com/name`"
NAME_HINT = "use lower-case letters, digits, `-` and `.`, as in `web-1`"


@pytest.mark.parametrize(
    "meta",
    [
        {"name": "a"},
        {"name": "a.b", "namespace": "shop", "labels": {"example.com/x": ""}},
        {"generateName": "a-", "annotations": {"Example.com/X": "any text"}},
        {"name": "a", "labels": None, "annotations": None},
    ],
)
def test_valid_metadata_passes(meta: Json) -> None:
    assert list(metadata_faults({"metadata": meta})) == []


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        ({}, ("metadata.name", "is missing", "add `name`")),
        (
            {"name": "a"},
            ("name", "stands outside `metadata`", "indent it: it belongs below `metadata`"),
        ),
        (
            {"metadata": []},
            ("metadata", "is a list, not an object", "write it as `name: value` pairs"),
        ),
        (
            {"metadata": {"name": "A b"}},
            ("metadata.name", "is `A b`, which is no name", NAME_HINT),
        ),
        ({"metadata": {"name": 5}}, ("metadata.name", "is `5`, not text", 'quote it: `"5"`')),
        (
            {"metadata": {"name": "a", "namespace": "a.b"}},
            ("metadata.namespace", "is `a.b`, which is no name", NAME_HINT),
        ),
        (
            {"metadata": {"name": "a" * 254}},
            ("metadata.name", "is longer than 253 characters", "choose a shorter one"),
        ),
        (
            {"metadata": {"name": "a", "labels": {"a b": "c"}}},
            ("metadata.labels[a b]", "is no label key", KEY_HINT),
        ),
        (
            {"metadata": {"name": "a", "annotations": {"a b": "c"}}},
            ("metadata.annotations[a b]", "is `a b`, which is no key", KEY_HINT),
        ),
        (
            {"metadata": {"name": "a", "annotations": {"a": True}}},
            ("metadata.annotations[a]", "is `true`, not text", 'quote it: `"true"`'),
        ),
        (
            {"metadata": {"name": "a", "annotation": {}}},
            ("metadata.annotation", "is no field of metadata", "write `annotations`"),
        ),
        (
            {"metadata": {"name": "a", "team": "b"}},
            (
                "metadata.team",
                "is no field of metadata",
                "indent it below `labels`, if `team` is to be a label; otherwise remove it",
            ),
        ),
    ],
)
def test_a_fault_of_metadata_is_named_with_a_hint(
    obj: Value, expected: tuple[str, str, str]
) -> None:
    faults = [(each.path, each.problem, each.hint) for each in metadata_faults(obj)]

    assert faults == [expected]
