"""The StatefulSet controller: pods with ordinals and claims, created in order."""

from typing import ClassVar, Final

from karpy.codec.fields import JsonObject
from karpy.errors import ClusterError
from karpy.model.kinds import PERSISTENT_VOLUME_CLAIM, POD, STATEFUL_SET, Kind
from karpy.sim.workloads.controller import WorkloadContext
from karpy.sim.workloads.ordinals import (
    has_identity,
    is_running_and_ready,
    numbered_pod,
    ordinal_of,
    ordinals,
    parent_of,
    partition,
    revision_of,
    wanted,
    with_identity,
)
from karpy.sim.workloads.owners import control_reference, is_deleting
from karpy.sim.workloads.pods import (
    FINISHED,
    PENDING,
    is_available,
    next_available,
    phase_of,
)
from karpy.sim.workloads.revisions import RevisionController, name_of, template_of
from karpy.sim.workloads.statuses import without_zeros
from karpy.sim.workloads.volumeclaims import claims_for, is_stale, with_right_owners

_CLAIM_SECONDS: Final = 1.0

_Pair = tuple[JsonObject, JsonObject]
"""The current revision and the update revision."""


class StatefulSets(RevisionController):
    """Keeps the pods of StatefulSets."""

    kind: ClassVar[Kind] = STATEFUL_SET
    component: ClassVar[str] = "statefulset-controller"
    follows_own_writes: ClassVar[bool] = True

    def __init__(self, context: WorkloadContext) -> None:
        super().__init__(context)
        self.follow(context.pods)
        self._is_claim_going = False
        """Whether a pod cannot be created yet because a claim of its predecessor is deleting."""

    def reconcile(self, obj: JsonObject) -> float | None:
        """Take the next step: create, replace or delete a pod, or several if parallel."""
        name = obj["metadata"]["name"]
        pods = self.context.pods.claimed(
            self.kind, obj, self.selector(obj), may_join=lambda pod: parent_of(pod) == name
        )
        revisions = self.revisions(obj)
        update = self.latest(obj, revisions)
        current = _named(revisions, (obj.get("status") or {}).get("currentRevision")) or update
        failure: ClusterError | None = None
        self._is_claim_going = False
        if not is_deleting(obj):
            try:
                self._step(obj, pods, (current, update))
            except ClusterError as error:
                failure = error
        pods = self.context.pods.of(obj)
        status = self._status(obj, pods, (current, update))
        self.write_status(obj, status)
        live = {status["currentRevision"], name_of(update), *map(revision_of, pods)}
        self.truncate(obj, self.revisions(obj), live)
        if failure is not None:
            raise failure
        if self._is_claim_going:
            return _CLAIM_SECONDS
        return next_available(pods, obj["spec"].get("minReadySeconds", 0), self.now())

    def _step(self, obj: JsonObject, pods: list[JsonObject], pair: _Pair) -> None:
        numbers = ordinals(obj)
        replicas = {ordinal_of(pod): pod for pod in pods if ordinal_of(pod) in numbers}
        condemned = sorted(
            (pod for pod in pods if ordinal_of(pod) >= 0 and ordinal_of(pod) not in numbers),
            key=ordinal_of,
            reverse=True,
        )
        is_ordered = obj["spec"].get("podManagementPolicy") != "Parallel"
        for number in numbers:
            may_go_on = self._keep(obj, replicas, number, pair)
            if is_ordered and not may_go_on:
                return
        for pod in condemned:
            self._own_claims(obj, pod, is_condemned=True)
        if self._condemn(obj, condemned, is_ordered=is_ordered):
            self._update(obj, replicas, name_of(pair[1]))

    def _keep(
        self, obj: JsonObject, replicas: dict[int, JsonObject], number: int, pair: _Pair
    ) -> bool:
        """Ensure the pod of an ordinal; say whether the next ordinal may be processed."""
        pod = replicas.get(number)
        if pod is None:
            made = self._make(obj, number, pair)
            if made is not None:
                replicas[number] = made
            return False
        if phase_of(pod) in FINISHED:
            if not is_deleting(pod):
                self._drop(obj, pod)
            return False
        if phase_of(pod) == PENDING:
            self._make_claims(obj, pod)
        if is_deleting(pod) or not is_running_and_ready(pod) or not self._is_available(obj, pod):
            return False
        if not has_identity(pod):
            replicas[number] = self.store.replace(POD, with_identity(pod))
        self._own_claims(obj, pod, is_condemned=False)
        return True

    def _condemn(self, obj: JsonObject, condemned: list[JsonObject], *, is_ordered: bool) -> bool:
        """Delete pods from the highest ordinal down; say whether updates may follow."""
        if not is_ordered:
            for pod in condemned:
                if not is_deleting(pod):
                    self._drop(obj, pod)
            return True
        if not condemned:
            return True
        first, lowest_first = condemned[0], reversed(condemned)
        sick = next((pod for pod in lowest_first if self._is_unavailable(obj, pod)), None)
        is_blocked = is_deleting(first) or (self._is_unavailable(obj, first) and first is not sick)
        if not is_blocked:
            self._drop(obj, first)
        return False

    def _update(self, obj: JsonObject, replicas: dict[int, JsonObject], revision: str) -> None:
        """Delete the highest outdated pod once the pods above it are available."""
        if (obj["spec"].get("updateStrategy") or {}).get("type") == "OnDelete":
            return
        for number in reversed(ordinals(obj)[partition(obj) :]):
            pod = replicas.get(number)
            if pod is None:
                return
            if revision_of(pod) != revision and not is_deleting(pod):
                self._drop(obj, pod)
                return
            if self._is_unavailable(obj, pod):
                return

    def _make(self, obj: JsonObject, number: int, pair: _Pair) -> JsonObject | None:
        """Create the pod of an ordinal, unless a claim of its predecessor is still deleting."""
        current, update = pair
        is_held_back = number < ordinals(obj).start + partition(obj)
        revision = current if is_held_back and _is_rolling(obj) else update
        reference = control_reference(self.kind, obj)
        draft = numbered_pod(obj, template_of(revision), number, name_of(revision), reference)
        name = draft["metadata"]["name"]
        if any(is_stale(claim, obj, name) for claim in self._claims(obj, number)):
            self._is_claim_going = True
            return None
        try:
            self._make_claims(obj, draft)
            made = self.store.create(POD, draft)
        except ClusterError as error:
            self.record_warning(
                obj,
                "FailedCreate",
                f"Create Pod {name} in StatefulSet {obj['metadata']['name']} failed error: "
                f"{error.message}",
            )
            raise
        self._own_claims(obj, made, is_condemned=False)
        self.record_normal(
            obj,
            "SuccessfulCreate",
            f"Create Pod {name} in StatefulSet {obj['metadata']['name']} successful",
        )
        return made

    def _drop(self, obj: JsonObject, pod: JsonObject) -> None:
        meta = pod["metadata"]
        self.store.delete(POD, meta["name"], namespace=meta["namespace"])
        self.record_normal(
            obj,
            "SuccessfulDelete",
            f"Delete Pod {meta['name']} in StatefulSet {obj['metadata']['name']} successful",
        )

    def _claims(self, obj: JsonObject, number: int) -> list[JsonObject]:
        drafts = (each["metadata"] for each in claims_for(obj, number))
        found = (
            self.store.find(PERSISTENT_VOLUME_CLAIM, meta["name"], meta["namespace"])
            for meta in drafts
        )
        return [each for each in found if each is not None]

    def _make_claims(self, obj: JsonObject, pod: JsonObject) -> None:
        for draft in claims_for(obj, ordinal_of(pod)):
            meta = draft["metadata"]
            if self.store.find(PERSISTENT_VOLUME_CLAIM, meta["name"], meta["namespace"]):
                continue
            self.store.create(PERSISTENT_VOLUME_CLAIM, draft)
            self.record_normal(
                obj,
                "SuccessfulCreate",
                f"Create Claim {meta['name']} Pod {pod['metadata']['name']} in StatefulSet "
                f"{obj['metadata']['name']} success",
            )

    def _own_claims(self, obj: JsonObject, pod: JsonObject, *, is_condemned: bool) -> None:
        for claim in self._claims(obj, ordinal_of(pod)):
            owned = with_right_owners(claim, obj, pod, is_condemned=is_condemned)
            if owned is not claim:
                self.store.replace(PERSISTENT_VOLUME_CLAIM, owned)

    def _is_available(self, obj: JsonObject, pod: JsonObject) -> bool:
        return is_available(pod, obj["spec"].get("minReadySeconds", 0), self.now())

    def _is_unavailable(self, obj: JsonObject, pod: JsonObject) -> bool:
        return is_deleting(pod) or not self._is_available(obj, pod)

    def _status(self, obj: JsonObject, pods: list[JsonObject], pair: _Pair) -> JsonObject:
        current, update = name_of(pair[0]), name_of(pair[1])
        created = [pod for pod in pods if phase_of(pod)]
        staying = [revision_of(pod) for pod in created if not is_deleting(pod)]
        ready = sum(map(is_running_and_ready, pods))
        updated, total = staying.count(update), wanted(obj)
        held = staying.count(current)
        if _is_rolling(obj) and updated == ready == len(created) == total:
            current, held = update, updated
        status = without_zeros(
            {
                "observedGeneration": obj["metadata"].get("generation", 0),
                "readyReplicas": ready,
                "currentReplicas": held,
                "updatedReplicas": updated,
                "currentRevision": current,
                "updateRevision": update,
            }
        )
        status["replicas"] = len(created)
        status["availableReplicas"] = sum(
            is_running_and_ready(pod) and self._is_available(obj, pod) for pod in pods
        )
        status["collisionCount"] = (obj.get("status") or {}).get("collisionCount") or 0
        return status


def _is_rolling(obj: JsonObject) -> bool:
    strategy = obj["spec"].get("updateStrategy") or {}
    return bool(strategy.get("type", "RollingUpdate") == "RollingUpdate")


def _named(revisions: list[JsonObject], name: str | None) -> JsonObject | None:
    return next((each for each in revisions if name_of(each) == name), None)
