"""The Deployment controller: rolling updates and recreation of ReplicaSets."""

from typing import ClassVar

from karpy.codec.fields import JsonObject
from karpy.model.kinds import DEPLOYMENT, Kind
from karpy.sim.workloads.conditions import find_condition, put_condition
from karpy.sim.workloads.controller import WorkloadContext
from karpy.sim.workloads.fleets import FleetController, fleet_of, grown
from karpy.sim.workloads.owners import is_deleting
from karpy.sim.workloads.pods import FINISHED, phase_of
from karpy.sim.workloads.progress import (
    PAUSED,
    PROGRESSING,
    RESUMED,
    TIMED_OUT,
    RolloutReplicaSets,
    condition,
    counts,
    is_complete,
    judged,
    seconds_until_timeout,
)
from karpy.sim.workloads.proportions import new_sizes
from karpy.sim.workloads.replicas import (
    DESIRED,
    available,
    counted,
    noted,
    size,
    total_size,
)
from karpy.sim.workloads.strategies import deadline, is_rolling, unavailable, wanted


class Deployments(FleetController):
    """Rolls out the templates of Deployments."""

    kind: ClassVar[Kind] = DEPLOYMENT
    component: ClassVar[str] = "deployment-controller"

    def __init__(self, context: WorkloadContext) -> None:
        super().__init__(context)
        self.follow(context.replica_sets)

    def reconcile(self, obj: JsonObject) -> float | None:
        """Take the next step of a rollout, and write its progress."""
        if not any((obj["spec"].get("selector") or {}).values()):
            self._refuse(obj)
            return None
        sets = self.context.replica_sets.claimed(self.kind, obj, self.selector(obj))
        if is_deleting(obj):
            self.write_status(obj, counts(obj, fleet_of(obj, sets), self.now_text()))
            return None
        obj = self._with_pause(obj)
        fleet = fleet_of(obj, sets)
        if fleet.new is not None:
            obj = self.renew(obj, fleet)
        if obj["spec"].get("paused") or _is_resized(obj, fleet):
            return self._resize(obj, fleet)
        obj = self._roll(obj, fleet) if is_rolling(obj) else self._recreate(obj, fleet)
        return self._report(obj, fleet)

    def _refuse(self, obj: JsonObject) -> None:
        self.record_warning(
            obj,
            "SelectingAll",
            "This deployment is selecting all pods. A non-empty selector is required.",
        )
        seen = {"observedGeneration": obj["metadata"].get("generation", 0)}
        self.write_status(obj, {**(obj.get("status") or {}), **seen})

    def _with_pause(self, obj: JsonObject) -> JsonObject:
        """Write the condition of a pause or its end: a pause does not count for the deadline."""
        status = obj.get("status") or {}
        current = find_condition(status, PROGRESSING) or {}
        if deadline(obj) is None or current.get("reason") == TIMED_OUT:
            return obj
        is_paused, was_paused = bool(obj["spec"].get("paused")), current.get("reason") == PAUSED
        if is_paused == was_paused:
            return obj
        what = (
            condition(PROGRESSING, "Unknown", PAUSED, "Deployment is paused")
            if is_paused
            else condition(PROGRESSING, "Unknown", RESUMED, "Deployment is resumed")
        )
        return self.write_status(obj, put_condition(status, what, self.now_text()))

    def _resize(self, obj: JsonObject, fleet: RolloutReplicaSets) -> float | None:
        """Scale the ReplicaSets in proportion to the new size of the Deployment."""
        total = wanted(obj)
        active = [each for each in fleet.live if size(each)]
        if len(active) <= 1:
            newest = active or fleet.all[-1:]
            for each in newest:
                self.scale(obj, fleet, each, total)
        elif _is_saturated(obj, fleet.new):
            for each in active:
                if each is not fleet.new:
                    self.scale(obj, fleet, each, 0)
        elif is_rolling(obj):
            for each, number in new_sizes(obj, active):
                self.scale(obj, fleet, each, number)
        is_paused = bool(obj["spec"].get("paused"))
        if is_paused:
            self.clean_up(obj, fleet)
        self.write_status(obj, counts(obj, fleet, self.now_text()))
        return None if is_paused else 0.0

    def _roll(self, obj: JsonObject, fleet: RolloutReplicaSets) -> JsonObject:
        if fleet.new is None:
            obj = self.make(obj, fleet)
        new = fleet.new
        if new is None:
            return obj
        total = wanted(obj)
        if size(new) > total:
            self.scale(obj, fleet, new, total)
        elif size(new) < total:
            self.scale(obj, fleet, new, grown(obj, fleet, size(new)))
        self._shrink_old(obj, fleet)
        if is_complete(obj, obj.get("status") or {}):
            self.clean_up(obj, fleet)
        return obj

    def _shrink_old(self, obj: JsonObject, fleet: RolloutReplicaSets) -> None:
        """Scale down old ReplicaSets, unhealthy pods first, while enough pods stay available."""
        new = fleet.new
        assert new is not None
        old = [each for each in fleet.live_old if size(each)]
        if not old:
            return
        least = wanted(obj) - unavailable(obj)
        spare = total_size(old) + size(new) - least - (size(new) - available(new))
        if spare <= 0:
            return
        for each in old:
            broken = min(spare, size(each) - available(each))
            if broken > 0:
                spare -= broken
                self.scale(obj, fleet, each, size(each) - broken)
        spare = sum(map(available, fleet.live)) - least
        for each in list(fleet.live_old):
            fewer = min(spare, size(each))
            if fewer > 0:
                spare -= fewer
                self.scale(obj, fleet, each, size(each) - fewer)

    def _recreate(self, obj: JsonObject, fleet: RolloutReplicaSets) -> JsonObject:
        is_shrinking = False
        for each in list(fleet.live_old):
            if size(each):
                self.scale(obj, fleet, each, 0)
                is_shrinking = True
        if is_shrinking or self._are_old_running(fleet):
            return obj
        if fleet.new is None:
            obj = self.make(obj, fleet)
        if fleet.new is not None:
            self.scale(obj, fleet, fleet.new, wanted(obj))
        if is_complete(obj, obj.get("status") or {}):
            self.clean_up(obj, fleet)
        return obj

    def _are_old_running(self, fleet: RolloutReplicaSets) -> bool:
        return counted(fleet.old, "replicas") > 0 or any(
            phase_of(pod) not in FINISHED
            for each in fleet.old
            for pod in self.context.pods.of(each)
        )

    def _report(self, obj: JsonObject, fleet: RolloutReplicaSets) -> float | None:
        now = self.now()
        status = judged(obj, fleet, counts(obj, fleet, self.now_text()), now)
        self.write_status(obj, status)
        return seconds_until_timeout(obj, status, now)


def _is_resized(deployment: JsonObject, fleet: RolloutReplicaSets) -> bool:
    """Say whether a Deployment was scaled since its size was last written to its ReplicaSets."""
    total = wanted(deployment)
    return any(size(each) and noted(each, DESIRED) not in {None, total} for each in fleet.live)


def _is_saturated(deployment: JsonObject, new: JsonObject | None) -> bool:
    total = wanted(deployment)
    return new is not None and size(new) == noted(new, DESIRED) == available(new) == total
