"""Nodes that are labelled alike, the hostname apart, so that labels are looked at once for all."""

from collections.abc import Mapping

from karpy.model.labels import ALIASES, HOSTNAME, normalise
from karpy.model.nodes import Node


class LabelSet:
    """Labels that several nodes share, the hostname apart."""

    __slots__ = ("index", "labels", "nodes")

    def __init__(self, index: int, labels: Mapping[str, str]) -> None:
        self.index = index
        self.labels = labels
        """Those of one of the nodes, its hostname among them."""
        self.nodes = 0


class _Layout:
    """The keys of labels, in their order, with all sets of labels that have them."""

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
        """Return the labels of a node, its hostname certainly among them, and their set."""
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
