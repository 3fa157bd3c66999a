"""What pods ask of each other: to be near, to be away, to be spread."""

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
    """Pods of some labels in some namespaces, within a domain of a topology key."""

    key: str
    selector: Selector | None
    namespaces: frozenset[str]
    namespace_selector: Selector | None = None
    weight: int = 0
    """How much it is liked, or disliked if negative; 0 of a term that must hold."""

    def means(self, labels: Mapping[str, str]) -> bool:
        """Say whether the labels are those of a pod it is about."""
        return self.selector is not None and self.selector.matches(labels)

    def covers(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Say whether a namespace is among those it is about, by name or by labels."""
        if namespace in self.namespaces:
            return True
        return self.namespace_selector is not None and self.namespace_selector.matches(labels)

    def reach(self, namespaces: Namespaces) -> frozenset[str] | None:
        """Name the namespaces that a pod to be placed means; None stands for all."""
        # kube-scheduler unrolls the selector into names, but goes on matching it with empty
        # labels: one that these pass, such as `DoesNotExist`, reaches every namespace.
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
        """Say whether a pod on a node counts; an empty selector means all pods, but counts none."""
        return bool(self.selector and self.selector.rules) and self.means(labels)

    def means(self, labels: Mapping[str, str]) -> bool:
        """Say whether the constraint is about a pod."""
        return self.selector is not None and self.selector.matches(labels)


class PodTerms(Struct, frozen=True):
    """All that a pod asks of other pods by affinity."""

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
    """Add the pod's own labels to a selector; what an API server did before is not done twice."""
    if selector is None or not (same or other):
        return selector
    own = [equal(key, labels[key]) for key in same if key in labels]
    own += [
        LabelRule(key, Operator.NOT_IN, frozenset((labels[key],))) for key in other if key in labels
    ]
    return Selector((*selector.rules, *(each for each in own if each not in selector.rules)))
