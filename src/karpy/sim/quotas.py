"""The statuses of ResourceQuotas: what is bounded, and how much of it is used."""

from typing import ClassVar

from karpy.codec.fields import JsonObject
from karpy.model.kinds import RESOURCE_QUOTA, Kind
from karpy.sim.workloads.controller import Controller


class Quotas(Controller):
    """Writes how much of each quota is used."""

    kind: ClassVar[Kind] = RESOURCE_QUOTA
    component: ClassVar[str] = "resourcequota-controller"

    def start(self) -> None:
        """Look at every quota there is, and then at each of which more or less is used."""
        self._ends.append(self.store.quotas.on_change(self.worker.add))
        super().start()

    def reconcile(self, obj: JsonObject) -> float | None:
        """Bring the status of a quota up to date."""
        meta = obj["metadata"]
        used = self.store.quotas.used(meta["namespace"], meta["name"])
        self.write_status(obj, {"hard": (obj.get("spec") or {}).get("hard") or {}, "used": used})
        return None
