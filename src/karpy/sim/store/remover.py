"""Deletion: at once, after a grace period, or once all finalizers are removed."""

from datetime import datetime
from typing import Final

from karpy.codec.fields import JsonObject
from karpy.model.kinds import POD
from karpy.model.times import span
from karpy.ports.objects import Removal
from karpy.sim.store.answers import precondition_failed
from karpy.sim.store.ledger import Ledger
from karpy.sim.store.names import ObjectTimes, time_text
from karpy.sim.store.registry import BACKGROUND, ORPHAN, Served
from karpy.sim.store.tables import Table

FOREGROUND: Final = "Foreground"
ORPHAN_FINALIZER: Final = "orphan"
FOREGROUND_FINALIZER: Final = "foregroundDeletion"
_OF_COLLECTOR: Final = {ORPHAN: ORPHAN_FINALIZER, FOREGROUND: FOREGROUND_FINALIZER}
_FINISHED: Final = frozenset({"Succeeded", "Failed"})
_GRACE_MAX: Final = 2**31 - 1
"""Seconds; a longer grace period would end after the last representable date."""
_USUAL_GRACE: Final = 30


class Remover:
    """Marks objects as deleting, and removes those without finalizers and grace period."""

    def __init__(self, ledger: Ledger, times: ObjectTimes) -> None:
        self._ledger = ledger
        self._times = times

    def remove(
        self, served: Served, obj: JsonObject, removal: Removal, *, is_dry: bool = False
    ) -> JsonObject | None:
        """Delete an object; return it while finalizers or a grace period hold it, else None."""
        if removal.uid or removal.version:
            self.check(served, obj, removal)
        meta = obj["metadata"]
        is_pod = served.kind == POD
        graceful = self._graceful(obj, removal.grace_seconds) if is_pod else None
        if graceful is meta:
            return obj
        marked = graceful or meta
        if "finalizers" in meta or removal.propagation or served.rules.propagation != BACKGROUND:
            marked = _with_finalizers(marked, _finalizers(served, meta, removal))
        is_held = bool(marked.get("finalizers")) or (not is_pod and _is_namespace_in_use(obj))
        if graceful is None and is_held:
            marked = self._mark(marked)
        last = obj if marked is meta else {**obj, "metadata": marked}
        if is_dry:
            return last
        table = self._ledger.table(served.storage)
        if is_held or (graceful is not None and graceful["deletionGracePeriodSeconds"] > 0):
            held = last if is_pod else _terminating(last)
            return self._ledger.change(table, held, obj) if held != obj else obj
        self._ledger.remove(table, last, obj)
        return None

    def remove_pod(
        self, table: Table, pod: JsonObject, grace_seconds: int | None
    ) -> JsonObject | None:
        """Delete a pod without finalizers, or mark it until its grace period is over."""
        marked = self._graceful(pod, grace_seconds)
        if marked is pod["metadata"]:
            return pod
        if marked is None:
            self._ledger.remove(table, pod, pod)
            return None
        last = {**pod, "metadata": marked}
        if marked["deletionGracePeriodSeconds"] > 0:
            return self._ledger.change(table, last, pod)
        self._ledger.remove(table, last, pod)
        return None

    def check(self, served: Served, obj: JsonObject, removal: Removal) -> None:
        """Raise Conflict if the preconditions on UID or resourceVersion do not hold."""
        meta = obj["metadata"]
        if removal.uid and removal.uid != meta["uid"]:
            why = (
                f"the UID in the precondition ({removal.uid}) does not match the UID in record "
                f"({meta['uid']}). The object might have been deleted and then recreated"
            )
            raise precondition_failed(served.kind, meta["name"], why)
        if removal.version and removal.version != meta["resourceVersion"]:
            why = (
                f"the ResourceVersion in the precondition ({removal.version}) does not match the "
                f"ResourceVersion in record ({meta['resourceVersion']}). The object might have "
                "been modified"
            )
            raise precondition_failed(served.kind, meta["name"], why)

    def _graceful(self, pod: JsonObject, asked: int | None) -> JsonObject | None:
        """
        Return the metadata of a pod after a deletion.

        Unchanged metadata: nothing to write. None: no grace period is left, remove the pod.
        """
        meta: JsonObject = pod["metadata"]
        if asked is not None:
            asked = 1 if asked < 0 else min(asked, _GRACE_MAX)
        if "deletionTimestamp" in meta:
            return self._sooner(meta, asked)
        spec = pod.get("spec") or {}
        seconds = spec.get("terminationGracePeriodSeconds", _USUAL_GRACE)
        seconds = (1 if seconds < 0 else min(seconds, _GRACE_MAX)) if asked is None else asked
        if not spec.get("nodeName") or (pod.get("status") or {}).get("phase") in _FINISHED:
            seconds = 0
        return {
            **meta,
            "generation": meta.get("generation", 0) + 1,
            "deletionTimestamp": self._times.text(seconds),
            "deletionGracePeriodSeconds": seconds,
        }

    def _sooner(self, meta: JsonObject, asked: int | None) -> JsonObject | None:
        """Shorten the grace period of a deleting pod; it never gets longer."""
        given = meta.get("deletionGracePeriodSeconds")
        if not given:
            return None
        if asked is None or asked >= given:
            return meta
        if not asked:
            now_text = self._times.text()
            return {**meta, "deletionTimestamp": now_text, "deletionGracePeriodSeconds": 0}
        begun = datetime.fromisoformat(meta["deletionTimestamp"]) - span(given)
        end, now = begun + span(asked), self._times.now()
        if end < now:
            end, asked = now, min(asked, 1)
        return {
            **meta,
            "deletionTimestamp": time_text(end),
            "deletionGracePeriodSeconds": asked,
        }

    def _mark(self, meta: JsonObject) -> JsonObject:
        if "deletionTimestamp" in meta:
            now = self._times.text()
            # RFC 3339 times in UTC sort as texts.
            end = min(meta["deletionTimestamp"], now)
            return {**meta, "deletionTimestamp": end, "deletionGracePeriodSeconds": 0}
        marked = {
            **meta,
            "deletionTimestamp": self._times.text(),
            "deletionGracePeriodSeconds": 0,
        }
        if "generation" in meta:
            marked["generation"] = meta["generation"] + 1
        return marked


def _finalizers(served: Served, meta: JsonObject, removal: Removal) -> list[str]:
    """Return the finalizers, with those of the garbage collector for the propagation policy."""
    present = meta.get("finalizers") or []
    if removal.propagation:
        wanted = _OF_COLLECTOR.get(removal.propagation)
    else:
        there = [each for each in present if each in _OF_COLLECTOR.values()]
        wanted = there[0] if there else _OF_COLLECTOR.get(served.rules.propagation)
    kept = [each for each in present if each not in _OF_COLLECTOR.values()]
    return [*kept, wanted] if wanted else kept


def _with_finalizers(meta: JsonObject, finalizers: list[str]) -> JsonObject:
    if finalizers == (meta.get("finalizers") or []):
        return meta
    changed = {**meta, "finalizers": finalizers}
    if not finalizers:
        del changed["finalizers"]
    return changed


def _is_namespace_in_use(obj: JsonObject) -> bool:
    return obj["kind"] == "Namespace" and bool((obj.get("spec") or {}).get("finalizers"))


def _terminating(obj: JsonObject) -> JsonObject:
    if obj["kind"] != "Namespace" or obj["apiVersion"] != "v1":
        return obj
    return {**obj, "status": {**(obj.get("status") or {}), "phase": "Terminating"}}
