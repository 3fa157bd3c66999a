"""Node selectors and node affinity of pods."""

from collections.abc import Mapping

from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.codec.labelselectors import LabelRule, equal
from karpy.model.requirements import Operator, as_integer

_NAME = "metadata.name"


class SchedulerNodeTerm(Struct, frozen=True):
    """One node selector term: all its rules must hold."""

    labels: tuple[LabelRule, ...] = ()
    names: tuple[LabelRule, ...] = ()
    """Rules of `matchFields` on the name of the node."""

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Say whether a node matches; without a name only its labels count."""
        if not all(rule.holds(labels) for rule in self.labels):
            return False
        return not name or all(rule.holds({_NAME: name}) for rule in self.names)


class NodeChoice(Struct, frozen=True):
    """The nodes that the node selector and the required node affinity of a pod allow."""

    selector: tuple[LabelRule, ...] = ()
    terms: tuple[SchedulerNodeTerm, ...] | None = None
    """Alternative terms; an empty tuple matches no node, None every node."""
    only: frozenset[str] | None = None
    """The only node names that can match; None if names are not restricted."""

    def allows(self, labels: Mapping[str, str], name: str) -> bool:
        """Say whether a node matches."""
        if not all(rule.holds(labels) for rule in self.selector):
            return False
        return self.terms is None or any(term.matches(labels, name) for term in self.terms)


ANY_NODE = NodeChoice()


def read_choice(spec: JsonObject) -> NodeChoice:
    """Read the node selector and the required node affinity of a pod."""
    selector = tuple(equal(*each) for each in (spec.get("nodeSelector") or {}).items())
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return NodeChoice(selector) if selector else ANY_NODE
    raw = required.get("nodeSelectorTerms") or []
    return NodeChoice(selector, read_terms(raw), _names(raw))


def read_preferences(spec: JsonObject) -> tuple[tuple[int, SchedulerNodeTerm], ...]:
    """Read the preferred node affinity with its weights."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    found = []
    for each in affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
        term = _read_term(each.get("preference") or {})
        if term is not None and each.get("weight"):
            found.append((each["weight"], term))
    return tuple(found)


def read_terms(raw: list[JsonObject]) -> tuple[SchedulerNodeTerm, ...]:
    """Read terms; a term that is empty or cannot be read matches no node."""
    return tuple(term for each in raw if (term := _read_term(each)) is not None)


def _read_term(raw: JsonObject) -> SchedulerNodeTerm | None:
    labels = [_label_rule(each) for each in raw.get("matchExpressions") or ()]
    names = [_name_rule(each) for each in raw.get("matchFields") or ()]
    if not labels and not names:
        return None
    known_labels = tuple(each for each in labels if each is not None)
    known_names = tuple(each for each in names if each is not None)
    if len(known_labels) < len(labels) or len(known_names) < len(names):
        return None
    return SchedulerNodeTerm(known_labels, known_names)


def _label_rule(raw: JsonObject) -> LabelRule | None:
    try:
        operator = Operator(raw.get("operator"))
    except ValueError:
        return None
    values = raw.get("values") or []
    match operator:
        case Operator.IN | Operator.NOT_IN:
            is_sound = bool(values)
        case Operator.EXISTS | Operator.DOES_NOT_EXIST:
            is_sound = not values
        case Operator.GT | Operator.LT:
            is_sound = len(values) == 1 and as_integer(values[0]) is not None
        case _:
            is_sound = False
    return LabelRule(raw.get("key") or "", operator, frozenset(values)) if is_sound else None


def _name_rule(raw: JsonObject) -> LabelRule | None:
    values = raw.get("values") or []
    if raw.get("operator") not in {"In", "NotIn"} or len(values) != 1:
        return None
    return LabelRule(raw.get("key") or "", Operator(raw["operator"]), frozenset(values))


def _names(terms: list[JsonObject]) -> frozenset[str] | None:
    """Return the union of the names in terms; None if one of the terms lists no names."""
    if not terms:
        return None
    names: set[str] = set()
    for term in terms:
        lists = [
            set(each.get("values") or ())
            for each in term.get("matchFields") or ()
            if each.get("key") == _NAME and each.get("operator") == "In"
        ]
        if not lists:
            return None
        names |= set.intersection(*lists)
    return frozenset(names)
