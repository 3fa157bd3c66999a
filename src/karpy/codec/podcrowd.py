"""Pods that were counted and not read: told apart by their labels if somebody asks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from karpy.codec.fields import JsonObject
from karpy.codec.fingerprints import fingerprint
from karpy.model.census import Alike, Crowd, Labels

_NO_LABELS: Final[Mapping[str, str]] = {}


class WrittenCrowd(Crowd):
    """Most decisions ask for few labels or none, and to look for these is quick."""

    def __init__(self, objs: Sequence[JsonObject], rows: Iterable[Alike]) -> None:
        """Take pods as they are written, all with labels that are text, and others in rows."""
        super().__init__(rows)
        self._objs = objs

    def having(self, labels: Labels | None = None) -> Iterator[Alike]:
        """Return those with at least one of some labels, by default all."""
        yield from super().having(labels)
        # To look for a value alone is faster, and hardly ever finds one of another key.
        values = None if labels is None else {value for _, value in labels}
        found: dict[bytes, tuple[Alike, list[str]]] = {}
        for obj in self._objs:
            meta = obj["metadata"]
            own = meta.get("labels") or _NO_LABELS
            if values is not None and values.isdisjoint(own.values()):
                continue
            if labels is None or not labels.isdisjoint(own.items()):
                key = fingerprint((meta["namespace"], own))
                if key not in found:
                    nodes: list[str] = []
                    found[key] = Alike(own, meta["namespace"], nodes), nodes
                found[key][1].append(obj["spec"]["nodeName"])
        for row, _ in found.values():
            yield row
