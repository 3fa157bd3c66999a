"""Requirements, taints, spreads and affinity terms, written shortly."""

from collections.abc import Mapping, Sequence
from typing import TypedDict, Unpack

from karpy.model.constraints import (
    NO_SCHEDULE,
    AffinityTerm,
    LabelSelector,
    NodeTerm,
    SpreadConstraint,
    Taint,
    Toleration,
    WhenUnsatisfiable,
)
from karpy.model.requirements import Operator, Requirement, one_of, require


def is_in(key: str, *values: str) -> Requirement:
    """Build `key In [values]`."""
    return one_of(key, *values)


def not_in(key: str, *values: str) -> Requirement:
    """Build `key NotIn [values]`."""
    return require(key, Operator.NOT_IN, values)


def exists(key: str) -> Requirement:
    """Build `key Exists`."""
    return require(key, Operator.EXISTS)


def absent(key: str) -> Requirement:
    """Build `key DoesNotExist`."""
    return require(key, Operator.DOES_NOT_EXIST)


def above(key: str, bound: int) -> Requirement:
    """Build `key Gt bound`."""
    return require(key, Operator.GT, (str(bound),))


def below(key: str, bound: int) -> Requirement:
    """Build `key Lt bound`."""
    return require(key, Operator.LT, (str(bound),))


def min_values(requirement: Requirement, count: int) -> Requirement:
    """Ask for at least `count` different values of a requirement."""
    return Requirement(
        requirement.key,
        requirement.values,
        requirement.complement,
        requirement.gte,
        requirement.lte,
        count,
    )


def term(*expressions: Requirement) -> NodeTerm:
    """Build one alternative of a node affinity (or of a volume's topology)."""
    return NodeTerm(expressions)


def selecting(labels: Mapping[str, str] | None = None, *expressions: Requirement) -> LabelSelector:
    """Build a label selector of matchLabels and matchExpressions."""
    return LabelSelector(tuple(one_of(k, v) for k, v in (labels or {}).items()) + expressions)


def taint(key: str, value: str = "", effect: str = NO_SCHEDULE) -> Taint:
    """Build a taint; hard unless said otherwise."""
    return Taint(key, effect, value)


def tolerate(key: str = "", value: str | None = None, effect: str = "") -> Toleration:
    """Tolerate one value of a taint, or (without a value) all of them."""
    if value is None:
        return Toleration(key, "Exists", effect=effect)
    return Toleration(key, "Equal", value, effect)


class SpreadFields(TypedDict, total=False):
    """What a spread may say besides its key and the pods it is about."""

    max_skew: int
    soft: bool
    min_domains: int | None
    honors_affinity: bool
    honors_taints: bool
    match_label_keys: Sequence[str]


def spread(
    key: str, selector: LabelSelector | Mapping[str, str] | None, **fields: Unpack[SpreadFields]
) -> SpreadConstraint:
    """Keep the selected pods even over the domains of a key; hard and of skew 1 by default."""
    soft = fields.get("soft", False)
    return SpreadConstraint(
        topology_key=key,
        max_skew=fields.get("max_skew", 1),
        when_unsatisfiable=(
            WhenUnsatisfiable.SCHEDULE_ANYWAY if soft else WhenUnsatisfiable.DO_NOT_SCHEDULE
        ),
        selector=_selector(selector),
        min_domains=fields.get("min_domains"),
        honors_affinity=fields.get("honors_affinity", True),
        honors_taints=fields.get("honors_taints", False),
        match_label_keys=tuple(fields.get("match_label_keys", ())),
    )


class TermFields(TypedDict, total=False):
    """What a pod affinity term may say besides its key and the pods it is about."""

    namespaces: Sequence[str]
    namespace_selector: LabelSelector | None
    match_label_keys: Sequence[str]
    mismatch_label_keys: Sequence[str]


def affinity(
    key: str, selector: LabelSelector | Mapping[str, str] | None, **fields: Unpack[TermFields]
) -> AffinityTerm:
    """Build a pod affinity term; which list it goes to says whether it is near or away."""
    return AffinityTerm(
        topology_key=key,
        selector=_selector(selector),
        namespaces=tuple(fields.get("namespaces", ())),
        namespace_selector=fields.get("namespace_selector"),
        match_label_keys=tuple(fields.get("match_label_keys", ())),
        mismatch_label_keys=tuple(fields.get("mismatch_label_keys", ())),
    )


anti_affinity = affinity


def _selector(selector: LabelSelector | Mapping[str, str] | None) -> LabelSelector | None:
    if selector is None or isinstance(selector, LabelSelector):
        return selector
    return selecting(selector)
