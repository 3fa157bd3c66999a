"""JSON to plain values, within the limits on depth and numbers; all JSON is read here."""

import json
import re
from math import isfinite
from typing import Final

import msgspec

from karpy.codec.limits import (
    DEPTH_MAX,
    DIGITS_MAX,
    Unparsable,
    half_character,
    repeated_key,
    too_deep,
    too_vast,
)

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[{\]}]', re.DOTALL)
_KEY: Final = re.compile(r'("(?:[^"\\]|\\.)*")(\s*:)?|[{}]', re.DOTALL)
_VAST: Final = re.compile(
    rf"(?<=[\s,:\[])-?(?:[0-9]{{{DIGITS_MAX + 1}}}|[0-9.]+[eE]\+?[0-9]{{3,}})"
)
_STRIDE: Final = 16
_SAMPLED: Final = re.compile(rf"[0-9]{{{DIGITS_MAX // _STRIDE}}}")
_AS_LISTS: Final = bytes.maketrans(b"{}", b"[]")
_NO_MARKS: Final = bytes(byte for byte in range(256) if byte not in b'{}[]"')


def parse_json(text: str | bytes) -> object:
    """Read one JSON value; raise Unparsable."""
    try:
        value: object = msgspec.json.decode(text)
    except RecursionError as error:
        raise too_deep(_deep_line(text)) from error
    except msgspec.ValidationError as error:
        # No types are required, so that only a number out of range fails the validation.
        raise too_vast(_vast_line(text)) from error
    except (msgspec.DecodeError, UnicodeError) as error:
        raise Unparsable(str(error)) from error
    _check(text)
    return value


def parse_json_at(text: str, at: int) -> tuple[object, int]:
    """Read the JSON value that begins at a place, and say where it ends; raise Unparsable."""
    try:
        value, end = _DECODER.raw_decode(text, at)
    except RecursionError as error:
        raise too_deep(_deep_line(text[at:])) from error
    except OverflowError as error:
        raise too_vast(_vast_line(text[at:])) from error
    except ValueError as error:
        raise Unparsable(str(error)) from error
    _check(text[at:end])
    return value, end


def check_keys(text: str | bytes, value: object) -> None:
    """Raise Refused if a mapping has a key twice; `value` is what was parsed from the text."""
    try:
        again = msgspec.json.encode(value)
    except OverflowError:
        again = b""  # A number is too large for the encoder.
    except UnicodeEncodeError as error:
        raise half_character() from error
    colons = text.count(":") if isinstance(text, str) else text.count(b":")
    # Each key has a colon. Colons within strings may be escaped: then counts cannot be compared.
    if colons != again.count(b":") or "\\u003" in _as_str(text):
        _find_repeated(_as_str(text))


def _find_repeated(text: str) -> None:
    open_: list[set[str]] = []
    for token in _KEY.finditer(text):
        if token[0] == "{":
            open_.append(set())
        elif token[0] == "}":
            open_.pop()
        elif token[2]:
            key = json.loads(token[1])
            if key in open_[-1]:
                raise repeated_key(key, text.count("\n", 0, token.start()) + 1)
            open_[-1].add(key)


def _check(text: str | bytes) -> None:
    if _is_too_deep(text):
        raise too_deep(_deep_line(text))
    # A number with too many digits leaves a long run of digits in the sample.
    if _SAMPLED.search(_as_str(text[::_STRIDE])) and (line := _vast_line(text)):
        raise too_vast(line)


def _is_too_deep(text: str | bytes) -> bool:
    """Say whether JSON nests too deeply, by the brackets outside of its strings."""
    data = text.encode() if isinstance(text, str) else text
    marks = data.replace(rb"\\", b"").replace(rb"\"", b"").translate(_AS_LISTS, _NO_MARKS)
    left = b"".join(marks.replace(b'""', b"").split(b'"')[::2])
    for _ in range(DEPTH_MAX):
        if not left:
            return False
        # Remove the innermost pairs.
        left = left.replace(b"[]", b"")
    return bool(left)


def _vast_line(text: str | bytes) -> int:
    shown = _as_str(text)
    found = _VAST.search(shown)
    return shown.count("\n", 0, found.start()) + 1 if found else 0


def _deep_line(text: str | bytes) -> int:
    shown, depth = _as_str(text), 0
    for token in _TOKEN.finditer(shown):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
        if depth > DEPTH_MAX:
            return shown.count("\n", 0, token.start()) + 1
    return 0


def _as_str(text: str | bytes) -> str:
    return text if isinstance(text, str) else text.decode(errors="replace")


def _integer(text: str) -> int:
    if len(text) > DIGITS_MAX:
        raise OverflowError
    return int(text)


def _number(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise OverflowError
    return number


def _constant(text: str) -> float:
    msg = f"{text} is no number of JSON"
    raise ValueError(msg)


_DECODER: Final = json.JSONDecoder(
    parse_int=_integer, parse_float=_number, parse_constant=_constant
)
