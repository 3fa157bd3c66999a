import pytest

from karpy.codec.fields import JsonObject
from karpy.codec.labelselectors import (
    ANY_LABELS,
    label_selector_text,
    labels_of,
    matching,
    read_label_selector,
    selector_of,
    selector_of_map,
)
from karpy.errors import BadRequest

WEB = {"app": "web", "tier": "front", "size": "5", "empty": ""}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "app",
        "app=web",
        "app==web",
        " app = web ",
        "app=web,tier=front",
        "app!=db",
        "other!=db",
        "app in (db, web)",
        "other notin (a,b)",
        "app notin (a)",
        "!other",
        "! other",
        "app,!other,tier in (front)",
        "empty=",
        "empty=,app=web",
        "empty in (,x)",
        "size>4",
        "size<6",
    ],
)
def test_a_selector_matches_what_it_means(text: str) -> None:
    assert read_label_selector(text).matches(WEB)


@pytest.mark.parametrize(
    "text",
    [
        "other",
        "app=db",
        "app!=web",
        "app in (db)",
        "app notin (web,db)",
        "!app",
        "app=web,tier=back",
        "other=",
        "size>5",
        "app>5",
        "other<5",
    ],
)
def test_a_selector_matches_nothing_else(text: str) -> None:
    assert not read_label_selector(text).matches(WEB)


def test_no_labels_are_empty_labels() -> None:
    assert read_label_selector("!app").matches(None)
    assert ANY_LABELS.matches(None)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("app=web,", "expected: identifier after ','"),
        ("=web", "found '=', expected: !, identifier, or 'end of string'"),
        ("app web", "found 'web', expected: in, notin, =, ==, !=, gt, lt"),
        ("app=web tier=front", "found 'tier', expected: ',' or 'end of string'"),
        ("app=(web)", r"found '\(', expected: identifier"),
        ("app in web", r"expected: '\('"),
        ("app in (web", r"expected: ',' or '\)'"),
        ("!", "expected: identifier"),
        ("a b/c d", "expected"),
        ("-app=web", "unable to parse requirement"),
        ("app=-web", "Invalid value"),
        ("app in (-web)", "Invalid value"),
        ("size>big", "the value must be an integer"),
    ],
)
def test_an_invalid_selector_is_refused(text: str, why: str) -> None:
    with pytest.raises(BadRequest, match=why) as error:
        read_label_selector(text)

    assert error.value.status == 400


def test_a_selector_object_is_read() -> None:
    selector = selector_of(
        {
            "matchLabels": {"app": "web"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["front", "back"]},
                {"key": "other", "operator": "DoesNotExist"},
            ],
        }
    )

    assert selector is not None
    assert selector.matches(WEB)
    assert not selector.matches({"app": "web"})


def test_no_selector_selects_nothing_and_an_empty_one_everything() -> None:
    assert selector_of(None) is None
    assert selector_of({}) == ANY_LABELS
    assert selector_of_map({}) is None
    assert selector_of_map(None) is None


def test_a_map_of_labels_is_a_selector_too() -> None:
    selector = selector_of_map({"app": "web"})

    assert selector == read_label_selector("app=web")


@pytest.mark.parametrize(
    "text", ["app=web", "app in (a,b)", "app notin (a,b)", "app", "!app", "a=b,c=d", "a>1", "a<1"]
)
def test_a_selector_can_be_written(text: str) -> None:
    assert label_selector_text(read_label_selector(text)) == text


def test_objects_are_picked_by_their_labels() -> None:
    web: JsonObject = {"metadata": {"labels": WEB}}
    none: JsonObject = {"metadata": {}}

    assert matching(read_label_selector("app=web"), [web, none]) == [web]
    assert (labels_of(web), labels_of(none)) == (WEB, {})
