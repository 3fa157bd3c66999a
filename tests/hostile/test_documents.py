"""Documents that are made to hang, to fill the memory or to end a process that reads them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karpy.codec.documents import Document, read_documents
from karpy.codec.fields import JsonObject
from karpy.codec.limits import DEPTH_MAX, DIGITS_MAX, is_too_deep
from karpy.codec.patches.jsonpatch import apply_json_patch
from karpy.codec.validation.patterns import PatternInvalid, check_pattern, matches
from karpy.codec.yamltext import parse_yaml
from karpy.errors import Invalid
from tests.hostile.memory import at_most

DIGITS = "1" * 60_000
DEEP = f"is nested more than {DEPTH_MAX} deep"
VAST = f"holds a number of more than {DIGITS_MAX} digits"
ENDLESS = "repeats itself by aliases without end"
LAUGHS = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
)
MERGES = "\n".join(
    ["a0: &a0 {k0: 1}"]
    + [f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}], k{n}: 1}}" for n in range(1, 30)]
)
LONG_ALIASES = f"a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 1000)}]"
CHAIN = "\n".join(["a0: &a0 {k: 1}"] + [f"a{n}: &a{n} {{<<: *a{n - 1}}}" for n in range(1, 3000)])


def message_for(text: str) -> str:
    """Return what is wrong with the only document of a text."""
    (found,) = read_documents("f.yaml", text)
    return found.value if isinstance(found, Document) else f"{found.problem} ({found.code})"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (LAUGHS, f"{ENDLESS} in line 7"),
        (MERGES, f"{ENDLESS} in line 1"),
        (LONG_ALIASES, f"{ENDLESS} in line 2"),
        ("a: &a [*a]", f"{ENDLESS} in line 1"),
        (CHAIN, f"{DEEP} in line 127"),
        ("a: " + "[" * 300_000, f"{DEEP} in line 1"),
        ("a: " + "{a: " * 300_000, f"{DEEP} in line 1"),
        ("- " * 30_000 + "a", f"{DEEP} in line 1"),
        ("\n".join(" " * n + "a:" for n in range(3000)), f"{DEEP} in line 129"),
        ("[" * 200 + "]" * 200, f"{DEEP} in line 1"),
        ('{"a":\n' * 100_000 + "1" + "}" * 100_000, f"{DEEP} in line 129"),
        (f"a: 1\nb: {DIGITS}", f"{VAST} in line 2"),
        (f"a: 1\nb: 0x{DIGITS}", f"{VAST} in line 2"),
        (f"a: 1\nb: !!int {DIGITS}", f"{VAST} in line 2"),
        ("a: 1\nb: 1e9999", f"{VAST} in line 2"),
        ("a: 1\nb: -.inf", f"{VAST} in line 2"),
        (f'{{"a": 1,\n"b": {DIGITS}}}', f"{VAST} in line 2"),
        (f'{{"a": 1,\n"b": 1{"0" * 400}}}', f"{VAST} in line 2"),
        ('{"a": 1,\n"b": 1e9999}', f"{VAST} in line 2"),
        ("a: .nan", "is not YAML: `.nan` is no number in line 1"),
        ("a: !!timestamp x", "is not YAML: has the tag `!!timestamp` in line 1"),
        ("a: !!python/name:os x", "is not YAML: has the tag `!!python/name:os` in line 1"),
        ("a: {<<: [1]}", "is not YAML: `<<` takes a mapping, or a list of mappings in line 1"),
        ("? [a]\n: b", "is not YAML: has a key that is no text in line 1"),
        ("~: b", "is not YAML: has a key that is no text in line 1"),
    ],
)
def test_a_document_past_a_limit_is_an_error_with_its_line(text: str, problem: str) -> None:
    with at_most(megabytes=20):
        assert message_for(text) == f"{problem} (KP1001)"


@given(
    st.recursive(
        st.none() | st.text(alphabet='{}[]"\\a'),
        lambda parts: st.lists(parts) | st.dictionaries(st.text(alphabet='{}[]"\\a'), parts),
    ),
    st.integers(DEPTH_MAX - 3, DEPTH_MAX + 3),
)
def test_json_is_as_deep_as_its_value(value: object, levels: int) -> None:
    text = "[" * levels + json.dumps(value) + "]" * levels
    is_refused = DEEP in str(message_for(text))

    assert is_refused == is_too_deep(json.loads(text))


@pytest.mark.parametrize("anchors", [1, 400])
def test_aliases_share_what_they_stand_for(anchors: int) -> None:
    text = "a: &a {k: [1]}\nb: [" + ", ".join(["*a"] * anchors) + "]"

    assert parse_yaml(text) == {"a": {"k": [1]}, "b": [{"k": [1]}] * anchors}


def test_of_merged_mappings_the_first_counts_and_less_than_what_stands_there() -> None:
    text = "b: &b {x: 1, y: 2}\nc: &c {x: 3, z: 4}\na: {<<: [*b, *c], y: 9}"

    assert parse_yaml(text) == {
        "b": {"x": 1, "y": 2},
        "c": {"x": 3, "z": 4},
        "a": {"x": 1, "y": 9, "z": 4},
    }


def test_keys_are_text_as_in_json() -> None:
    assert parse_yaml("1: a\ntrue: b\n1.5: c\nd: e") == {
        "1": "a",
        "true": "b",
        "1.5": "c",
        "d": "e",
    }


@pytest.mark.parametrize(
    ("operations", "hint"),
    [
        (
            [
                {"op": "add", "path": "/x", "value": ["a" * 1000]},
                *({"op": "copy", "from": "/x", "path": "/x/-"} for _ in range(30)),
            ],
            "its copies add up to more than 3145728 bytes",
        ),
        (
            [
                {"op": "add", "path": "/x", "value": {}},
                *({"op": "add", "path": "/x" * n, "value": {}} for n in range(2, 120)),
                *({"op": "copy", "from": "/x", "path": f"{'/x' * 119}/y"} for _ in range(20)),
            ],
            "it copies what is nested more than 128 deep",
        ),
        ([{"op": "add", "path": "/x" * 100_000, "value": 1}], "`path` leads more than 128 deep"),
    ],
)
def test_a_patch_makes_no_more_than_a_server_takes(operations: list[JsonObject], hint: str) -> None:
    with at_most(megabytes=50), pytest.raises(Invalid) as raised:
        apply_json_patch({"data": {}}, operations)

    assert raised.value.hint.startswith(hint)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(?P<all>a+)+$", r"\A(a|a)*\z"])
def test_a_pattern_takes_as_long_as_its_text(pattern: str) -> None:
    assert matches(pattern, "a" * 100_000 + "!") is False


@pytest.mark.parametrize("pattern", ["(", "(?=a)b", r"(a)\1", "a++", "(?>a)", r"a\Z", "a{1001}"])
def test_a_pattern_that_go_does_not_know_is_refused(pattern: str) -> None:
    with pytest.raises(PatternInvalid):
        check_pattern(pattern)
