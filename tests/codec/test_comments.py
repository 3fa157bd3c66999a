import pytest
from hypothesis import given
from hypothesis import strategies as st

from karpy.codec.comments import Comment, Path, Side, comments_in, with_comments, within
from karpy.codec.convert.yamltexts import to_yaml
from karpy.codec.fields import JsonObject
from karpy.codec.yamltext import parse_yaml

POOL = """\
# Owned by shop.
--- # of 2023
apiVersion: v1  # of today
spec:
  # Cheap ones only.
  # And small ones.
  requirements:
  - key: a # kept
    values: [x, "y # no", # between
      z]  # last
    # - key: b
  script: |  # a script
    #!/bin/sh
    echo  # not a comment

    # nor this
  text: "one
    # two" # after
  plain: http://a#b
  # weight: 3
# The end.
"""


def found(text: str) -> list[tuple[str, Path, str]]:
    return [(each.side.name, each.path, each.text) for each in comments_in(text)]


def test_each_comment_is_about_a_field() -> None:
    spec = ("spec",)
    assert found(POOL) == [
        ("ABOVE", ("apiVersion",), "# Owned by shop."),
        ("ABOVE", ("apiVersion",), "# of 2023"),
        ("BESIDE", ("apiVersion",), "# of today"),
        ("ABOVE", (*spec, "requirements"), "# Cheap ones only."),
        ("ABOVE", (*spec, "requirements"), "# And small ones."),
        ("BESIDE", (*spec, "requirements", 0), "# kept"),
        ("BESIDE", (*spec, "requirements", 0, "values"), "# between"),
        ("BESIDE", (*spec, "requirements", 0, "values", 2), "# last"),
        ("BELOW", (*spec, "requirements", 0, "values"), "# - key: b"),
        ("BESIDE", (*spec, "script"), "# a script"),
        ("BESIDE", (*spec, "text"), "# after"),
        ("BELOW", (*spec, "plain"), "# weight: 3"),
        ("BELOW", (), "# The end."),
    ]


@pytest.mark.parametrize(
    ("text", "about"),
    [
        ("a:\n    # deep\n  b: 1\n", ("ABOVE", ("a", "b"), "# deep")),
        ("a:\n# shallow\n  b: 1\n", ("ABOVE", ("a", "b"), "# shallow")),
        ("a:\n- x\n# list\n- y\n", ("ABOVE", ("a", 1), "# list")),
        ("a: &a {b: 1}\nc: *a  # alias\n", ("BESIDE", ("c",), "# alias")),
        ("a:\n  b: 1\n  # below\n\nc: 2\n", ("BELOW", ("a", "b"), "# below")),
        ("a: >\n  folded\n\n# next\nc: 2\n", ("ABOVE", ("c",), "# next")),
        ("a: é ü # wide\n", ("BESIDE", ("a",), "# wide")),
        ("a: [\n  1,\n]  # close\n", ("BESIDE", ("a",), "# close")),
        ("- a\n# end\n", ("BELOW", (), "# end")),
    ],
)
def test_a_comment_is_about_the_nearest_field(text: str, about: tuple[str, Path, str]) -> None:
    assert found(text) == [about]


@pytest.mark.parametrize("text", ["a: 1\n", "# alone\n", "a: b#c\n", "a: '# no'\n"])
def test_a_text_without_a_comment_on_a_field_has_none(text: str) -> None:
    assert comments_in(text) == ()


def test_comments_go_back_to_their_fields() -> None:
    comments = [
        Comment(("b",), Side.ABOVE, "# above"),
        Comment(("b", 0), Side.BESIDE, "# beside"),
        Comment(("b", 0), Side.BESIDE, "# again"),
        Comment(("b", 0, "text"), Side.BELOW, "# below"),
        Comment((), Side.ABOVE, "# head"),
        Comment((), Side.BELOW, "# foot"),
        Comment(("long",), Side.BESIDE, "# in the middle"),
    ]

    text = with_comments('a: 1\nb:\n- text: |\n    x\nlong: "x\n  y"\n', comments)

    assert text == (
        "# head\na: 1\n# above\nb:\n# again\n- text: |  # beside\n    x\n  # below\n"
        '# in the middle\nlong: "x\n  y"\n# foot\n'
    )


def test_comments_on_a_part_have_paths_from_its_top() -> None:
    comments = [Comment(("items", 1, "a"), Side.ABOVE, "# a"), Comment(("x",), Side.ABOVE, "# x")]

    assert within(comments, ("items", 1)) == (Comment(("a",), Side.ABOVE, "# a"),)


paths = st.lists(st.sampled_from(["a", "b", 0, 1]), max_size=3).map(tuple)
words = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=9).map(
    "# {}".format
)
comments = st.lists(st.builds(Comment, paths, st.sampled_from(Side), words), max_size=6)
values = st.recursive(
    st.sampled_from([1, True, "x # y", "a\n# b\n", "c\n\n  # d", "", [], {}, "é\u2028\t"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from("ab"), values, min_size=1), comments)
def test_comments_change_no_value(value: JsonObject, about: list[Comment]) -> None:
    text = with_comments(to_yaml([value]).removeprefix("---\n"), about)

    assert parse_yaml(text) == value
    assert sorted(each.text for each in comments_in(text)) == sorted(each.text for each in about)
