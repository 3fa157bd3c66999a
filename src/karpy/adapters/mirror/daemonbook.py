"""Keeps what each DaemonSet takes of a new node, as its pods and its namespace change."""

from collections import Counter
from typing import Final

from karpy.adapters.mirror.records import daemon_reader
from karpy.adapters.mirror.shelves import Shelf
from karpy.codec.admission import AS_WRITTEN, AdmissionRules, LimitRange, RuntimeClass
from karpy.codec.fields import FieldInvalid, Fields
from karpy.codec.pods import PodReader
from karpy.codec.workloads import DaemonTemplate, read_daemon_set
from karpy.model.pods import DaemonKey, DaemonSet, Pod, as_it_runs, daemon_set_of, precedence

AMOUNTS_MAX: Final = 5000
"""So many amounts are added to the DaemonSets of a namespace at a time, which takes 0.2 s."""


class DaemonBook:
    """DaemonSets with the pod that each would run on a new node."""

    def __init__(self, pods: Shelf[Pod]) -> None:
        self.templates: Shelf[DaemonTemplate] = Shelf()
        self.ranges: Shelf[LimitRange] = Shelf()
        self.runtimes: Shelf[RuntimeClass] = Shelf()
        self._pod_reader = PodReader()
        self.reader = daemon_reader(self._pod_reader)
        self._pods: dict[DaemonKey, dict[str, Pod]] = {}
        """Pods of DaemonSets that are neither over nor being deleted, by key."""
        self._chosen: dict[DaemonKey, Pod] = {}
        """The one of them that counts; absent where it is to be found again."""
        self._admitted: dict[str, DaemonSet] = {}
        """DaemonSets as their templates are admitted; absent where these are to be read again."""
        self._daemons: tuple[DaemonSet, ...] | None = ()
        self.templates.listen(self._hear_template)
        self.ranges.listen(self._hear_rules)
        self.runtimes.listen(self._hear_rules)
        pods.listen(self._hear_pod)

    def daemons(self) -> tuple[DaemonSet, ...]:
        """Return all DaemonSets as of now."""
        if self._daemons is None:
            self._daemons = tuple(
                as_it_runs(daemon, self._pod_of(daemon)) for daemon in self._as_admitted()
            )
        return self._daemons

    def _as_admitted(self) -> list[DaemonSet]:
        missing = self.templates.values.keys() - self._admitted.keys()
        if missing:
            admission = AdmissionRules(self.ranges.values.values(), self.runtimes.values.values())
            spent: Counter[str] = Counter()
            for key in sorted(missing):
                fields = Fields(self.templates.values[key].obj)
                namespace = fields.child("metadata").text("namespace") or "default"
                spec = fields.child("spec").child("template").child("spec").obj
                spent[namespace] += admission.amounts_added(spec, namespace)
                # What is beyond counts as it is written, until a pod of it is there.
                rules = admission if spent[namespace] <= AMOUNTS_MAX else AS_WRITTEN
                self._admitted[key] = self._read(fields, rules)
        return [self._admitted[key] for key in self.templates.values]

    def _read(self, fields: Fields, admission: AdmissionRules) -> DaemonSet:
        try:
            return read_daemon_set(fields, self._pod_reader, admission)
        except FieldInvalid:
            # By itself it can be read, else it would not be here.
            return read_daemon_set(fields, self._pod_reader)

    def _pod_of(self, daemon: DaemonSet) -> Pod | None:
        owner = daemon.namespace, daemon.pod.uid
        if owner not in self._chosen and (pods := self._pods.get(owner)):
            self._chosen[owner] = max(pods.values(), key=precedence)
        return self._chosen.get(owner)

    def _hear_template(
        self, key: str, before: DaemonTemplate | None, after: DaemonTemplate | None
    ) -> None:
        del before, after
        self._admitted.pop(key, None)
        self._daemons = None

    def _hear_rules(self, key: str, before: object, after: object) -> None:
        del key, before, after
        self._admitted.clear()
        self._daemons = None

    def _hear_pod(self, key: str, before: Pod | None, after: Pod | None) -> None:
        if before is not None and (owner := daemon_set_of(before)):
            self._drop(owner, key)
        if after is not None and after.is_active and (owner := daemon_set_of(after)):
            self._put(owner, key, after)

    def _drop(self, owner: DaemonKey, key: str) -> None:
        pods = self._pods.get(owner, {})
        pod = pods.pop(key, None)
        if not pods:
            self._pods.pop(owner, None)
        if pod is not None and self._chosen.get(owner) is pod:
            del self._chosen[owner]
            self._daemons = None

    def _put(self, owner: DaemonKey, key: str, pod: Pod) -> None:
        pods = self._pods.setdefault(owner, {})
        pods[key] = pod
        known = self._chosen.get(owner)
        if known is None:
            self._daemons = None
        elif precedence(pod) > precedence(known):
            self._chosen[owner] = pod
            self._daemons = None
