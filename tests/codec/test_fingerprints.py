import json
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karpy.codec.fingerprints import fingerprint
from tests.codec.plain import Json, Value

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
ALIKE: Final = [1, True, 1.0, "1", [1], [True], {"a": 1}, {"a": True}, {"a": 1.0}, None, "", 0]


@given(values)
def test_a_value_that_is_written_and_read_again_has_the_same_fingerprint(value: Value) -> None:
    """A fingerprint depends on the value alone, not on which objects are shared within it."""
    assert fingerprint([value, value]) == fingerprint(json.loads(json.dumps([value, value])))


def test_values_that_only_look_equal_have_different_fingerprints() -> None:
    assert len({fingerprint(value) for value in ALIKE}) == len(ALIKE)


@pytest.mark.parametrize("value", [2**70, -(2**70), "\ud800", {"\udfff": [2**64]}])
def test_unusual_values_have_a_fingerprint_too(value: Value) -> None:
    assert fingerprint({"a": value}) == fingerprint({"a": value})
    assert fingerprint({"a": value}) != fingerprint({"a": [value]})


def test_an_endless_object_has_no_fingerprint() -> None:
    bottomless: Json = {}
    bottomless["again"] = bottomless

    with pytest.raises(ValueError, match="deeply"):
        fingerprint(bottomless)
