from collections.abc import Callable

import pytest

from karpy.codec.constraints import (
    NODE_OPERATORS,
    POOL_OPERATORS,
    read_affinity_terms,
    read_node_terms,
    read_preferred_affinity_terms,
    read_preferred_node_terms,
    read_requirement,
    read_selector,
    read_spreads,
    read_taints,
    read_tolerations,
)
from karpy.codec.fields import FieldInvalid, Fields
from karpy.model.constraints import (
    AffinityTerm,
    LabelSelector,
    NodeTerm,
    SpreadConstraint,
    Taint,
    Toleration,
    WeightedNodeTerm,
    WeightedTerm,
    WhenUnsatisfiable,
)
from karpy.model.labels import ARCH, HOSTNAME, ZONE
from karpy.model.requirements import Requirement, one_of
from tests.codec.plain import Json, wants

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def fault(read: Callable[[], object]) -> tuple[str, str, str]:
    with pytest.raises(FieldInvalid) as raised:
        read()
    return raised.value.path, raised.value.problem, raised.value.hint


def test_taints_are_read_as_written() -> None:
    fields = Fields(
        {"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}, _tainted("NoExecute")]}
    )

    assert read_taints(fields, "taints") == (Taint("a", "NoSchedule", "b"), Taint("k", "NoExecute"))


def _tainted(effect: str) -> Json:
    return {"key": "k", "effect": effect, "timeAdded": "2026-01-01T00:00:00Z"}


def test_an_unknown_effect_is_refused() -> None:
    assert fault(lambda: read_taints(Fields({"taints": [_tainted("No")]}), "taints")) == (
        "taints[0].effect",
        "is `No`",
        "use one of: NoExecute, NoSchedule, PreferNoSchedule",
    )


def test_tolerations_have_kubernetes_defaults() -> None:
    fields = Fields(
        {
            "tolerations": [
                {"operator": "Exists"},
                {"key": "a", "value": "b"},
                {"key": "a", "operator": "Gt", "value": "5", "effect": "NoExecute"},
            ]
        }
    )

    assert read_tolerations(fields) == (
        Toleration(operator="Exists"),
        Toleration("a", "Equal", "b"),
        Toleration("a", "Gt", "5", "NoExecute"),
    )


@pytest.mark.parametrize(
    ("entry", "path"),
    [({"operator": "Like"}, "tolerations[0].operator"), ({"effect": "x"}, "tolerations[0].effect")],
)
def test_a_bad_toleration_is_named(entry: Json, path: str) -> None:
    assert fault(lambda: read_tolerations(Fields({"tolerations": [entry]})))[0] == path


def test_no_selector_differs_from_an_empty_one() -> None:
    assert read_selector(Fields({}), "labelSelector") is None
    assert read_selector(Fields({"labelSelector": {}}), "labelSelector") == LabelSelector()


def test_a_selector_keeps_the_names_of_labels() -> None:
    """It selects pods by their labels; only labels of nodes have aliases."""
    selector = {
        "matchLabels": {"b": "2", "beta.kubernetes.io/arch": "amd64"},
        "matchExpressions": [
            wants("c", "In", "x", "y"),
            wants("d", "NotIn", "z"),
            wants("e", "Exists"),
            wants("f", "DoesNotExist"),
        ],
    }

    assert read_selector(Fields({"s": selector}), "s") == LabelSelector(
        (
            Requirement("b", frozenset({"2"})),
            Requirement("beta.kubernetes.io/arch", frozenset({"amd64"})),
            Requirement("c", frozenset({"x", "y"})),
            Requirement("d", frozenset({"z"}), True),
            Requirement("e", complement=True),
            Requirement("f"),
        )
    )


@pytest.mark.parametrize(
    ("selector", "path", "problem"),
    [
        ({"matchLabels": {"a b": "c"}}, "s.matchLabels[a b]", "is no label key"),
        (
            {"matchLabels": {"a": "b c"}},
            "s.matchLabels[a]",
            "is `b c`, which is no label value",
        ),
        ({"matchExpressions": [wants("a", "In")]}, "s.matchExpressions[0].values", "is empty"),
        (
            {"matchExpressions": [wants("a", "Exists", "b")]},
            "s.matchExpressions[0].values",
            "is not empty for Exists",
        ),
        (
            {"matchExpressions": [wants("a", "Gt", "1")]},
            "s.matchExpressions[0].operator",
            "is `Gt`",
        ),
        (
            {"matchExpressions": [wants("a", "In", "?")]},
            "s.matchExpressions[0].values[0]",
            "is `?`, which is no label value",
        ),
        (
            {"matchExpressions": [wants("?", "Exists")]},
            "s.matchExpressions[0].key",
            "is `?`, which is no label key",
        ),
        (
            {"matchExpressions": [{"operator": "Exists"}]},
            "s.matchExpressions[0].key",
            "is missing",
        ),
    ],
)
def test_a_bad_selector_is_named(selector: Json, path: str, problem: str) -> None:
    assert fault(lambda: read_selector(Fields({"s": selector}), "s"))[:2] == (path, problem)


def test_node_terms_know_labels_by_their_current_names() -> None:
    fields = Fields(
        {
            "terms": [
                {"matchExpressions": [wants("beta.kubernetes.io/arch", "In", "arm64")]},
                {"matchFields": [wants("metadata.name", "In", "n")]},
                {},
            ]
        }
    )

    assert read_node_terms(fields, "terms") == (
        NodeTerm((one_of(ARCH, "arm64"),)),
        NodeTerm(has_match_fields=True),
        NodeTerm(),
    )


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (wants("a", "In", "x"), Requirement("a", frozenset({"x"}))),
        (wants("a", "NotIn", "x"), Requirement("a", frozenset({"x"}), True)),
        (wants("a", "Exists"), Requirement("a", complement=True)),
        (wants("a", "DoesNotExist"), Requirement("a")),
        (wants("a", "Gt", "4"), Requirement("a", complement=True, gte=5)),
        (wants("a", "Lt", "4"), Requirement("a", complement=True, lte=3)),
        (wants("a", "Gte", "4"), Requirement("a", complement=True, gte=4)),
        (wants("a", "Lte", "4", minValues=2), Requirement("a", frozenset(), True, None, 4, 2)),
        (wants("a", "NotIn"), Requirement("a", complement=True)),
    ],
)
def test_every_operator_of_a_node_pool_is_known(entry: Json, expected: Requirement) -> None:
    assert read_requirement(Fields(entry), POOL_OPERATORS) == expected


def test_a_pod_may_ask_for_a_negative_bound() -> None:
    """The API server lets it pass; the decision refuses it and says so."""
    entry = wants("a", "Gt", "-5")

    assert read_requirement(Fields(entry), NODE_OPERATORS) == Requirement(
        "a", complement=True, gte=-4
    )


@pytest.mark.parametrize(
    ("entry", "operators", "expected"),
    [
        (wants("a", "In"), NODE_OPERATORS, ("values", "is empty")),
        (wants("a", "NotIn"), NODE_OPERATORS, ("values", "is empty")),
        (wants("a", "Exists", "x"), NODE_OPERATORS, ("values", "is not empty for Exists")),
        (wants("a", "Gt", "x"), NODE_OPERATORS, ("values", "is [x], which is no bound")),
        (wants("a", "Gt", "1", "2"), NODE_OPERATORS, ("values", "is [1, 2], which is no bound")),
        (wants("a", "Lt"), NODE_OPERATORS, ("values", "is [], which is no bound")),
        (wants("a", "Gt", "-1"), POOL_OPERATORS, ("values", "is [-1], which is no bound")),
        (wants("a", "Gte", "1"), NODE_OPERATORS, ("operator", "is `Gte`")),
        (wants("a", "in", "x"), POOL_OPERATORS, ("operator", "is `in`")),
        ({"key": "a"}, POOL_OPERATORS, ("operator", "is missing")),
        (wants("", "Exists"), POOL_OPERATORS, ("key", "is missing")),
        (wants("a/b/c", "Exists"), POOL_OPERATORS, ("key", "is `a/b/c`, which is no label key")),
    ],
)
def test_a_bad_requirement_is_named(
    entry: Json, operators: frozenset[str], expected: tuple[str, str]
) -> None:
    assert fault(lambda: read_requirement(Fields(entry), operators))[:2] == expected


def test_preferred_node_terms_carry_their_weight() -> None:
    fields = Fields(
        {PREFERRED: [{"weight": 7, "preference": {"matchExpressions": [wants(ZONE, "In", "a")]}}]}
    )

    assert read_preferred_node_terms(fields) == (
        WeightedNodeTerm(7, NodeTerm((one_of(ZONE, "a"),))),
    )


@pytest.mark.parametrize("weight", [None, 0, 101])
def test_a_weight_is_from_1_to_100(weight: int | None) -> None:
    fields = Fields({PREFERRED: [{"weight": weight, "preference": {}}]})

    path, _, hint = fault(lambda: read_preferred_node_terms(fields))

    assert (path, hint) == (f"{PREFERRED}[0].weight", "write a weight from 1 to 100")


def test_affinity_terms_are_read_whole() -> None:
    entry = {
        "topologyKey": HOSTNAME,
        "labelSelector": {"matchLabels": {"a": "b"}},
        "namespaces": ["x"],
        "namespaceSelector": {},
        "matchLabelKeys": ["m"],
        "mismatchLabelKeys": ["n"],
    }
    term = AffinityTerm(
        HOSTNAME,
        LabelSelector((Requirement("a", frozenset({"b"})),)),
        ("x",),
        LabelSelector(),
        ("m",),
        ("n",),
    )
    fields = Fields({REQUIRED: [entry], PREFERRED: [{"weight": 1, "podAffinityTerm": entry}]})

    assert read_affinity_terms(fields) == (term,)
    assert read_preferred_affinity_terms(fields) == (WeightedTerm(1, term),)


def test_spreads_are_read_whole_or_with_their_defaults() -> None:
    fields = Fields(
        {
            "spreads": [
                {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"},
                {
                    "topologyKey": HOSTNAME,
                    "maxSkew": 2,
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": {},
                    "minDomains": 3,
                    "nodeAffinityPolicy": "Ignore",
                    "nodeTaintsPolicy": "Honor",
                    "matchLabelKeys": ["m"],
                },
            ]
        }
    )

    assert read_spreads(fields, "spreads") == (
        SpreadConstraint(ZONE, 1),
        SpreadConstraint(
            topology_key=HOSTNAME,
            max_skew=2,
            when_unsatisfiable=WhenUnsatisfiable.SCHEDULE_ANYWAY,
            selector=LabelSelector(),
            min_domains=3,
            honors_affinity=False,
            honors_taints=True,
            match_label_keys=("m",),
        ),
    )


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"maxSkew": 0}, "s[0].maxSkew"),
        ({"maxSkew": None}, "s[0].maxSkew"),
        ({"minDomains": 0}, "s[0].minDomains"),
        ({"whenUnsatisfiable": "Never"}, "s[0].whenUnsatisfiable"),
        ({"nodeTaintsPolicy": "x"}, "s[0].nodeTaintsPolicy"),
        ({"topologyKey": ""}, "s[0].topologyKey"),
        ({"topologyKey": "a b"}, "s[0].topologyKey"),
    ],
)
def test_a_bad_spread_is_named(change: Json, path: str) -> None:
    entry = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **change}

    assert fault(lambda: read_spreads(Fields({"s": [entry]}), "s"))[0] == path
