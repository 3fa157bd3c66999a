import pytest

from karpy.model.labels import ARCH, ZONE
from karpy.model.requirements import (
    INT64_MAX,
    Operator,
    Requirement,
    anything,
    as_integer,
    one_of,
    require,
)

IN, NOT_IN = Operator.IN, Operator.NOT_IN
EXISTS, DOES_NOT_EXIST = Operator.EXISTS, Operator.DOES_NOT_EXIST
GT, LT, GTE, LTE = Operator.GT, Operator.LT, Operator.GTE, Operator.LTE


def _k(operator: Operator, *values: str) -> Requirement:
    return require("k", operator, values)


@pytest.mark.parametrize(
    ("operator", "values", "expected"),
    [
        (IN, ["a", "b"], Requirement("k", frozenset({"a", "b"}))),
        (NOT_IN, ["a"], Requirement("k", frozenset({"a"}), complement=True)),
        (EXISTS, [], Requirement("k", complement=True)),
        (DOES_NOT_EXIST, [], Requirement("k")),
        (GT, ["3"], Requirement("k", complement=True, gte=4)),
        (LT, ["3"], Requirement("k", complement=True, lte=2)),
        (GTE, ["3"], Requirement("k", complement=True, gte=3)),
        (LTE, ["3"], Requirement("k", complement=True, lte=3)),
        (GT, [str(INT64_MAX)], Requirement("k")),
        (GTE, [str(INT64_MAX)], Requirement("k", complement=True, gte=INT64_MAX)),
        (GT, ["x"], Requirement("k", complement=True, gte=1)),
        (LTE, [], Requirement("k", complement=True, lte=0)),
    ],
)
def test_an_operator_describes_a_set(
    operator: Operator, values: list[str], expected: Requirement
) -> None:
    assert require("k", operator, values) == expected


def test_min_values_stay_with_the_set_unless_it_can_have_none() -> None:
    assert [require("k", each, ["1"], 2).min_values for each in Operator] == [2] * len(Operator)
    assert require("k", GT, [str(INT64_MAX)], 2).min_values is None


def test_former_label_names_get_their_current_one() -> None:
    assert require("beta.kubernetes.io/arch", IN, ["arm64"]) == one_of(ARCH, "arm64")
    assert one_of("failure-domain.beta.kubernetes.io/zone", "a").key == ZONE


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (_k(IN, "a", "b"), _k(NOT_IN, "b"), _k(IN, "a")),
        (_k(GT, "1"), _k(LT, "3"), Requirement("k", complement=True, gte=2, lte=2)),
        (_k(GT, "5"), _k(LT, "6"), _k(DOES_NOT_EXIST)),
        (_k(IN, "1", "7", "x"), _k(GTE, "5"), _k(IN, "7")),
        (_k(EXISTS), _k(IN, "a"), _k(IN, "a")),
        (_k(NOT_IN, "a"), _k(NOT_IN, "b"), _k(NOT_IN, "a", "b")),
        (_k(IN, "a", "b"), _k(IN, "b", "c"), _k(IN, "b")),
        (_k(IN, "a"), _k(IN, "b"), _k(DOES_NOT_EXIST)),
        (_k(IN, "a"), _k(NOT_IN, "a"), _k(DOES_NOT_EXIST)),
        (_k(EXISTS), _k(DOES_NOT_EXIST), _k(DOES_NOT_EXIST)),
        (_k(NOT_IN, "a"), _k(DOES_NOT_EXIST), _k(DOES_NOT_EXIST)),
        (_k(EXISTS), _k(EXISTS), _k(EXISTS)),
        (_k(GT, "1"), _k(GTE, "3"), _k(GTE, "3")),
        (_k(LT, "9"), _k(LTE, "3"), _k(LTE, "3")),
        (_k(NOT_IN, "x", "1", "9"), _k(GTE, "5"), Requirement("k", frozenset({"9"}), True, gte=5)),
    ],
    ids=str,
)
def test_the_golden_intersections(
    left: Requirement, right: Requirement, expected: Requirement
) -> None:
    assert left & right == expected
    assert right & left == expected


def test_two_bounds_that_leave_one_number_count_as_open() -> None:
    """Users of Gt 1, Lt 3 see Exists, as in Karpenter; the bounds are kept."""
    both = _k(GT, "1") & _k(LT, "3")

    assert both.operator is EXISTS
    assert [value for value in ("1", "2", "3", "x") if value in both] == ["2"]


def test_bounds_are_dropped_once_the_values_are_known() -> None:
    """They have done their work; the values within them are all there is."""
    assert _k(IN, "1", "2", "3") & _k(GTE, "2") & _k(LTE, "2") == _k(IN, "2")


def test_an_emptied_range_of_integers_is_not_noticed() -> None:
    """Parity: the integers of a range are not counted, so NotIn 2 within 2..2 still looks open."""
    emptied = _k(GTE, "2") & _k(LTE, "2") & _k(NOT_IN, "2")

    assert "2" not in emptied
    assert not emptied.is_empty


@pytest.mark.parametrize(
    ("left", "right", "expected"), [(None, None, None), (2, None, 2), (None, 3, 3), (2, 3, 3)]
)
def test_the_larger_min_values_counts(
    left: int | None, right: int | None, expected: int | None
) -> None:
    both = require("k", EXISTS, (), left) & require("k", IN, ["a"], right)

    assert both == require("k", IN, ["a"], expected)


def test_min_values_outlive_bounds_that_cross() -> None:
    both = require("k", GT, ["5"], 2) & require("k", LT, ["6"])

    assert both == Requirement("k", min_values=2)


@pytest.mark.parametrize(
    ("requirement", "inside", "outside"),
    [
        (_k(IN, "a", "5"), "a5", "b6"),
        (_k(NOT_IN, "a"), "b5", "a"),
        (_k(EXISTS), "ab5", ""),
        (_k(DOES_NOT_EXIST), "", "ab5"),
        (_k(GT, "4"), "56", "34x"),
        (_k(LTE, "4"), "0134", "56x"),
        (_k(GTE, "2") & _k(LTE, "4") & _k(NOT_IN, "3"), "24", "135x"),
    ],
    ids=str,
)
def test_a_set_knows_its_values(requirement: Requirement, inside: str, outside: str) -> None:
    assert [value in requirement for value in inside] == [True] * len(inside)
    assert [value in requirement for value in outside] == [False] * len(outside)


@pytest.mark.parametrize(
    ("requirement", "operator", "is_negative", "is_empty"),
    [
        (_k(IN, "a"), IN, False, False),
        (_k(NOT_IN, "a"), NOT_IN, True, False),
        (_k(EXISTS), EXISTS, False, False),
        (_k(DOES_NOT_EXIST), DOES_NOT_EXIST, True, True),
        (_k(GT, "1"), EXISTS, False, False),
        (_k(GT, "1") & _k(NOT_IN, "5"), NOT_IN, False, False),
        (_k(EXISTS) & _k(NOT_IN, "5"), NOT_IN, False, False),
        (_k(IN, "a") & _k(IN, "b"), DOES_NOT_EXIST, True, True),
    ],
    ids=str,
)
def test_a_set_knows_how_it_would_be_written(
    requirement: Requirement, operator: Operator, *, is_negative: bool, is_empty: bool
) -> None:
    assert requirement.operator is operator
    assert requirement.is_negative is is_negative
    assert requirement.is_empty is is_empty


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        (_k(IN, "b", "a"), "k In [a b]"),
        (_k(IN, *"gfedcba"), "k In [a b c d e and 2 others]"),
        (_k(NOT_IN, "a"), "k NotIn [a]"),
        (_k(EXISTS), "k Exists"),
        (_k(DOES_NOT_EXIST), "k DoesNotExist"),
        (_k(GT, "1") & _k(LT, "9"), "k Exists >=2 <=8"),
        (require("k", IN, ["a", "b"], 2), "k In [a b] minValues 2"),
    ],
)
def test_people_read_at_most_five_values(requirement: Requirement, expected: str) -> None:
    assert str(requirement) == expected


def test_requirements_of_different_keys_are_never_intersected() -> None:
    with pytest.raises(AssertionError):
        one_of("a", "x") & one_of("b", "x")


def test_an_undefined_key_stands_for_everything() -> None:
    assert anything("k") == _k(EXISTS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("007", 7),
        ("+5", 5),
        ("-5", -5),
        ("9223372036854775807", INT64_MAX),
        ("9223372036854775808", None),
        ("-9223372036854775808", -INT64_MAX - 1),
        ("-9223372036854775809", None),
        ("0" * 5000 + "1", 1),
        ("1" * 5000, None),
        ("", None),
        ("+", None),
        (" 5", None),
        ("5 ", None),
        ("5\n", None),
        ("1_000", None),
        ("1.0", None),
        ("0x1", None),
        ("٣", None),
    ],
)
def test_integers_are_read_as_go_reads_them(text: str, expected: int | None) -> None:
    """Python alone would take underscores, other scripts and more than 64 bits."""
    assert as_integer(text) == expected
