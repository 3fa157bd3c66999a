"""Pods on machines: they arrive, start, become ready, exit and stop."""

from collections.abc import Callable
from enum import Enum
from typing import Final

from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.errors import NotFound
from karpy.model.kinds import POD
from karpy.ports.clock import Clock
from karpy.ports.objects import WatchEvent
from karpy.sim.draws import SeededDraws
from karpy.sim.kubelets.behaviour import Behaviour, behaviour_of
from karpy.sim.kubelets.pods import (
    FINISHED,
    KILLED,
    TERMINATED,
    Host,
    arrived,
    crashed,
    exited,
    failed,
    running,
    with_readiness,
)
from karpy.sim.kubelets.timing import KubeletTiming
from karpy.sim.store.names import ObjectTimes
from karpy.sim.store.sharing import remembered
from karpy.sim.store.store import Store
from karpy.sim.store.tables import CommitCallbacks
from karpy.sim.worker import Worker

_INSTANT: Final = 1e-6
_NEVER: Final = float("inf")
_BACKOFF: Final = 10.0
_BACKOFF_MAX: Final = 300.0
_PODS_MAX: Final = 1 << 22


class _Step(Enum):
    ARRIVE = "report that the containers are being created"
    START = "report that they run"
    READY = "report that they are ready"
    EXIT = "let them exit"
    STOP = "report that they have stopped"
    REST = "nothing more to report"


# Looking up a member of an enumeration takes longer than comparing it.
_ARRIVE, _START, _READY, _EXIT, _STOP, _REST = _Step


class _Run(Struct):
    """The progress of a pod on its node."""

    uid: str
    host: Host
    behaviour: Behaviour
    step: _Step = _ARRIVE
    due: float = 0.0
    exit_at: float = _NEVER
    deadline: float = _NEVER
    restarts: int = 0
    slowness: float = 1.0
    is_gated: bool = False
    """Whether the pod has readiness gates."""


class MachineState(Struct, frozen=True):
    """The address of a machine, and the factor by which its pods are slower."""

    address: str
    slowness: float = 1.0


MachineStateOf = Callable[[str], MachineState | None]
"""Returns the state of a node's machine; None while no kubelet runs there."""


class PodRunner:
    """Runs the pods that are bound to nodes with a reporting kubelet."""

    def __init__(
        self, store: Store, clock: Clock, timing: KubeletTiming, seed: int, on: MachineStateOf
    ) -> None:
        self._store = store
        self._find = store.finder(POD)
        self._times = ObjectTimes(clock)
        self._timing = timing
        self._draws = SeededDraws("pods", seed)
        self._on = on
        self._runs: dict[str, _Run] = {}
        self._worker = Worker(self._work)
        self._addresses = 0
        self._end: Callable[[], None] | None = None

    def start(self) -> None:
        """Run the pods that are bound now and later."""
        callbacks = CommitCallbacks(self._on_pod, self._on_pod, self._on_status, self._on_deleted)
        self._end = self._store.listen(POD, callbacks)

    def stop(self) -> None:
        """Stop; pods stay as they are."""
        if self._end is not None:
            self._end()
        self._worker.stop()

    def look_at(self, node: str) -> None:
        """Continue the pods of a node whose kubelet started or recovered."""
        for pod in self._store.pods_on(node):
            self._worker.add(_key(pod))

    def restart(self, node: str) -> None:
        """Restart all containers of a node, as after a reboot."""
        for pod in self._store.pods_on(node):
            run = self._runs.get(_key(pod))
            if run is None or run.step in {_ARRIVE, _START, _STOP}:
                continue
            if (pod.get("status") or {}).get("phase") == "Running":
                self._end_containers(pod, run, KILLED, wait_seconds=0.0)

    def recover(self, node: str) -> None:
        """Report the pods of a node as ready again after node lifecycle marked them not ready."""
        for pod in self._store.pods_on(node):
            status = pod.get("status") or {}
            if status.get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]:
                is_ready = all(each["ready"] for each in status.get("containerStatuses") or ())
                self._write(pod, with_readiness(pod, self._times.text(), is_ready=is_ready))

    def _on_pod(self, event: WatchEvent, before: JsonObject | None) -> None:
        pod = event.object
        node = pod["spec"].get("nodeName")
        if node and (
            before is None or before["spec"].get("nodeName") != node or _is_news(pod, before)
        ):
            self._worker.add(_key(pod))

    def _on_deleted(self, event: WatchEvent, _: JsonObject | None) -> None:
        self._runs.pop(_key(event.object), None)

    def _on_status(self, event: WatchEvent, before: JsonObject | None) -> None:
        del before
        spec = event.object["spec"]
        if spec.get("readinessGates") and spec.get("nodeName"):
            self._worker.add(_key(event.object))

    def _work(self, key: str) -> float | None:
        namespace, _, name = key.partition("/")
        pod = self._find(namespace, name)
        state = None if pod is None else self._on(pod["spec"].get("nodeName") or "")
        if pod is None or state is None:
            return None
        meta, run = pod["metadata"], self._runs.get(key)
        if run is None or run.uid != meta["uid"]:
            run = self._runs[key] = self._new_run(pod, state)
        run.slowness = state.slowness
        now = self._worker.now()
        soon = now + _INSTANT
        if "deletionTimestamp" in meta:
            if run.step is not _STOP or run.due > soon:
                self._ask_to_stop(pod, run, now)
        elif run.is_gated:
            self._look_at_gates(pod, run)
        if run.deadline <= soon and run.step not in (_STOP, _REST):
            self._give_up(pod, run)
        if run.due <= soon and run.step is not _REST:
            self._go_on(pod, run, now)
        until = min(run.deadline, run.due)
        return None if until == _NEVER or run.step is _REST else max(0.0, until - now)

    def _go_on(self, pod: JsonObject, run: _Run, now: float) -> None:
        step = run.step
        if step is _ARRIVE:
            self._arrive(pod, run, now)
        elif step is _START:
            self._begin(pod, run, now)
        elif step is _STOP:
            self._vanish(pod, run)
        elif step is _READY:
            self._become_ready(pod, run)
        elif step is _EXIT:
            self._exit(pod, run)

    def _new_run(self, pod: JsonObject, state: MachineState) -> _Run:
        is_over = (pod.get("status") or {}).get("phase") in FINISHED
        step = _REST if is_over else _ARRIVE
        self._addresses = (self._addresses + 1) % _PODS_MAX
        host = Host(state.address, _pod_address(self._addresses))
        is_gated = bool(pod["spec"].get("readinessGates"))
        return _Run(pod["metadata"]["uid"], host, behaviour_of(pod), step, is_gated=is_gated)

    def _arrive(self, pod: JsonObject, run: _Run, now: float) -> None:
        problem = run.behaviour.problem
        self._write(pod, arrived(pod, run.host, self._times.text(), problem))
        limit = pod["spec"].get("activeDeadlineSeconds")
        if limit is not None:
            run.deadline = now + self._timing.scaled(limit)
        if problem:
            run.step, run.due = _EXIT, _NEVER
            return
        given = run.behaviour.start_seconds
        seconds = self._timing.start_seconds if given is None else given
        seconds = self._draws.spread(seconds, self._timing.jitter_percent)
        run.step, run.due = _START, now + self._lasting(run, seconds)

    def _begin(self, pod: JsonObject, run: _Run, now: float) -> None:
        ready = run.behaviour.ready_seconds
        status = running(pod, run.host, self._times.text(), is_ready=ready == 0)
        self._write(pod, status)
        seconds = run.behaviour.run_seconds
        owners = pod["metadata"].get("ownerReferences")
        if seconds is None and owners and _has_job(owners):
            seconds = self._timing.job_seconds
        run.exit_at = _NEVER if seconds is None else now + self._lasting(run, seconds)
        ready_at = _NEVER if ready is None else now + self._lasting(run, ready)
        if ready != 0 and ready_at < run.exit_at:
            run.step, run.due = _READY, ready_at
        else:
            run.step, run.due = _EXIT, run.exit_at

    def _become_ready(self, pod: JsonObject, run: _Run) -> None:
        self._write(pod, with_readiness(pod, self._times.text(), is_ready=True))
        run.step, run.due = _EXIT, run.exit_at

    def _exit(self, pod: JsonObject, run: _Run) -> None:
        wait = min(_BACKOFF_MAX, _BACKOFF * 2 ** min(run.restarts, 10))
        self._end_containers(pod, run, run.behaviour.exit_code, self._timing.scaled(wait))

    def _end_containers(
        self, pod: JsonObject, run: _Run, exit_code: int, wait_seconds: float
    ) -> None:
        policy = pod["spec"].get("restartPolicy", "Always")
        if policy == "Never" or (policy == "OnFailure" and exit_code == 0):
            self._write(pod, exited(pod, exit_code, self._times.text()))
            run.step, run.due = _REST, _NEVER
            return
        run.restarts += 1
        self._write(pod, crashed(pod, exit_code, wait_seconds, self._times.text()))
        run.step = _START
        run.due = self._worker.now() + wait_seconds
        self._worker.add(_key(pod))

    def _give_up(self, pod: JsonObject, run: _Run) -> None:
        message = "Pod was active on the node longer than the specified deadline"
        self._write(pod, failed(pod, "DeadlineExceeded", message, self._times.text()))
        run.step, run.due, run.deadline = _REST, _NEVER, _NEVER

    def _ask_to_stop(self, pod: JsonObject, run: _Run, now: float) -> None:
        """Begin to stop a pod; a second deletion may shorten the grace period."""
        grace = float(pod["metadata"].get("deletionGracePeriodSeconds") or 0)
        if run.step is _REST and not grace:
            return
        if run.step is _STOP:
            run.due = min(run.due, now + self._timing.scaled(grace))
            return
        is_up = (pod.get("status") or {}).get("phase") == "Running"
        given = run.behaviour.stop_seconds
        seconds = self._timing.stop_seconds if given is None else given
        seconds = min(grace, seconds + _hook_seconds(pod["spec"]["containers"])) if is_up else 0.0
        run.step, run.due, run.deadline = _STOP, now + self._lasting(run, seconds), _NEVER

    def _vanish(self, pod: JsonObject, run: _Run) -> None:
        meta = pod["metadata"]
        run.step, run.due = _REST, _NEVER
        if (pod.get("status") or {}).get("phase") not in FINISHED and meta.get("finalizers"):
            # A finalizer keeps the pod so that its owner can read its final status.
            self._write(pod, exited(pod, TERMINATED, self._times.text()))
        try:
            self._store.delete_pod(pod, grace_seconds=0)
        except NotFound:
            return

    def _look_at_gates(self, pod: JsonObject, run: _Run) -> None:
        statuses = (pod.get("status") or {}).get("containerStatuses") or ()
        if run.step in {_EXIT, _REST} and all(each["ready"] for each in statuses):
            self._write(pod, with_readiness(pod, self._times.text(), is_ready=True))

    def _lasting(self, run: _Run, seconds: float) -> float:
        return self._timing.scaled(seconds) * run.slowness

    def _write(self, pod: JsonObject, status: JsonObject) -> None:
        self._store.set_status(POD, pod, status)


def _key(pod: JsonObject) -> str:
    meta = pod["metadata"]
    return f"{meta['namespace']}/{meta['name']}"


def _is_news(pod: JsonObject, before: JsonObject) -> bool:
    """Say whether another writer changed something that the kubelet acts on."""
    meta, was = pod["metadata"], before["metadata"]
    if "deletionTimestamp" in meta:
        return bool(
            meta["deletionTimestamp"] != was.get("deletionTimestamp")
            or meta.get("deletionGracePeriodSeconds") != was.get("deletionGracePeriodSeconds")
        )
    return bool(pod["spec"].get("readinessGates"))


def _find_job(owners: list[JsonObject]) -> bool:
    return any(each.get("controller") and each["kind"] == "Job" for each in owners)


_has_job: Final = remembered(_find_job)
"""Says whether a Job is among the owners of a pod."""


def _longest_hook(containers: list[JsonObject]) -> float:
    hooks = [(each.get("lifecycle") or {}).get("preStop") or {} for each in containers]
    return max((float((hook.get("sleep") or {}).get("seconds", 0)) for hook in hooks), default=0.0)


_hook_seconds: Final = remembered(_longest_hook)
"""Returns the seconds of the longest `preStop` sleep."""


def _pod_address(number: int) -> str:
    return f"10.{64 + (number >> 16)}.{number >> 8 & 255}.{number & 255}"
