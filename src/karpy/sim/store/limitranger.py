"""The admission plugin LimitRanger: default requests and limits, and their bounds."""

from collections.abc import Iterator
from typing import Final

from karpy.codec.admission import LimitRange, read_limit_range, with_usual_amounts
from karpy.codec.fields import Fields, JsonObject
from karpy.model.kinds import LIMIT_RANGE, POD, Kind
from karpy.ports.objects import WatchEvent
from karpy.sim.store.answers import forbidden
from karpy.sim.store.ledger import Ledger
from karpy.sim.store.limitbounds import claim_breaches, pod_breaches

_ANNOTATION: Final = "kubernetes.io/limit-ranger"
_CONTAINERS: Final = (("containers", "container"), ("initContainers", "init container"))
_AMOUNTS: Final = (("requests", "request"), ("limits", "limit"))


class LimitRanger:
    """Applies the LimitRanges of a namespace to new objects."""

    def __init__(self, ledger: Ledger) -> None:
        self._table = ledger.table(LIMIT_RANGE)
        self._ranges: dict[str, list[LimitRange]] = {}
        self._items: dict[str, list[JsonObject]] = {}
        ledger.subscribe(LIMIT_RANGE, self._read)

    def admitted(self, pod: JsonObject) -> JsonObject:
        """Return a pod with default requests and limits, and the annotation that lists them."""
        for each in self._ranges.get(pod["metadata"]["namespace"], ()):
            pod = _filled(pod, each)
        return pod

    def check(self, kind: Kind, obj: JsonObject) -> None:
        """Raise Forbidden for a pod or a claim that violates a LimitRange."""
        meta = obj["metadata"]
        items = self._items.get(meta["namespace"])
        if not items:
            return
        breaches_of = pod_breaches if kind == POD else claim_breaches
        found = list(dict.fromkeys(why for item in items for why in breaches_of(item, obj)))
        if found:
            why = found[0] if len(found) == 1 else f"[{', '.join(found)}]"
            raise forbidden(kind, meta.get("name") or "", why)

    def _read(self, _event: WatchEvent, _before: JsonObject | None) -> None:
        self._ranges.clear()
        self._items.clear()
        for obj in self._table.walk():
            found = read_limit_range(Fields(obj))
            self._ranges.setdefault(found.namespace, []).append(found)
            items = (obj.get("spec") or {}).get("limits") or ()
            self._items.setdefault(found.namespace, []).extend(items)


def _filled(pod: JsonObject, usual: LimitRange) -> JsonObject:
    before = pod.get("spec") or {}
    spec = with_usual_amounts(Fields(before, "spec"), usual)
    notes = list(_notes(before, spec))
    if not notes:
        return pod
    meta = pod["metadata"]
    note = {_ANNOTATION: f"LimitRanger plugin set: {'; '.join(notes)}"}
    annotations = {**(meta.get("annotations") or {}), **note}
    return {**pod, "metadata": {**meta, "annotations": annotations}, "spec": spec}


def _notes(before: JsonObject, after: JsonObject) -> Iterator[str]:
    """Yield the parts of the annotation: which defaults were set for which containers."""
    for field, title in _CONTAINERS:
        for was, now in zip(before.get(field) or (), after.get(field) or (), strict=True):
            for part, word in _AMOUNTS:
                given = (was.get("resources") or {}).get(part) or {}
                names = sorted(now["resources"].get(part, {}).keys() - given.keys())
                if names:
                    yield f"{', '.join(names)} {word} for {title} {now['name']}"
