"""Values that were stored before a definition became stricter may stay if they are unchanged."""

from typing import Final

import pytest

from karpy.errors import Invalid
from tests.codec.validation.gadgets import gadget, rule, validator

SHORT: Final = {"type": "string", "maxLength": 3}
POLITE: Final = {"type": "string", "x-kubernetes-validations": [rule("self != 'no'", "be polite")]}
NAMED: Final = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {"type": "object", "properties": {"name": {"type": "string"}, "v": POLITE}},
}
MAPPED: Final = {"type": "object", "additionalProperties": POLITE}
LISTED: Final = {"type": "array", "items": POLITE}
NUMBER: Final = {"type": "integer"}


@pytest.mark.parametrize(
    ("schema", "old", "new"),
    [
        (SHORT, "long", "long"),
        (POLITE, "no", "no"),
        (MAPPED, {"a": "no"}, {"a": "no", "b": "yes"}),
        (LISTED, ["no"], ["no"]),
        (NAMED, [{"name": "a", "v": "no"}], [{"name": "b"}, {"name": "a", "v": "no"}]),
    ],
)
def test_an_unchanged_invalid_value_may_stay(schema: object, old: object, new: object) -> None:
    strict = validator(x=schema, n=NUMBER)

    admitted = strict.admit(gadget(x=new, n=2), gadget(x=old, n=1))

    assert admitted["spec"] == {"x": new, "n": 2}


@pytest.mark.parametrize(
    ("schema", "old", "new", "says"),
    [
        (SHORT, "long", "longer", "spec.x: Too long: may not be more than 3 bytes"),
        (MAPPED, {"a": "no"}, {"b": "no"}, 'spec.x[b]: Invalid value: "no": be polite'),
        (LISTED, ["no"], ["no", "yes"], 'spec.x[0]: Invalid value: "no": be polite'),
        (
            NAMED,
            [{"name": "a", "v": "no"}],
            [{"name": "b", "v": "no"}],
            'spec.x[0].v: Invalid value: "no": be polite',
        ),
    ],
)
def test_a_changed_value_must_be_valid(schema: object, old: object, new: object, says: str) -> None:
    strict = validator(x=schema)

    with pytest.raises(Invalid) as caught:
        strict.admit(gadget(x=new), gadget(x=old))

    assert says in caught.value.message


def test_a_list_that_had_repeated_entries_may_keep_them() -> None:
    strict = validator(x={"type": "array", "x-kubernetes-list-type": "set", "items": NUMBER})

    admitted = strict.admit(gadget(x=[1, 1, 2]), gadget(x=[1, 1]))

    assert admitted["spec"]["x"] == [1, 1, 2]


def test_transition_rules_are_always_evaluated() -> None:
    grows = {**NUMBER, "x-kubernetes-validations": [rule("self > oldSelf", "must grow")]}

    with pytest.raises(Invalid, match="must grow"):
        validator(x=grows).admit(gadget(x=1), gadget(x=1))
