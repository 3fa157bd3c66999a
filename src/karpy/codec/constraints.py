"""Taints, tolerations, selectors, affinity and topology spread from plain objects."""

from typing import Final

from karpy.codec.fields import Fields
from karpy.codec.syntax import is_label_key, is_label_value
from karpy.model.constraints import (
    NO_EXECUTE,
    NO_SCHEDULE,
    PREFER_NO_SCHEDULE,
    SELECTOR_OPERATORS,
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
from karpy.model.requirements import Operator, Requirement, as_integer, require

KEY_HINT: Final = "use letters, digits, `-`, `_` and `.`, as in `example.com/name`"
VALUE_HINT: Final = "use at most 63 letters, digits, `-`, `_` and `.`"
EFFECTS: Final = frozenset({NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE})
NODE_OPERATORS: Final = frozenset({"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"})
POOL_OPERATORS: Final = NODE_OPERATORS | {"Gte", "Lte"}
_SELECTOR_OPERATORS: Final = frozenset(each.value for each in SELECTOR_OPERATORS)
_TOLERATION_OPERATORS: Final = frozenset({"", "Equal", "Exists", "Gt", "Lt"})
_WEIGHT_MAX: Final = 100
_WHEN: Final = {each.value: each for each in WhenUnsatisfiable}
_POLICIES: Final = frozenset({"Honor", "Ignore"})


def read_taints(fields: Fields, key: str) -> tuple[Taint, ...]:
    """Read a list of taints."""
    return tuple(
        Taint(label_key(each, "key"), each.choice("effect", EFFECTS), each.text("value"))
        for each in fields.children(key)
    )


def read_tolerations(fields: Fields) -> tuple[Toleration, ...]:
    """Read the tolerations of a pod."""
    return tuple(
        Toleration(
            each.text("key"),
            each.choice("operator", _TOLERATION_OPERATORS) or "Equal",
            each.text("value"),
            each.choice("effect", EFFECTS | {""}),
        )
        for each in fields.children("tolerations")
    )


def read_selector(fields: Fields, key: str) -> LabelSelector | None:
    """Read a label selector; without one there is None, which selects nothing."""
    if key not in fields:
        return None
    selector = fields.child(key)
    labels = selector.labels("matchLabels")
    expressions = [_same(selector.child("matchLabels"), name) for name in sorted(labels)]
    expressions += [_selector_expression(each) for each in selector.children("matchExpressions")]
    return LabelSelector(tuple(expressions))


def read_node_terms(fields: Fields, key: str) -> tuple[NodeTerm, ...]:
    """Read the alternatives of a node affinity."""
    return tuple(read_node_term(each) for each in fields.children(key))


def read_node_term(fields: Fields) -> NodeTerm:
    """
    Read one alternative of a node affinity.

    A term with a value that no label can have matches no node, as in kube-scheduler. Not every
    API server refuses the value, and it would get into the labels of a new node, and so into the
    user data of its machine.
    """
    expressions = tuple(
        read_requirement(each, NODE_OPERATORS) for each in fields.children("matchExpressions")
    )
    if not all(is_label_value(value) for each in expressions for value in each.values):
        return NodeTerm()
    return NodeTerm(expressions, bool(fields.items("matchFields")))


def read_preferred_node_terms(fields: Fields) -> tuple[WeightedNodeTerm, ...]:
    """Read preferred node affinity terms."""
    return tuple(
        WeightedNodeTerm(_weight(each), read_node_term(each.child("preference")))
        for each in fields.children("preferredDuringSchedulingIgnoredDuringExecution")
    )


def read_affinity_terms(fields: Fields) -> tuple[AffinityTerm, ...]:
    """Read required pod (anti-)affinity terms."""
    return tuple(
        _affinity_term(each)
        for each in fields.children("requiredDuringSchedulingIgnoredDuringExecution")
    )


def read_preferred_affinity_terms(fields: Fields) -> tuple[WeightedTerm, ...]:
    """Read preferred pod (anti-)affinity terms."""
    return tuple(
        WeightedTerm(_weight(each), _affinity_term(each.child("podAffinityTerm")))
        for each in fields.children("preferredDuringSchedulingIgnoredDuringExecution")
    )


def read_spreads(fields: Fields, key: str) -> tuple[SpreadConstraint, ...]:
    """Read topology spread constraints."""
    return tuple(_spread(each) for each in fields.children(key))


def read_requirement(fields: Fields, operators: frozenset[str]) -> Requirement:
    """
    Read one requirement on a node label, with one of these operators.

    As in the API server, values that do not suit the operator are refused. A pod may have a
    negative bound: the decision refuses that pod.
    """
    key = label_key(fields, "key")
    operator = Operator(fields.choice("operator", operators))
    values = fields.texts("values")
    match operator:
        case Operator.IN | Operator.NOT_IN:
            if not values and (operator is Operator.IN or operators is NODE_OPERATORS):
                fields.fail("values", "is empty", "add at least one value, or use DoesNotExist")
        case Operator.EXISTS | Operator.DOES_NOT_EXIST:
            if values:
                fields.fail("values", f"is not empty for {operator.value}", "remove the values")
        case _:
            _check_bound(fields, values, least=None if operators is NODE_OPERATORS else 0)
    return require(key, operator, values, fields.number("minValues"))


def label_key(fields: Fields, key: str) -> str:
    """Return the label key that a field holds."""
    text = fields.needed(key)
    if not is_label_key(text):
        fields.fail(key, f"is `{text}`, which is no label key", KEY_HINT)
    return text


def check_label(fields: Fields, key: str) -> str:
    """Return the value of a label; fail if its key or value is invalid."""
    value = str(fields.obj[key])
    if not is_label_key(key):
        fields.fail(f"[{key}]", "is no label key", KEY_HINT)
    if not is_label_value(value):
        fields.fail(f"[{key}]", f"is `{value}`, which is no label value", VALUE_HINT)
    return value


def _check_bound(fields: Fields, values: tuple[str, ...], *, least: int | None) -> None:
    bound = as_integer(values[0]) if len(values) == 1 else None
    if bound is None or (least is not None and bound < least):
        at_least = "" if least is None else f" of {least} or more"
        fields.fail(
            "values",
            f"is [{', '.join(values)}], which is no bound",
            f"write one whole number{at_least}",
        )


def _same(fields: Fields, key: str) -> Requirement:
    return Requirement(key, frozenset({check_label(fields, key)}))


def _selector_expression(fields: Fields) -> Requirement:
    key = label_key(fields, "key")
    operator = Operator(fields.choice("operator", _SELECTOR_OPERATORS))
    values = fields.texts("values")
    if operator in {Operator.IN, Operator.NOT_IN}:
        if not values:
            fields.fail("values", "is empty", "add at least one value")
    elif values:
        fields.fail("values", f"is not empty for {operator.value}", "remove the values")
    for index, value in enumerate(values):
        if not is_label_value(value):
            fields.fail(f"values[{index}]", f"is `{value}`, which is no label value", VALUE_HINT)
    is_open = operator in {Operator.NOT_IN, Operator.EXISTS}
    return Requirement(key, frozenset(values), is_open)


def _weight(fields: Fields) -> int:
    weight = fields.number("weight")
    if weight is None or not 1 <= weight <= _WEIGHT_MAX:
        fields.fail("weight", f"is {weight or 'missing or 0'}", "write a weight from 1 to 100")
    return weight


def _affinity_term(fields: Fields) -> AffinityTerm:
    return AffinityTerm(
        topology_key=label_key(fields, "topologyKey"),
        selector=read_selector(fields, "labelSelector"),
        namespaces=fields.texts("namespaces"),
        namespace_selector=read_selector(fields, "namespaceSelector"),
        match_label_keys=fields.texts("matchLabelKeys"),
        mismatch_label_keys=fields.texts("mismatchLabelKeys"),
    )


def _spread(fields: Fields) -> SpreadConstraint:
    max_skew = fields.number("maxSkew")
    if max_skew is None or max_skew < 1:
        fields.fail("maxSkew", "is missing or less than 1", "write a maxSkew of 1 or more")
    min_domains = fields.number("minDomains")
    if min_domains is not None and min_domains < 1:
        fields.fail("minDomains", f"is {min_domains}", "write a minDomains of 1 or more")
    return SpreadConstraint(
        topology_key=label_key(fields, "topologyKey"),
        max_skew=max_skew,
        when_unsatisfiable=_WHEN[fields.choice("whenUnsatisfiable", _WHEN)],
        selector=read_selector(fields, "labelSelector"),
        min_domains=min_domains,
        honors_affinity=fields.choice("nodeAffinityPolicy", _POLICIES, "Honor") == "Honor",
        honors_taints=fields.choice("nodeTaintsPolicy", _POLICIES, "Ignore") == "Honor",
        match_label_keys=fields.texts("matchLabelKeys"),
    )
