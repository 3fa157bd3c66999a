import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from karpy.codec.comments import Comment, Side
from karpy.codec.convert.conversion import Product
from karpy.codec.convert.yamltexts import to_yaml, write_products
from karpy.codec.documents import Document, read_documents
from karpy.codec.fields import JsonObject

TEXTS = st.text(max_size=20) | st.sampled_from(
    ["y", "1e3", "0o7", "12:30", "2026-01-01", "a\n\tb "]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


def read(text: str) -> list[object]:
    documents = read_documents("out.yaml", text)
    return [each.value for each in documents if isinstance(each, Document)]


@given(st.dictionaries(st.sampled_from("abc"), VALUES, min_size=1))
def test_a_written_object_reads_the_same(value: JsonObject) -> None:
    assert read(to_yaml([value, {"next": value}])) == [value, {"next": value}]


@pytest.mark.parametrize("text", ["y", "NO", "1e3", "0o17", "1_000", "2026-01-01", "10.0.0.1"])
def test_texts_that_look_like_something_else_are_quoted(text: str) -> None:
    assert to_yaml([{"a": text}]).strip().splitlines()[1] in {f'a: "{text}"', f"a: '{text}'"}


def test_scripts_stay_readable() -> None:
    script = "#!/bin/sh\ncat <<-EOF\n\tindented\nEOF\n"

    written = to_yaml([{"userData": script}])

    assert "  \tindented\n" in written
    assert yaml.safe_load(written) == {"userData": script}


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a: {b: 1}  # kept\n", "---\na: {b: 1}  # kept\n"),
        ("# above\n---\na: {b: 1}\n", "---\n# above\na: {b: 1}\n"),
        ("--- # beside\n\na: {b: 1}\n# below\n", "---\n# beside\n\na: {b: 1}\n# below\n"),
        ("--- {a: {b: 1}}\n", "--- {a: {b: 1}}\n"),
        ("a: {b: 1}", "---\na: {b: 1}\n"),
    ],
)
def test_an_unchanged_document_is_written_as_it_was(text: str, written: str) -> None:
    assert write_products([Product({"a": {"b": 1}}, text)]) == written


def test_a_text_that_ends_with_its_file_is_written_anew() -> None:
    """An added line end would be a part of the text."""
    assert write_products([Product({"a": "b"}, "a: |\n  b")]) == "---\na: b\n"


def test_an_object_is_written_with_its_comments() -> None:
    comments = (Comment(("a",), Side.ABOVE, "# why"),)

    assert (
        write_products([Product({"a": "\u00e9"}, comments=comments)]) == "---\n# why\na: \u00e9\n"
    )
    assert to_yaml([{"a": "\u00e9"}], in_ascii=True) == '---\na: "\\xE9"\n'
