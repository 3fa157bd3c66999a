"""The disruption controller: the status of PodDisruptionBudgets."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import ClassVar, Final

from karpy.codec.fields import JsonObject
from karpy.codec.labelselectors import Selector, label_selector_text
from karpy.errors import ClusterError
from karpy.model.kinds import (
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    POD,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
    Kind,
)
from karpy.ports.objects import EventType, Query, WatchEvent
from karpy.sim.store.conditions import with_condition
from karpy.sim.store.paging import key_of
from karpy.sim.workloads.controller import Controller, WorkloadContext
from karpy.sim.workloads.owners import controller_of, is_deleting
from karpy.sim.workloads.pods import is_ready, read_time
from karpy.sim.workloads.shares import share

DISRUPTION_ALLOWED: Final = "DisruptionAllowed"
_GONE_WITHIN: Final = timedelta(minutes=2)
"""An evicted pod that still exists after this time no longer counts as disrupted."""
_SCALED: Final = (REPLICATION_CONTROLLER, REPLICA_SET, STATEFUL_SET)


class _Uncountable(Exception):
    """The expected number of pods cannot be determined; the message says why."""


class _Members:
    """Which PodDisruptionBudgets of a namespace select a pod."""

    def __init__(self) -> None:
        self.selectors: dict[str, Selector] = {}
        self.pods: dict[str, dict[str, None]] = {}
        self._known: dict[tuple[tuple[str, str], ...], tuple[str, ...]] = {}

    def set(self, budget: str, selector: Selector, pods: list[JsonObject]) -> None:
        self.selectors[budget] = selector
        self.pods[budget] = {
            pod["metadata"]["name"]: None
            for pod in pods
            if selector.matches(pod["metadata"].get("labels"))
        }
        self._known.clear()

    def drop(self, budget: str) -> None:
        self.selectors.pop(budget, None)
        self.pods.pop(budget, None)
        self._known.clear()

    def meant_by(self, pod: JsonObject) -> tuple[str, ...]:
        """Return the budgets that select a pod; pods of one template share the answer."""
        labels: dict[str, str] = pod["metadata"].get("labels") or {}
        key = tuple(labels.items())
        budgets = self._known.get(key)
        if budgets is None:
            budgets = self._known[key] = tuple(
                name for name, selector in self.selectors.items() if selector.matches(labels)
            )
        return budgets


class Budgets(Controller):
    """Counts the pods of PodDisruptionBudgets."""

    kind: ClassVar[Kind] = DISRUPTION_BUDGET
    component: ClassVar[str] = "controllermanager"

    def __init__(self, context: WorkloadContext) -> None:
        super().__init__(context)
        self._members: dict[str, _Members] = {}
        self._is_following = False

    def start(self) -> None:
        """Reconcile every budget now, and again whenever its pods change."""
        self._is_following = False
        super().start()

    def forget(self, key: str) -> None:
        """Drop the state of a budget that was deleted."""
        namespace, _, name = key.partition("/")
        if namespace in self._members:
            self._members[namespace].drop(name)

    def reconcile(self, obj: JsonObject) -> float | None:
        """Write how many pods a budget selects, and how many of them may be disrupted."""
        pods = list(self._pods(obj))
        if not pods:
            self.record_normal(obj, "NoPods", "No matching pods found")
        try:
            expected, desired = self._expected(obj, pods)
        except _Uncountable as error:
            self.record_warning(
                obj,
                "CalculateExpectedPodCountFailed",
                f"Failed to calculate the number of expected pods: {error}",
            )
            self._fail(obj, str(error))
            return None
        now = self.now()
        disrupted, wait = self._disrupted(obj, pods, now)
        healthy = sum(
            is_ready(pod) and not is_deleting(pod) and pod["metadata"]["name"] not in disrupted
            for pod in pods
        )
        allowed = max(0, healthy - desired) if expected > 0 else 0
        status: JsonObject = {
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
            "disruptionsAllowed": allowed,
            "observedGeneration": obj["metadata"].get("generation", 0),
        }
        if disrupted:
            status["disruptedPods"] = disrupted
        if conditions := (obj.get("status") or {}).get("conditions"):
            status["conditions"] = conditions
        condition = {
            "type": DISRUPTION_ALLOWED,
            "status": "True" if allowed else "False",
            "reason": "SufficientPods" if allowed else "InsufficientPods",
            "message": "",
            "observedGeneration": status["observedGeneration"],
        }
        self.write_status(obj, with_condition(status, condition, self.now_text()))
        return wait

    def _on_pod(self, event: WatchEvent, before: JsonObject | None) -> None:
        pod = event.object
        meta = pod["metadata"]
        namespace, name = meta["namespace"], meta["name"]
        members = self._members.get(namespace)
        if members is None or not members.selectors:
            return
        if event.type is EventType.MODIFIED and before is not None:
            was = members.meant_by(before)
            if was == members.meant_by(pod) and _is_alike(pod, before):
                return
            for budget in was:
                members.pods[budget].pop(name, None)
                self._on_child_changed(f"{namespace}/{budget}")
        for budget in members.meant_by(pod):
            if event.type is EventType.DELETED:
                members.pods[budget].pop(name, None)
            else:
                members.pods[budget][name] = None
            self._on_child_changed(f"{namespace}/{budget}")

    def _pods(self, obj: JsonObject) -> Iterator[JsonObject]:
        meta = obj["metadata"]
        namespace, name = meta["namespace"], meta["name"]
        members = self._members.setdefault(namespace, _Members())
        selector = self.selector(obj)
        if selector is None:
            members.drop(name)
            return
        if not self._is_following:
            # Subscribe to pods only once there is a budget: most clusters have none.
            self._is_following = True
            self._ends.append(self.store.subscribe(POD, self._on_pod))
        if members.selectors.get(name) != selector:
            members.set(name, selector, self.store.list(POD, Query(namespace=namespace)))
        for pod in members.pods[name]:
            found = self.store.find(POD, pod, namespace)
            if found is not None:
                yield found

    def _expected(self, obj: JsonObject, pods: list[JsonObject]) -> tuple[int, int]:
        """Return `expectedPods` and `desiredHealthy`."""
        spec = obj["spec"]
        if (most := spec.get("maxUnavailable")) is not None:
            expected = self._scale(obj, pods)
            return expected, max(0, expected - share(most, expected, is_rounded_up=True))
        least = spec.get("minAvailable")
        if isinstance(least, int):
            return len(pods), least
        if least is None:
            return 0, 0
        expected = self._scale(obj, pods)
        return expected, share(least, expected, is_rounded_up=True)

    def _scale(self, obj: JsonObject, pods: list[JsonObject]) -> int:
        """Return the sum of the replicas of the pods' controllers; skip pods without controller."""
        scales: dict[str, int] = {}
        seen: set[str] = set()
        is_complete = True
        for pod in pods:
            reference = controller_of(pod)
            if reference is None:
                is_complete = False
            elif reference["uid"] not in seen:
                seen.add(reference["uid"])
                owner, scale = self._owner_scale(pod, reference)
                scales[owner] = scale
        if not is_complete:
            self._warn_of_unmanaged(obj)
        return sum(scales.values())

    def _warn_of_unmanaged(self, obj: JsonObject) -> None:
        selector = self.selector(obj)
        assert selector is not None
        self.record_warning(
            obj,
            "UnmanagedPods",
            f"Pods selected by this PodDisruptionBudget (selector: {label_selector_text(selector)})"
            " were found to be unmanaged. As a result, the status of the PDB cannot be calculated "
            "correctly, which may result in undefined behavior. To account for these pods please "
            'set ".spec.minAvailable" field of the PDB to an integer value.',
        )

    def _owner_scale(self, pod: JsonObject, reference: JsonObject) -> tuple[str, int]:
        namespace = pod["metadata"]["namespace"]
        kind = next((each for each in _SCALED if _is_of(reference, each)), None)
        if kind is None:
            return self._custom_scale(pod, reference)
        owner = self.store.find(kind, reference["name"], namespace)
        if owner is None or owner["metadata"]["uid"] != reference["uid"]:
            raise _Uncountable(f'found no controllers for pod "{pod["metadata"]["name"]}"')
        above = controller_of(owner)
        if kind is REPLICA_SET and above is not None and _is_of(above, DEPLOYMENT):
            deployment = self.store.find(DEPLOYMENT, above["name"], namespace)
            if deployment is None or deployment["metadata"]["uid"] != above["uid"]:
                raise _Uncountable(f'found no controllers for pod "{pod["metadata"]["name"]}"')
            owner = deployment
        replicas = owner["spec"].get("replicas")
        return owner["metadata"]["uid"], 1 if replicas is None else int(replicas)

    def _custom_scale(self, pod: JsonObject, reference: JsonObject) -> tuple[str, int]:
        served = self.store.kinds.by_name(reference["apiVersion"], reference["kind"])
        if served is None:
            raise _Uncountable(
                f'no matches for kind "{reference["kind"]}" in version "{reference["apiVersion"]}"'
            )
        if served.scale is None:
            raise _Uncountable(f"{served.kind.resource} does not implement the scale subresource")
        namespace = pod["metadata"]["namespace"]
        try:
            scale = self.store.get(served.kind, reference["name"], namespace, subresource="scale")
        except ClusterError as error:
            raise _Uncountable(error.message) from error
        return reference["uid"], int((scale.get("spec") or {}).get("replicas") or 0)

    def _disrupted(
        self, obj: JsonObject, pods: list[JsonObject], now: datetime
    ) -> tuple[dict[str, str], float | None]:
        """Return the evicted pods that are about to be deleted, and when to reconcile again."""
        noted = (obj.get("status") or {}).get("disruptedPods") or {}
        left: dict[str, str] = {}
        waits = []
        for pod in pods if noted else ():
            name = pod["metadata"]["name"]
            since = read_time(noted.get(name))
            if since is None or is_deleting(pod):
                continue
            seconds = (since + _GONE_WITHIN - now).total_seconds()
            if seconds < 0:
                message = f"Pod was expected by PDB {key_of(obj)} to be deleted but it wasn't"
                self.record_warning(pod, "NotDeleted", message)
            else:
                left[name] = noted[name]
                waits.append(seconds)
        return left, min(waits) + 1 if waits else None

    def _fail(self, obj: JsonObject, why: str) -> None:
        """Allow no disruption while the expected number of pods is not known."""
        status = {**(obj.get("status") or {}), "disruptionsAllowed": 0}
        for field in ("currentHealthy", "desiredHealthy", "expectedPods"):
            status.setdefault(field, 0)
        condition = {
            "type": DISRUPTION_ALLOWED,
            "status": "False",
            "reason": "SyncFailed",
            "message": why,
            "observedGeneration": status.get("observedGeneration", 0),
        }
        self.write_status(obj, with_condition(status, condition, self.now_text()))


def _is_of(reference: JsonObject, kind: Kind) -> bool:
    return bool(
        reference["kind"] == kind.name and reference["apiVersion"].rpartition("/")[0] == kind.group
    )


def _is_alike(pod: JsonObject, before: JsonObject) -> bool:
    return is_deleting(pod) == is_deleting(before) and is_ready(pod) == is_ready(before)
