import json

import msgspec
import pytest

from karpy.codec.fields import JsonObject
from karpy.codec.simplifying import LEVELS, simplify


def nested(levels: int, end: object = 1) -> str:
    return '{"f:a":' * levels + json.dumps(end) + "}" * levels


def pod(fields: str) -> bytes:
    return f'{{"metadata": {{"managedFields": {fields}, "name": "a"}}, "spec": [1]}}'.encode()


@pytest.mark.parametrize("levels", [LEVELS - 1, 4_900, 200_000])
def test_values_nested_too_deeply_become_null(levels: int) -> None:
    found: JsonObject = msgspec.json.decode(simplify(pod(nested(levels))))

    fields = json.loads(nested(LEVELS - 2, None))
    assert found == {"metadata": {"managedFields": fields, "name": "a"}, "spec": [1]}


def test_shallow_json_is_unchanged() -> None:
    plain = pod(nested(LEVELS - 2))

    assert simplify(plain) == plain


def test_brackets_and_quotes_within_text_are_text() -> None:
    text = b'{"a": "[[[{{\\"[", "b\\\\": ["]"]}'

    assert simplify(text) == text


def test_text_that_no_decoder_takes_is_replaced_as_the_api_server_would() -> None:
    text = b'{"a": "\xff \\ud800 \\ud83d\\ude00 \\\\ud800"}'

    assert msgspec.json.decode(simplify(text)) == {"a": "\ufffd \ufffd \U0001f600 \\ud800"}


@pytest.mark.parametrize(
    "broken", [b"", b'"', b'{"a": "', b'"\\', b"]]}}", b"[{", b'{"a": "b]', b"\\u"]
)
def test_a_text_that_is_no_json_is_unchanged(broken: bytes) -> None:
    assert simplify(broken) == broken


@pytest.mark.parametrize(
    "part", [b"[", b"]", b'"', b'\\"', b'"\\', b"\\ud800", b'"\\ud8', b'{"a":']
)
def test_a_million_repetitions_take_no_more_than_a_moment(part: bytes) -> None:
    """Quadratic time would be days."""
    assert len(simplify(part * 1_000_000)) >= 0
