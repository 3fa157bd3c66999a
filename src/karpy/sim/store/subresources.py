"""The subresources scale, eviction, binding and finalize."""

from typing import Final

from karpy.codec.fields import JsonObject
from karpy.model.kinds import POD
from karpy.sim.store.answers import no_such_resource, not_allowed
from karpy.sim.store.bindings import bound
from karpy.sim.store.evictions import SUCCESS, Evictions
from karpy.sim.store.ledger import Ledger
from karpy.sim.store.names import ObjectTimes
from karpy.sim.store.registry import Served
from karpy.sim.store.remover import Remover
from karpy.sim.store.scales import scale_of, with_scale
from karpy.sim.store.writer import StoreWriter, Write

_SCALE: Final = "scale"
_FINALIZE: Final = "finalize"


class Subresources:
    """Serves the subresources other than status."""

    def __init__(
        self, ledger: Ledger, writer: StoreWriter, remover: Remover, times: ObjectTimes
    ) -> None:
        self._ledger = ledger
        self._writer = writer
        self._times = times
        self._evictions = Evictions(ledger, remover, times)

    def read(self, served: Served, obj: JsonObject, subresource: str) -> JsonObject:
        """Return the object of a subresource."""
        _check_served(served, subresource)
        return scale_of(served, obj) if subresource == _SCALE else served.seen(obj)

    def create(
        self, served: Served, pod: JsonObject, given: JsonObject, write: Write
    ) -> JsonObject:
        """Evict a pod, or bind it to a node."""
        _check_served(served, write.subresource)
        if write.subresource == "eviction":
            return self._evictions.evict(served, pod, given, is_dry=write.is_dry)
        if write.subresource != "binding":
            raise not_allowed(f"{served.kind.resource}/{write.subresource}")
        placed = bound(pod, given, self._times.text())
        if not write.is_dry:
            self._ledger.change(self._ledger.table(POD), placed, pod)
        return SUCCESS

    def replaces(self, served: Served, subresource: str) -> bool:
        """Say whether `replace` writes a subresource."""
        _check_served(served, subresource)
        return subresource in {_SCALE, _FINALIZE}

    def replace(
        self, served: Served, given: JsonObject, old: JsonObject, write: Write
    ) -> JsonObject:
        """Write the scale of an object, or the finalizers of a namespace."""
        if write.subresource == _SCALE:
            new = with_scale(served, old, given)
            return scale_of(served, self._writer.change(served, new, old, write))
        finalizers = (given.get("spec") or {}).get("finalizers") or []
        spec = {"finalizers": finalizers} if finalizers else {}
        return self._writer.finalize(served, {**old, "spec": spec}, old)


def _check_served(served: Served, subresource: str) -> None:
    if subresource and subresource not in served.subresources:
        raise no_such_resource(f"{served.kind.path}/{served.kind.plural}/{subresource}")
