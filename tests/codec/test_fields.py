from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karpy.codec.fields import FieldInvalid, Fields, read_amounts
from karpy.model.resources import parse_quantity


def fault(read: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(FieldInvalid) as raised:
        read()
    return raised.value.path, raised.value.problem


def test_a_path_leads_to_a_field() -> None:
    root = Fields({"spec": {"containers": [{}, {"name": 5}]}})
    second = list(root.child("spec").children("containers"))[1]

    assert fault(lambda: second.text("name")) == ("spec.containers[1].name", "is `5`, not text")


def test_null_counts_as_absent() -> None:
    fields = Fields({"a": None})

    assert (fields.text("a"), fields.items("a"), fields.number("a", 7), fields.labels("a")) == (
        "",
        [],
        7,
        {},
    )


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (None, "is nothing, not an object"),
        (True, "is `true`, not an object"),
        (1.5, "is `1.5`, not an object"),
        ("x", "is the text `x`, not an object"),
        ([], "is a list, not an object"),
        (b"", "is a bytes, not an object"),
    ],
)
def test_a_value_that_is_no_object_is_named(value: object, problem: str) -> None:
    assert fault(lambda: Fields(value)) == ("", problem)


def test_long_texts_are_shown_in_part() -> None:
    problem = fault(lambda: Fields("x" * 100))[1]

    assert problem == f"is the text `{'x' * 60}...`, not an object"


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (5, 'quote it: `"5"`'),
        (True, 'quote it: `"true"`'),
        ([5], "write one text"),
        ({"a": 5}, "write one text"),
    ],
)
def test_a_list_is_not_to_be_quoted(value: object, hint: str) -> None:
    with pytest.raises(FieldInvalid) as raised:
        Fields({"a": value}).text("a")

    assert raised.value.hint == hint


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        (lambda f: f.child("n"), ("n", "is `1`, not an object")),
        (lambda f: f.items("n"), ("n", "is `1`, not a list")),
        (lambda f: f.needed("none"), ("none", "is missing")),
        (lambda f: f.texts("list"), ("list[1]", "is `2`, not text")),
        (lambda f: f.number("t"), ("t", "is the text `x`, not a whole number")),
        (lambda f: f.number("yes"), ("yes", "is `true`, not a whole number")),
        (lambda f: f.flag("n"), ("n", "is `1`, not true or false")),
        (lambda f: f.choice("t", {"a", "b"}), ("t", "is `x`")),
        (lambda f: f.choice("none", {"a", "b"}), ("none", "is missing")),
        (lambda f: f.labels("n"), ("n", "is `1`, not an object")),
        (lambda f: f.labels("map"), ("map[a]", "is `1`, not text")),
        (lambda f: f.text("list"), ("list", "is a list, not text")),
        (lambda f: f.labels("odd"), ("odd", "has the key `5`, not text")),
        (lambda f: f.time("t"), ("t", "is `x`, not a time")),
        (lambda f: f.time("local"), ("local", "is `2026-01-31T12:00:00`, not a time")),
        (lambda f: f.fail("[k]", "is bad", "mend it"), ("[k]", "is bad")),
    ],
)
def test_a_wrong_value_is_reported_with_its_path(
    read: Callable[[Fields], object], expected: tuple[str, str]
) -> None:
    fields = Fields(
        {
            "n": 1,
            "t": "x",
            "yes": True,
            "list": ["a", 2],
            "map": {"a": 1},
            "odd": {5: "a"},
            "local": "2026-01-31T12:00:00",
        }
    )

    assert fault(lambda: read(fields)) == expected


def test_a_hint_lists_the_allowed_words() -> None:
    with pytest.raises(FieldInvalid) as raised:
        Fields({"t": "x"}).choice("t", {"", "b", "a"})

    assert raised.value.hint == "use one of: a, b"


def test_a_fault_can_have_a_path_from_an_enclosing_object() -> None:
    inner = FieldInvalid("spec.x", "is bad", "mend it")

    assert str(inner.within("items[1]")) == "`items[1].spec.x` is bad"
    assert inner.within("") is inner
    assert FieldInvalid("", "is bad", "mend it").within("a").path == "a"


def test_a_time_is_read_with_its_zone() -> None:
    assert Fields({"t": "2026-01-31T12:00:00Z"}).time("t") == datetime(2026, 1, 31, 12, tzinfo=UTC)


def test_numbers_stand_for_their_decimal_text() -> None:
    amounts = Fields({"r": {"cpu": 0.5, "memory": 1024, "pods": "1k"}}).quantities("r")

    assert amounts == {"cpu": 500, "memory": 1024, "pods": 1000}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("-1", "is `-1`, less than nothing"),
        (-0.5, "is `-0.5`, less than nothing"),
        ("1 Gi", "is `1 Gi`, not a quantity"),
        ("", "is ``, not a quantity"),
        (True, "is `true`, not a quantity"),
        ([], "is a list, not a quantity"),
        (float("nan"), "is `nan`, not a quantity"),
    ],
)
def test_a_bad_quantity_is_named(value: object, problem: str) -> None:
    fields = Fields({"r": {"cpu": "1", "memory": value}})

    assert fault(lambda: fields.quantities("r")) == ("r.memory", problem)


def test_quantities_must_be_an_object() -> None:
    assert fault(lambda: Fields({"r": "1"}).quantities("r")) == (
        "r",
        "is the text `1`, not an object",
    )


quantity_texts = st.from_regex(r"[0-9]{1,21}(|m|k|M|Ki|Mi|Gi|Ti|Pi)", fullmatch=True)


@given(quantity_texts, st.sampled_from(["cpu", "memory", "requests.cpu", "example.com/gpu"]))
def test_quantities_are_read_as_the_model_reads_them(text: str, resource: str) -> None:
    """Usual quantities are read by a faster function, which must give the same amounts."""
    assert read_amounts({resource: text}) == {resource: parse_quantity(text, resource)}
