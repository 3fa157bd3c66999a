"""The TTL controller: deletes finished Jobs."""

from typing import ClassVar

from karpy.codec.fields import JsonObject
from karpy.model.kinds import JOB, Kind
from karpy.ports.objects import Removal
from karpy.sim.workloads.controller import Controller
from karpy.sim.workloads.jobtallies import outcome_of
from karpy.sim.workloads.owners import is_deleting
from karpy.sim.workloads.pods import read_time


class Expiry(Controller):
    """Deletes finished Jobs after `ttlSecondsAfterFinished`."""

    kind: ClassVar[Kind] = JOB
    component: ClassVar[str] = "ttl-after-finished-controller"

    def reconcile(self, obj: JsonObject) -> float | None:
        """Delete a Job whose TTL is over; else return the seconds until then, or None."""
        seconds = obj["spec"].get("ttlSecondsAfterFinished")
        end = outcome_of(obj)
        if seconds is None or end is None or is_deleting(obj):
            return None
        ended = read_time(end["lastTransitionTime"])
        assert ended is not None
        left = seconds - (self.now() - ended).total_seconds()
        if left > 0:
            return float(left)
        meta = obj["metadata"]
        removal = Removal(uid=meta["uid"], propagation="Foreground")
        self.store.delete(JOB, meta["name"], namespace=meta["namespace"], removal=removal)
        return None
