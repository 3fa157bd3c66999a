"""Constraints of pods on nodes and other pods: taints, selectors, affinity, topology spread."""

import re
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final

from msgspec import Struct

from karpy.model.requirements import Operator, Requirement, as_integer

EXISTS: Final = "Exists"
NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
NOT_READY_TAINT: Final = "node.kubernetes.io/not-ready"
UNREGISTERED_TAINT: Final = "karpenter.sh/unregistered"
DISRUPTED_TAINT: Final = "karpenter.sh/disrupted"
REBOOTING_TAINT: Final = "karpenter.sh/rebooting"
_CANONICAL_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)


class Taint(Struct, frozen=True, gc=False):
    """A taint of a node: keeps off pods that do not tolerate it."""

    key: str
    effect: str
    value: str = ""

    def __str__(self) -> str:
        """Write `key=value:effect`, as kubectl does."""
        return f"{self.key}{'=' + self.value if self.value else ''}:{self.effect}"


def is_disrupted(taint: Taint) -> bool:
    """Say whether a taint is the one of a node that is being disrupted."""
    return taint.key == DISRUPTED_TAINT and taint.effect == NO_SCHEDULE and not is_gate(taint)


def is_gate(taint: Taint) -> bool:
    """
    Say whether a taint is a gate: it keeps pods off a node for a while after its registration.

    A gate has the key of a disrupted node or of a node that is not ready, and a moment as its
    value. Karpenter removes the former from any node that it does not disrupt,
    kube-controller-manager the latter from any node that is ready. Older versions wrote the key of
    an unregistered node with NoSchedule, which may still be on a node.
    """
    if taint.effect != NO_SCHEDULE:
        return False
    is_stamped = taint.key in {DISRUPTED_TAINT, NOT_READY_TAINT} and taint.value.isdecimal()
    return is_stamped or taint.key == UNREGISTERED_TAINT


class Toleration(Struct, frozen=True, gc=False):
    """Which taints a pod tolerates; an empty key or effect stands for all."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def allows(self, taint: Taint) -> bool:
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        match self.operator:
            case "Exists":
                return True
            case "" | "Equal":
                return bool(self.key) and self.value == taint.value
            case "Gt" | "Lt":
                bound, value = _as_canonical(self.value), _as_canonical(taint.value)
                if bound is None or value is None:
                    return False
                return value > bound if self.operator == "Gt" else value < bound
        return False


def _as_canonical(text: str) -> int | None:
    # Parity: numbers in `Gt` and `Lt`: as in Kubernetes' component-helpers, `+5` and `007` are not
    # numbers.
    return as_integer(text) if _CANONICAL_INTEGER.fullmatch(text) else None


TOLERATE_PREFERENCES: Final = Toleration(operator=EXISTS, effect=PREFER_NO_SCHEDULE)


def first_untolerated(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> Taint | None:
    """Return the first taint that no toleration allows; soft taints count like hard ones."""
    for taint in taints:
        if not any(toleration.allows(taint) for toleration in tolerations):
            return taint
    return None


class LabelSelector(Struct, frozen=True, gc=False):
    """
    Which pods (or namespaces) a rule selects.

    `expressions` are requirements on labels; each of matchLabels is one of them, with one value. A
    rule without a selector has None instead, which selects nothing; an empty selector selects all.
    """

    expressions: tuple[Requirement, ...] = ()

    def selects(self, labels: Mapping[str, str]) -> bool:
        for wanted in self.expressions:
            value = labels.get(wanted.key)
            if value is None:
                if not wanted.is_negative:
                    return False
            elif value not in wanted:
                return False
        return True


class WhenUnsatisfiable(Enum):
    """Whether a spread constraint is required or preferred."""

    DO_NOT_SCHEDULE = "DoNotSchedule"
    SCHEDULE_ANYWAY = "ScheduleAnyway"


class SpreadConstraint(Struct, frozen=True, gc=False):
    """Keep the selected pods even over the domains of a label key."""

    topology_key: str
    max_skew: int
    when_unsatisfiable: WhenUnsatisfiable = WhenUnsatisfiable.DO_NOT_SCHEDULE
    selector: LabelSelector | None = None
    min_domains: int | None = None
    honors_affinity: bool = True
    honors_taints: bool = False
    match_label_keys: tuple[str, ...] = ()

    @property
    def is_soft(self) -> bool:
        return self.when_unsatisfiable is WhenUnsatisfiable.SCHEDULE_ANYWAY


class AffinityTerm(Struct, frozen=True, gc=False):
    """Pods to be near to, or away from, within one domain of a label key."""

    topology_key: str
    selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedTerm(Struct, frozen=True, gc=False):
    """A preferred pod (anti-)affinity term."""

    weight: int
    term: AffinityTerm


class NodeTerm(Struct, frozen=True, gc=False):
    """One alternative of a node affinity: a node must match all its expressions."""

    expressions: tuple[Requirement, ...] = ()
    has_match_fields: bool = False

    @property
    def is_blank(self) -> bool:
        """Whether the term is empty; an empty term matches no node."""
        return not self.expressions and not self.has_match_fields


class WeightedNodeTerm(Struct, frozen=True, gc=False):
    """A preferred node affinity term."""

    weight: int
    term: NodeTerm


def resolve_label_keys(
    selector: LabelSelector | None,
    labels: Mapping[str, str],
    match: Sequence[str] = (),
    mismatch: Sequence[str] = (),
) -> LabelSelector | None:
    """
    Merge a pod's own label values into a selector, as the API server does for a new pod.

    Keys that the pod does not carry are ignored. The operation is idempotent.
    """
    if selector is None or not (match or mismatch):
        return selector
    extra = [Requirement(key, frozenset({labels[key]})) for key in match if key in labels]
    extra += [Requirement(key, frozenset({labels[key]}), True) for key in mismatch if key in labels]
    known = frozenset(selector.expressions)
    new = tuple(each for each in extra if each not in known)
    return LabelSelector(selector.expressions + new) if new else selector


SELECTOR_OPERATORS: Final = frozenset(
    {Operator.IN, Operator.NOT_IN, Operator.EXISTS, Operator.DOES_NOT_EXIST}
)
