import pytest
from hypothesis import given
from hypothesis import strategies as st

from karpy.model.labels import ARCH, WELL_KNOWN, ZONE
from karpy.model.requirements import (
    Operator,
    Requirement,
    collect,
    from_labels,
    merge,
    one_of,
    require,
    why_disjoint,
    why_incompatible,
)

FOO = "example.com/foo"

EXISTS = require(FOO, Operator.EXISTS)
GONE = require(FOO, Operator.DOES_NOT_EXIST)
NOT_X = require(FOO, Operator.NOT_IN, ["x"])
NOT_Y = require(FOO, Operator.NOT_IN, ["y"])
X, Y = one_of(FOO, "x"), one_of(FOO, "y")
MORE_THAN_3 = require(FOO, Operator.GT, ["3"])

keys = st.sampled_from(["a", "b", ZONE])
parts = st.builds(
    require,
    keys,
    st.sampled_from([Operator.IN, Operator.NOT_IN, Operator.EXISTS, Operator.DOES_NOT_EXIST]),
    st.lists(st.sampled_from("xyz"), max_size=2),
)
sets = st.lists(parts, max_size=4).map(collect)


def test_requirements_of_one_key_are_intersected() -> None:
    parts = [one_of(FOO, "x", "y"), one_of(ZONE, "z-1"), NOT_X]

    assert collect(parts) == {FOO: Y, ZONE: one_of(ZONE, "z-1")}


def test_a_label_is_the_one_value_its_key_may_take() -> None:
    assert from_labels({FOO: "x", "beta.kubernetes.io/arch": "arm64"}) == {
        FOO: X,
        ARCH: one_of(ARCH, "arm64"),
    }


def test_a_label_under_its_old_and_new_name_must_agree() -> None:
    labels = {"beta.kubernetes.io/arch": "arm64", ARCH: "amd64"}

    assert from_labels(labels) == {ARCH: Requirement(ARCH)}


def test_sets_merge_key_by_key() -> None:
    assert merge({FOO: one_of(FOO, "x", "y")}, {}, {FOO: NOT_X, ZONE: one_of(ZONE, "a")}) == {
        FOO: Y,
        ZONE: one_of(ZONE, "a"),
    }


@pytest.mark.parametrize(
    ("have", "want", "expected"),
    [
        ([X], [X], None),
        ([X], [Y], Y),
        ([X], [], None),
        ([], [X], None),
        ([X], [one_of(ZONE, "a")], None),
        ([X], [NOT_X], NOT_X),
        ([X], [NOT_Y], None),
        ([X], [GONE], GONE),
        ([GONE], [X], X),
        ([GONE], [EXISTS], EXISTS),
        ([EXISTS], [GONE], GONE),
        ([NOT_X], [GONE], None),
        ([GONE], [NOT_X], None),
        ([GONE], [GONE], None),
        ([NOT_X], [NOT_Y], None),
        ([one_of(FOO, "4")], [MORE_THAN_3], None),
        ([one_of(FOO, "3")], [MORE_THAN_3], MORE_THAN_3),
        ([X], [MORE_THAN_3], MORE_THAN_3),
    ],
    ids=str,
)
def test_sets_are_disjoint_by_the_first_key_that_shares_nothing(
    have: list[Requirement], want: list[Requirement], expected: Requirement | None
) -> None:
    """Two negations always go together: a node without the label satisfies both."""
    assert why_disjoint(collect(have), collect(want)) == expected


@pytest.mark.parametrize(
    ("want", "expected"),
    [
        (EXISTS, EXISTS),
        (X, X),
        (MORE_THAN_3, MORE_THAN_3),
        (NOT_X, None),
        (GONE, None),
        (one_of(ZONE, "a"), None),
        (require(ZONE, Operator.EXISTS), None),
        (require(ZONE, Operator.DOES_NOT_EXIST), None),
    ],
    ids=str,
)
def test_a_new_node_may_leave_well_known_labels_undefined_but_no_others(
    want: Requirement, expected: Requirement | None
) -> None:
    """A custom label that the NodePool does not define will not be on the node."""
    assert why_incompatible({}, collect([want]), WELL_KNOWN) == expected


@pytest.mark.parametrize("want", [one_of(ZONE, "a"), require(ZONE, Operator.EXISTS), X], ids=str)
def test_an_existing_node_lacks_what_it_does_not_carry(want: Requirement) -> None:
    assert why_incompatible(from_labels({"other": "x"}), collect([want])) == want


def test_a_defined_label_must_still_match() -> None:
    have = from_labels({ZONE: "a", FOO: "x"})

    assert why_incompatible(have, collect([one_of(ZONE, "b")]), WELL_KNOWN) == one_of(ZONE, "b")
    assert why_incompatible(have, collect([one_of(ZONE, "a", "b"), X]), WELL_KNOWN) is None


def test_an_undefined_label_is_reported_before_one_that_differs() -> None:
    have = from_labels({ZONE: "a"})
    want = collect([one_of(ZONE, "b"), X])

    assert why_incompatible(have, want) == X


def test_a_bounded_set_with_exclusions_needs_the_label() -> None:
    """A node without the label has no number that could be large enough."""
    want = collect([MORE_THAN_3, require(FOO, Operator.NOT_IN, ["7"])])

    assert why_incompatible({}, want) == want[FOO]


@given(sets, sets)
def test_compatible_sets_are_never_disjoint(
    have: dict[str, Requirement], want: dict[str, Requirement]
) -> None:
    """Compatibility asks for more: that custom keys are defined."""
    why = why_disjoint(have, want)

    assert why is None or why_incompatible(have, want, WELL_KNOWN) is not None


@given(sets, sets)
def test_disjointness_is_mutual(have: dict[str, Requirement], want: dict[str, Requirement]) -> None:
    assert (why_disjoint(have, want) is None) == (why_disjoint(want, have) is None)


@given(sets, sets, sets)
def test_merging_is_collecting(
    a: dict[str, Requirement], b: dict[str, Requirement], c: dict[str, Requirement]
) -> None:
    assert merge(merge(a, b), c) == merge(a, merge(b, c)) == merge(a, b, c)
