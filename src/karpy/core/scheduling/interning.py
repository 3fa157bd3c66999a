"""One object for equal parts of pods, so that pods are compared by identity from then on."""

from collections.abc import Callable, Hashable, Mapping
from typing import Generic, TypeVar

from msgspec.structs import replace

from karpy.model.pods import Pod, PodRules
from karpy.model.resources import Resources

T = TypeVar("T")


class _Originals(Generic[T]):
    """Finds the first object equal to another; each is hashed once, and kept alive."""

    def __init__(self, value: Callable[[T], Hashable]) -> None:
        """Take what gives the value of an object."""
        self._value = value
        self._by_value: dict[Hashable, T] = {}
        self._by_identity: dict[int, tuple[T, T]] = {}

    def find(self, each: T) -> T:
        known = self._by_identity.get(id(each))
        if known is None:
            original = self._by_value.setdefault(self._value(each), each)
            known = self._by_identity[id(each)] = each, original
        return known[1]


class Interner:
    """Finds, for rules, labels and requests, the first object equal to them."""

    def __init__(self) -> None:
        self._rules: _Originals[PodRules] = _Originals(lambda rules: rules)
        self._labels: _Originals[Mapping[str, str]] = _Originals(
            lambda each: frozenset(each.items())
        )
        self._requests: _Originals[Resources] = _Originals(lambda each: frozenset(each.items()))

    def pod(self, pod: Pod) -> Pod:
        """Return the pod with interned parts."""
        rules, labels = self.rules(pod.rules), self.labels(pod.labels)
        requests = self._requests.find(pod.requests)
        if rules is pod.rules and labels is pod.labels and requests is pod.requests:
            return pod
        return replace(pod, rules=rules, labels=labels, requests=requests)

    def rules(self, rules: PodRules) -> PodRules:
        return self._rules.find(rules)

    def labels(self, labels: Mapping[str, str]) -> Mapping[str, str]:
        return self._labels.find(labels)
