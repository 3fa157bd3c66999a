"""JSON that a decoder refuses, changed so that the decoder accepts it."""

import re
from collections.abc import Iterator
from typing import Final

LEVELS: Final = 64
"""No field that Karpy reads is nested deeper."""
_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"|["\[\]{}]', re.DOTALL)
"""A string, a bracket, or the quote of a string without an end; matches without backtracking."""
_ESCAPE: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
"""An escaped character; the group is a lone surrogate."""
_OPENING: Final = frozenset(b"[{")
_CLOSING: Final = frozenset(b"]}")
_QUOTE: Final = b'"'
_NULL: Final = b"null"
_UNKNOWN: Final = rb"\ufffd"


def simplify(data: bytes) -> bytes:
    """
    Return JSON without constructs that decoders refuse; a text that is no JSON stays invalid.

    Values nested deeper than `LEVELS` become null; lone surrogates and bytes that are no UTF-8
    become U+FFFD. Takes linear time, and no recursion.
    """
    text = data.decode("utf-8", "replace").encode()
    parts: list[bytes] = []
    end = 0
    for start, stop, part in _replacements(text):
        parts += (text[end:start], part)
        end = stop
    return b"".join((*parts, text[end:]))


def _replacements(text: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Find the parts to replace: start, end and replacement."""
    depth = start = 0
    for token in _TOKEN.finditer(text):
        first = text[token.start()]
        if first in _OPENING:
            depth += 1
            if depth == LEVELS + 1:
                start = token.start()
        elif first in _CLOSING:
            if depth == LEVELS + 1:
                yield start, token.end(), _NULL
            depth -= 1
        elif token.group() == _QUOTE:
            return
        elif depth <= LEVELS and b"\\u" in (string := token.group()):
            yield token.start(), token.end(), _ESCAPE.sub(_whole, string)


def _whole(escape: re.Match[bytes]) -> bytes:
    return _UNKNOWN if escape.group(1) else escape.group()
