"""The resource quota controller: the status of ResourceQuotas."""

from typing import ClassVar

from karpy.codec.fields import JsonObject
from karpy.model.kinds import RESOURCE_QUOTA, Kind
from karpy.sim.workloads.controller import Controller


class QuotaController(Controller):
    """Writes `status.hard` and `status.used` of ResourceQuotas."""

    kind: ClassVar[Kind] = RESOURCE_QUOTA
    component: ClassVar[str] = "resourcequota-controller"

    def start(self) -> None:
        """Reconcile every quota now, and again whenever its usage changes."""
        self._ends.append(self.store.quotas.on_change(self.worker.add))
        super().start()

    def reconcile(self, obj: JsonObject) -> float | None:
        """Update the status of a quota."""
        meta = obj["metadata"]
        used = self.store.quotas.used(meta["namespace"], meta["name"])
        self.write_status(obj, {"hard": (obj.get("spec") or {}).get("hard") or {}, "used": used})
        return None
