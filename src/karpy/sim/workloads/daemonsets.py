"""The DaemonSet controller: a pod on every eligible node."""

from typing import ClassVar, Final

from karpy.codec.fields import JsonObject
from karpy.errors import ClusterError
from karpy.model.kinds import DAEMON_SET, NODE, Kind
from karpy.ports.objects import EventType, WatchEvent
from karpy.sim.store.paging import key_of
from karpy.sim.workloads.controller import WorkloadContext
from karpy.sim.workloads.daemonplans import DaemonPlan, age_of, plan, rollout
from karpy.sim.workloads.eligibility import (
    DENIED,
    DaemonEligibility,
    Permission,
    aimed_at,
    target_of,
)
from karpy.sim.workloads.owners import is_deleting
from karpy.sim.workloads.podcontroller import PodWriter
from karpy.sim.workloads.pods import FINISHED, is_available, is_ready, next_available, phase_of
from karpy.sim.workloads.revisions import REVISION_HASH, RevisionController, name_of
from karpy.sim.workloads.statuses import without_zeros
from karpy.sim.workloads.templates import with_label

_FIRST_WAIT: Final = 1.0
_LONGEST_WAIT: Final = 900.0
_GENERATION_NOTE: Final = "deprecated.daemonset.template.generation"
_GENERATION_LABEL: Final = "pod-template-generation"


class DaemonSets(RevisionController, PodWriter):
    """Keeps a pod of each DaemonSet on every eligible node."""

    kind: ClassVar[Kind] = DAEMON_SET
    component: ClassVar[str] = "daemonset-controller"
    hash_label = REVISION_HASH

    def __init__(self, context: WorkloadContext) -> None:
        super().__init__(context)
        self._readings: dict[str, tuple[JsonObject, DaemonEligibility]] = {}
        self._failures: dict[tuple[str, str], tuple[int, float]] = {}
        """Failed pods by DaemonSet and node, with the time of the last deletion."""

    def start(self) -> None:
        """Reconcile every DaemonSet now, and again whenever a node changes its eligibility."""
        self._ends.append(self.store.subscribe(NODE, self._on_node))
        super().start()

    def reconcile(self, obj: JsonObject) -> float | None:
        """Create missing pods, delete misplaced ones, and replace outdated ones."""
        if not any((obj["spec"].get("selector") or {}).values()):
            self.record_warning(
                obj,
                "SelectingAll",
                "This daemon set is selecting all pods. A non-empty selector is required.",
            )
            return None
        if is_deleting(obj):
            return None
        self.context.pods.claimed(self.kind, obj, self.selector(obj))
        revisions = self.revisions(obj)
        revision = self.latest(obj, revisions)
        current = revision["metadata"]["labels"][self.hash_label]
        permissions = self._permissions(obj)
        failure: ClusterError | None = None
        wait = None
        try:
            wait = self._manage(obj, permissions, current)
            if self._roll(obj, permissions, current):
                wait = 0.0
        except ClusterError as error:
            failure = error
        pods = self._pods(obj)
        self.write_status(obj, self._status(obj, permissions, pods, current))
        self._truncate(obj, revision)
        if failure is not None:
            raise failure
        all_pods = [pod for each in pods.values() for pod in each]
        soon = next_available(all_pods, obj["spec"].get("minReadySeconds", 0), self.now())
        return min((each for each in (wait, soon) if each is not None), default=None)

    def forget(self, key: str) -> None:
        """Drop the state of a DaemonSet that was deleted."""
        self._readings.pop(key, None)
        for each in [each for each in self._failures if each[0] == key]:
            del self._failures[each]

    def _on_node(self, event: WatchEvent, before: JsonObject | None) -> None:
        """Queue the DaemonSets for which the eligibility of a node changed."""
        node = event.object
        if event.type is EventType.MODIFIED and before is not None and _is_alike(node, before):
            return
        for obj in self.store.list(DAEMON_SET):
            was = DENIED if before is None else self._permission(obj, before)
            is_now = DENIED if event.type is EventType.DELETED else self._permission(obj, node)
            if was != is_now:
                self._on_child_changed(key_of(obj))

    def _permission(self, obj: JsonObject, node: JsonObject) -> Permission:
        key, spec = key_of(obj), obj["spec"]["template"]["spec"]
        reading = self._readings.get(key)
        if reading is None or reading[0] is not spec:
            reading = self._readings[key] = (spec, DaemonEligibility(spec))
        return reading[1].of(node)

    def _permissions(self, obj: JsonObject) -> dict[str, Permission]:
        return {
            node["metadata"]["name"]: self._permission(obj, node) for node in self.store.list(NODE)
        }

    def _pods(self, obj: JsonObject) -> dict[str, list[JsonObject]]:
        """Return the pods of a DaemonSet by the node they run on, or were created for."""
        pods: dict[str, list[JsonObject]] = {}
        for pod in self.context.pods.of(obj):
            if is_deleting(pod) and phase_of(pod) in FINISHED:
                continue
            if target := target_of(pod):
                pods.setdefault(target, []).append(pod)
        return pods

    def _manage(
        self, obj: JsonObject, permissions: dict[str, Permission], current: str
    ) -> float | None:
        pods = self._pods(obj)
        todo = plan(obj, permissions, pods, current, self.now())
        wait = None
        for pod in todo.failed:
            seconds = self._back_off(obj, pod)
            if seconds:
                wait = seconds if wait is None else min(wait, seconds)
                continue
            meta = pod["metadata"]
            self.record_warning(
                obj,
                "FailedDaemonPod",
                f"Found failed daemon pod {meta['namespace']}/{meta['name']} on node "
                f"{target_of(pod)}, will try to kill it",
            )
            todo.drop.append(pod)
        for pod in todo.succeeded:
            meta = pod["metadata"]
            self.record_normal(
                obj,
                "SucceededDaemonPod",
                f"Found succeeded daemon pod {meta['namespace']}/{meta['name']} on node "
                f"{target_of(pod)}, will try to delete it",
            )
            todo.drop.append(pod)
        is_again = self._apply(obj, todo, current)
        return 0.0 if is_again else wait

    def _roll(self, obj: JsonObject, permissions: dict[str, Permission], current: str) -> bool:
        todo = rollout(obj, permissions, self._pods(obj), current, self.now())
        return self._apply(obj, todo, current)

    def _apply(self, obj: JsonObject, todo: DaemonPlan, current: str) -> bool:
        """Create and delete pods; say whether a deleted pod is gone at once."""
        is_gone = False
        for node in todo.make:
            self.make_pod(obj, _template(obj, node, current))
        for pod in todo.drop:
            is_gone |= self.drop_pod(obj, pod) is None
        return is_gone

    def _back_off(self, obj: JsonObject, pod: JsonObject) -> float:
        """Return the seconds until a failed pod is deleted, which grow with repeated failures."""
        key = (key_of(obj), target_of(pod))
        count, last = self._failures.get(key, (0, 0.0))
        now = self.now().timestamp()
        pause = min(_LONGEST_WAIT, _FIRST_WAIT * 2 ** (count - 1)) if count else 0.0
        if now - last > 2 * _LONGEST_WAIT:
            count, pause = 0, 0.0
        if now < last + pause:
            return last + pause - now
        self._failures[key] = (count + 1, now)
        return 0.0

    def _truncate(self, obj: JsonObject, current: JsonObject) -> None:
        hashes = {
            (pod["metadata"].get("labels") or {}).get(self.hash_label)
            for pod in self.context.pods.of(obj)
        }
        revisions = self.revisions(obj)
        live = {
            name_of(each)
            for each in revisions
            if each["metadata"]["labels"].get(self.hash_label) in hashes
        }
        self.truncate(obj, revisions, {*live, name_of(current)})

    def _status(
        self,
        obj: JsonObject,
        permissions: dict[str, Permission],
        pods: dict[str, list[JsonObject]],
        current: str,
    ) -> JsonObject:
        wanted = [name for name, permission in permissions.items() if permission.may_start]
        firsts = [min(pods[name], key=age_of) for name in wanted if name in pods]
        ready = [pod for pod in firsts if is_ready(pod)]
        seconds, now = obj["spec"].get("minReadySeconds", 0), self.now()
        available = sum(is_available(pod, seconds, now) for pod in ready)
        astray = sum(
            not permission.may_start and name in pods for name, permission in permissions.items()
        )
        status = without_zeros(
            {
                "observedGeneration": obj["metadata"].get("generation", 0),
                "updatedNumberScheduled": sum(
                    pod["metadata"]["labels"].get(REVISION_HASH) == current for pod in firsts
                ),
                "numberAvailable": available,
                "numberUnavailable": len(wanted) - available,
            }
        )
        status["desiredNumberScheduled"] = len(wanted)
        status["currentNumberScheduled"] = len(firsts)
        status["numberMisscheduled"] = astray
        status["numberReady"] = len(ready)
        return status


def _is_alike(node: JsonObject, before: JsonObject) -> bool:
    taints = (node.get("spec") or {}).get("taints")
    labels = node["metadata"].get("labels")
    return bool(
        taints == (before.get("spec") or {}).get("taints")
        and labels == before["metadata"].get("labels")
    )


def _template(obj: JsonObject, node: str, current: str) -> JsonObject:
    template = obj["spec"]["template"]
    aimed = {**template, "spec": aimed_at(template["spec"], node)}
    generation = (obj["metadata"].get("annotations") or {}).get(_GENERATION_NOTE)
    if generation:
        aimed = with_label(aimed, _GENERATION_LABEL, generation)
    return with_label(aimed, REVISION_HASH, current)
