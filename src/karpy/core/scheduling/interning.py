"""One object for equal parts of pods, and one for equal labels of nodes, to compare by identity."""

from collections.abc import Callable, Hashable, Mapping
from typing import Generic, TypeVar

from msgspec.structs import replace

from karpy.model.labels import ALIASES, HOSTNAME, normalise
from karpy.model.nodes import Node
from karpy.model.pods import Pod, PodRules
from karpy.model.resources import Resources

T = TypeVar("T")


class _Originals(Generic[T]):
    """Finds the first object equal to another; each object is hashed once, and kept alive."""

    def __init__(self, value: Callable[[T], Hashable]) -> None:
        """Take the function that gives the value by which objects are equal."""
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
        """Return the pod with its rules, labels and requests interned."""
        rules, labels = self.rules(pod.rules), self.labels(pod.labels)
        requests = self._requests.find(pod.requests)
        if rules is pod.rules and labels is pod.labels and requests is pod.requests:
            return pod
        return replace(pod, rules=rules, labels=labels, requests=requests)

    def rules(self, rules: PodRules) -> PodRules:
        return self._rules.find(rules)

    def labels(self, labels: Mapping[str, str]) -> Mapping[str, str]:
        return self._labels.find(labels)


class LabelSet:
    """Labels that several nodes share, apart from the hostname."""

    __slots__ = ("index", "labels", "nodes")

    def __init__(self, index: int, labels: Mapping[str, str]) -> None:
        self.index = index
        self.labels = labels
        """All labels of one of the nodes, with its hostname."""
        self.nodes = 0
        """The nodes, as bits."""


class _Layout:
    """Label keys in one order, with all label sets that have just these keys."""

    __slots__ = ("hostname", "is_plain", "sets")

    def __init__(self, keys: tuple[str, ...]) -> None:
        self.hostname = keys.index(HOSTNAME) if HOSTNAME in keys else -1
        self.is_plain = HOSTNAME in keys and not any(key in ALIASES for key in keys)
        self.sets: dict[tuple[str, ...], LabelSet] = {}


class LabelSets:
    """Every set of labels that some node has."""

    def __init__(self) -> None:
        self.all: list[LabelSet] = []
        self._layouts: dict[tuple[str, ...], _Layout] = {}

    def find(self, node: Node) -> tuple[Mapping[str, str], LabelSet]:
        """Return the labels of a node, with its hostname, and their label set."""
        labels = node.labels
        layout = self._layout(labels)
        if not (layout.is_plain and labels[HOSTNAME]):
            labels = _with_hostname(node)
            layout = self._layout(labels)
        values = [*labels.values()]
        del values[layout.hostname]
        key = tuple(values)
        found = layout.sets.get(key)
        if found is None:
            found = layout.sets[key] = LabelSet(len(self.all), labels)
            self.all.append(found)
        return labels, found

    def _layout(self, labels: Mapping[str, str]) -> _Layout:
        keys = tuple(labels)
        layout = self._layouts.get(keys)
        if layout is None:
            layout = self._layouts[keys] = _Layout(keys)
        return layout


def _with_hostname(node: Node) -> Mapping[str, str]:
    labels = node.labels
    known = {normalise(key): value for key, value in labels.items() if key in ALIASES}
    return {**known, **labels, HOSTNAME: node.hostname}
