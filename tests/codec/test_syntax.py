import pytest

from karpy.codec.syntax import is_label_key, is_label_value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("app", True),
        ("example.com/app", True),
        ("a", True),
        ("A_b.c-9", True),
        ("x" * 63, True),
        ("x" * 64, False),
        ("", False),
        ("-a", False),
        ("a-", False),
        ("a b", False),
        ("/a", False),
        ("a/", False),
        ("a/b/c", False),
        ("Example.com/a", False),
        (f"{'x' * 254}/a", False),
        ("é", False),
        ("a\n", False),
    ],
)
def test_a_label_key_is_a_name_with_or_without_a_domain(text: str, *, expected: bool) -> None:
    assert is_label_key(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", True), ("a.b", True), ("x" * 63, True), ("x" * 64, False), ("a b", False), ("-", False)],
)
def test_a_label_value_is_short_and_plain(text: str, *, expected: bool) -> None:
    assert is_label_value(text) is expected
