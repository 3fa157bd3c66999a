"""Pod affinity, anti-affinity and topology spread constraints of pods."""

from collections.abc import Mapping

from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.codec.labelselectors import LabelRule, Selector, equal, selector_of
from karpy.model.requirements import Operator

Namespaces = Mapping[str, Mapping[str, str]]
"""The labels of every namespace."""

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class PodTerm(Struct, frozen=True):
    """A pod affinity term: pods selected by labels and namespaces, in a topology domain."""

    key: str
    selector: Selector | None
    namespaces: frozenset[str]
    namespace_selector: Selector | None = None
    weight: int = 0
    """The weight of a preferred term, negative for anti-affinity; 0 of a required term."""

    def means(self, labels: Mapping[str, str]) -> bool:
        """Say whether the term selects a pod with these labels."""
        return self.selector is not None and self.selector.matches(labels)

    def covers(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Say whether the term selects a namespace, by its name or its labels."""
        if namespace in self.namespaces:
            return True
        return self.namespace_selector is not None and self.namespace_selector.matches(labels)

    def reach(self, namespaces: Namespaces) -> frozenset[str] | None:
        """Return the namespaces that the term of an incoming pod selects; None is all."""
        # kube-scheduler resolves the selector into names, but still matches it with empty labels: a
        # selector that these satisfy, such as `DoesNotExist`, selects every namespace.
        selector = self.namespace_selector
        if selector is None:
            return self.namespaces
        if selector.matches({}):
            return None
        selected = {name for name, labels in namespaces.items() if selector.matches(labels)}
        return self.namespaces | selected


class Spread(Struct, frozen=True):
    """A topology spread constraint."""

    key: str
    max_skew: int
    selector: Selector | None
    min_domains: int = 1
    honors_affinity: bool = True
    honors_taints: bool = False
    is_soft: bool = False

    def counts(self, labels: Mapping[str, str]) -> bool:
        """Say whether an existing pod counts; an empty selector counts none."""
        return bool(self.selector and self.selector.rules) and self.means(labels)

    def means(self, labels: Mapping[str, str]) -> bool:
        """Say whether the selector matches the incoming pod."""
        return self.selector is not None and self.selector.matches(labels)


class PodTerms(Struct, frozen=True):
    """The affinity and anti-affinity terms of a pod."""

    near: tuple[PodTerm, ...] = ()
    away: tuple[PodTerm, ...] = ()
    preferences: tuple[PodTerm, ...] = ()


NO_TERMS = PodTerms()


def read_pod_terms(spec: JsonObject, namespace: str, labels: Mapping[str, str]) -> PodTerms:
    """Read the affinity and anti-affinity of a pod."""
    affinity = spec.get("affinity")
    if not affinity:
        return NO_TERMS
    near, away = affinity.get("podAffinity") or {}, affinity.get("podAntiAffinity") or {}

    def term(raw: JsonObject, weight: int = 0) -> PodTerm:
        return _read_term(raw, namespace, labels, weight)

    preferences = [
        term(each.get("podAffinityTerm") or {}, sign * (each.get("weight") or 0))
        for sign, side in ((1, near), (-1, away))
        for each in side.get(_PREFERRED) or ()
    ]
    return PodTerms(
        tuple(term(each) for each in near.get(_REQUIRED) or ()),
        tuple(term(each) for each in away.get(_REQUIRED) or ()),
        tuple(preferences),
    )


def read_spreads(spec: JsonObject, labels: Mapping[str, str]) -> tuple[Spread, ...]:
    """Read the topology spread constraints of a pod."""
    return tuple(
        Spread(
            key=each.get("topologyKey") or "",
            max_skew=each.get("maxSkew") or 1,
            selector=_with_own(
                selector_of(each.get("labelSelector")), labels, each.get("matchLabelKeys") or ()
            ),
            min_domains=each.get("minDomains") or 1,
            honors_affinity=each.get("nodeAffinityPolicy") != "Ignore",
            honors_taints=each.get("nodeTaintsPolicy") == "Honor",
            is_soft=each.get("whenUnsatisfiable") == "ScheduleAnyway",
        )
        for each in spec.get("topologySpreadConstraints") or ()
    )


def _read_term(raw: JsonObject, namespace: str, labels: Mapping[str, str], weight: int) -> PodTerm:
    names = frozenset(raw.get("namespaces") or ())
    namespace_selector = selector_of(raw.get("namespaceSelector"))
    if not names and namespace_selector is None:
        names = frozenset({namespace})
    selector = _with_own(
        selector_of(raw.get("labelSelector")),
        labels,
        raw.get("matchLabelKeys") or (),
        raw.get("mismatchLabelKeys") or (),
    )
    return PodTerm(raw.get("topologyKey") or "", selector, names, namespace_selector, weight)


def _with_own(
    selector: Selector | None,
    labels: Mapping[str, str],
    same: tuple[str, ...] | list[str],
    other: tuple[str, ...] | list[str] = (),
) -> Selector | None:
    """Add the pod's labels at some keys to a selector, unless an API server already has."""
    if selector is None or not (same or other):
        return selector
    own = [equal(key, labels[key]) for key in same if key in labels]
    own += [
        LabelRule(key, Operator.NOT_IN, frozenset((labels[key],))) for key in other if key in labels
    ]
    return Selector((*selector.rules, *(each for each in own if each not in selector.rules)))
