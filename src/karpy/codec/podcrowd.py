"""Pods that were counted and not read: told apart by their labels if somebody asks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from karpy.codec.fields import JsonObject
from karpy.codec.fingerprints import fingerprint
from karpy.model.census import Alike, Crowd, Labels

BETWEEN_VALUES: Final = "\0"
"""Joins the values of labels; it is in none of them, or that one is looked for in another way."""
_NO_LABELS: Final[Mapping[str, str]] = {}


class WrittenCrowd(Crowd):
    """Most decisions ask for few labels or none, and to look for these is quick."""

    def __init__(
        self, objs: Mapping[str, Sequence[JsonObject]], rows: Iterable[Alike] = ()
    ) -> None:
        """Take pods as they are written, by the values of their labels joined, and others."""
        super().__init__(rows)
        self._objs = objs

    def having(self, labels: Labels | None = None) -> Iterator[Alike]:
        """Return those with at least one of some labels, by default all."""
        yield from super().having(labels)
        found: dict[bytes, tuple[Alike, list[str]]] = {}
        for obj in self._everybody() if labels is None else self._with_value_of(labels):
            meta = obj["metadata"]
            own = meta.get("labels") or _NO_LABELS
            if labels is None or not labels.isdisjoint(own.items()):
                key = fingerprint((meta["namespace"], own))
                if key not in found:
                    nodes: list[str] = []
                    found[key] = Alike(own, meta["namespace"], nodes), nodes
                found[key][1].append(obj["spec"]["nodeName"])
        for row, _ in found.values():
            yield row

    def _everybody(self) -> Iterator[JsonObject]:
        for objs in self._objs.values():
            yield from objs

    def _with_value_of(self, labels: Labels) -> Iterator[JsonObject]:
        """Return those with the value of some label, if maybe under another key: a few more."""
        values = {value for _, value in labels}
        is_unsure = any(BETWEEN_VALUES in value for value in values)
        for text, objs in self._objs.items():
            if is_unsure or not values.isdisjoint(text.split(BETWEEN_VALUES)):
                yield from objs
