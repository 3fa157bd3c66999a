import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from karpy.codec.convert.yamltexts import to_yaml
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
def test_what_is_written_is_read_as_the_same(value: JsonObject) -> None:
    assert read(to_yaml([value, {"next": value}])) == [value, {"next": value}]


@pytest.mark.parametrize("text", ["y", "NO", "1e3", "0o17", "1_000", "2026-01-01", "10.0.0.1"])
def test_texts_that_look_like_something_else_are_quoted(text: str) -> None:
    assert to_yaml([{"a": text}]).strip().splitlines()[1] in {f'a: "{text}"', f"a: '{text}'"}


def test_scripts_stay_readable() -> None:
    script = "#!/bin/sh\ncat <<-EOF\n\tindented\nEOF\n"

    written = to_yaml([{"userData": script}])

    assert "  \tindented\n" in written
    assert yaml.safe_load(written) == {"userData": script}
