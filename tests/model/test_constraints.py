import pytest
from hypothesis import given
from hypothesis import strategies as st

from karpy.model.constraints import (
    NO_EXECUTE,
    NO_SCHEDULE,
    PREFER_NO_SCHEDULE,
    SELECTOR_OPERATORS,
    TOLERATE_PREFERENCES,
    LabelSelector,
    SpreadConstraint,
    Taint,
    Toleration,
    WhenUnsatisfiable,
    first_untolerated,
    resolve_label_keys,
)
from karpy.model.requirements import Operator, Requirement, one_of, require

GPU = Taint("gpu", NO_SCHEDULE, "a100")
SOFT = Taint("busy", PREFER_NO_SCHEDULE)
EVICTS = Taint("gpu", NO_EXECUTE, "a100")


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (Toleration("gpu", "Equal", "a100", NO_SCHEDULE), True),
        (Toleration("gpu", "", "a100", NO_SCHEDULE), True),
        (Toleration("gpu", "Equal", "a100"), True),
        (Toleration("gpu", "Equal", "h100"), False),
        (Toleration("gpu", "Equal"), False),
        (Toleration("gpu", "Exists"), True),
        (Toleration("gpu", "Exists", effect=NO_SCHEDULE), True),
        (Toleration("gpu", "Exists", effect=NO_EXECUTE), False),
        (Toleration("other", "Exists"), False),
        (Toleration(operator="Exists"), True),
        (Toleration(operator="Exists", effect=NO_SCHEDULE), True),
        (Toleration(operator="Exists", effect=PREFER_NO_SCHEDULE), False),
        (Toleration(value="a100"), False),
        (Toleration("gpu", "Near", "a100"), False),
    ],
    ids=str,
)
def test_a_toleration_allows_by_key_value_and_effect(
    toleration: Toleration, *, expected: bool
) -> None:
    assert toleration.allows(GPU) is expected


@pytest.mark.parametrize(
    ("operator", "mine", "its", "expected"),
    [
        ("Gt", "5", "6", True),
        ("Gt", "5", "5", False),
        ("Gt", "5", "4", False),
        ("Lt", "5", "4", True),
        ("Lt", "5", "5", False),
        ("Lt", "5", "6", False),
        ("Gt", "-5", "-4", True),
        ("Lt", "10", "9", True),
        ("Gt", "5", "x", False),
        ("Gt", "x", "6", False),
        ("Gt", "", "6", False),
        ("Gt", "5", "+6", False),
        ("Gt", "5", "06", False),
        ("Gt", "-0", "6", False),
        ("Gt", "5", "9223372036854775808", False),
    ],
)
def test_a_toleration_compares_numbers_in_canonical_form(
    operator: str, mine: str, its: str, *, expected: bool
) -> None:
    """Gt tolerates taints above its value, Lt those below; what is no number is not tolerated."""
    taint = Taint("reliability", NO_SCHEDULE, its)

    assert Toleration("reliability", operator, mine).allows(taint) is expected


def test_the_first_taint_without_a_toleration_is_named() -> None:
    tolerations = [Toleration("gpu", "Exists", effect=NO_SCHEDULE)]

    assert first_untolerated([GPU, EVICTS, SOFT], tolerations) == EVICTS
    assert first_untolerated([GPU], tolerations) is None
    assert first_untolerated([], []) is None


def test_soft_taints_count_until_preferences_are_given_up() -> None:
    assert first_untolerated([SOFT], []) == SOFT
    assert first_untolerated([SOFT], [TOLERATE_PREFERENCES]) is None
    assert first_untolerated([GPU, SOFT], [TOLERATE_PREFERENCES]) == GPU


@pytest.mark.parametrize(
    ("taint", "expected"), [(GPU, "gpu=a100:NoSchedule"), (SOFT, "busy:PreferNoSchedule")]
)
def test_a_taint_is_written_as_kubectl_does(taint: Taint, expected: str) -> None:
    assert str(taint) == expected


@pytest.mark.parametrize(
    ("expressions", "labels", "expected"),
    [
        ([], {}, True),
        ([], {"app": "web"}, True),
        ([one_of("app", "web")], {"app": "web", "tier": "1"}, True),
        ([one_of("app", "web")], {"app": "db"}, False),
        ([one_of("app", "web")], {}, False),
        ([one_of("app", "web"), one_of("tier", "1")], {"app": "web"}, False),
        ([require("app", Operator.NOT_IN, ["web"])], {}, True),
        ([require("app", Operator.NOT_IN, ["web"])], {"app": "db"}, True),
        ([require("app", Operator.NOT_IN, ["web"])], {"app": "web"}, False),
        ([require("app", Operator.EXISTS)], {"app": ""}, True),
        ([require("app", Operator.EXISTS)], {}, False),
        ([require("app", Operator.DOES_NOT_EXIST)], {}, True),
        ([require("app", Operator.DOES_NOT_EXIST)], {"app": "web"}, False),
        ([one_of("app", "web"), require("app", Operator.NOT_IN, ["web"])], {"app": "web"}, False),
    ],
    ids=str,
)
def test_a_selector_selects_what_meets_all_its_expressions(
    expressions: list[Requirement], labels: dict[str, str], *, expected: bool
) -> None:
    assert LabelSelector(tuple(expressions)).selects(labels) is expected


def test_own_label_values_are_merged_into_a_selector() -> None:
    selector = LabelSelector((one_of("app", "web"),))
    labels = {"app": "web", "hash": "7d4", "team": "shop"}

    merged = resolve_label_keys(selector, labels, match=["hash"], mismatch=["team"])

    assert merged == LabelSelector(
        (
            one_of("app", "web"),
            one_of("hash", "7d4"),
            require("team", Operator.NOT_IN, ["shop"]),
        )
    )


def test_labels_the_pod_does_not_carry_are_ignored() -> None:
    selector = LabelSelector((one_of("app", "web"),))

    assert resolve_label_keys(selector, {}, match=["hash"], mismatch=["team"]) is selector


def test_a_rule_without_a_selector_stays_without_one() -> None:
    """It selects nothing; merging keys into it would make it select something."""
    assert resolve_label_keys(None, {"hash": "7d4"}, match=["hash"]) is None


def test_a_pod_label_keeps_its_name_even_if_it_looks_like_an_old_node_label() -> None:
    labels = {"beta.kubernetes.io/arch": "x"}

    merged = resolve_label_keys(LabelSelector(), labels, match=["beta.kubernetes.io/arch"])

    assert merged is not None
    assert merged.selects(labels)


@given(
    st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy")),
    st.lists(st.sampled_from("abc"), unique=True),
    st.lists(st.sampled_from("abc"), unique=True),
)
def test_merging_twice_is_merging_once(
    labels: dict[str, str], match: list[str], mismatch: list[str]
) -> None:
    """The API server may have merged them into the stored pod already."""
    once = resolve_label_keys(LabelSelector(), labels, match, mismatch)

    assert resolve_label_keys(once, labels, match, mismatch) == once


def test_only_a_schedule_anyway_spread_is_a_wish() -> None:
    rule = SpreadConstraint("zone", 1)
    wish = SpreadConstraint("zone", 1, WhenUnsatisfiable.SCHEDULE_ANYWAY)

    assert (rule.is_soft, wish.is_soft) == (False, True)


def test_spreads_honor_affinity_but_not_taints_by_default() -> None:
    """Defaults of the Kubernetes API."""
    spread = SpreadConstraint("zone", 1)

    assert (spread.honors_affinity, spread.honors_taints) == (True, False)


def test_selectors_know_no_comparisons() -> None:
    assert {each.value for each in SELECTOR_OPERATORS} == {"In", "NotIn", "Exists", "DoesNotExist"}
