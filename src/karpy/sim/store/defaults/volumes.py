"""What an API server fills in for volumes, their claims and classes."""

from typing import Final

from karpy.codec.fields import JsonObject
from karpy.sim.store.quantities import canonical_amounts
from karpy.sim.store.sharing import changed, filled, without_nulls

_FILESYSTEM: Final = "Filesystem"


def default_claim(obj: JsonObject) -> JsonObject:
    """Fill in a PersistentVolumeClaim."""
    return changed(obj, "spec", lambda spec: default_claim_spec(without_nulls(spec)))


def default_claim_spec(spec: JsonObject) -> JsonObject:
    """Fill in what a claim asks for."""
    spec = filled(spec, {"volumeMode": _FILESYSTEM})
    return changed(spec, "resources", lambda asked: changed(asked, "requests", canonical_amounts))


def begin_claim(obj: JsonObject) -> JsonObject:
    """Give a new claim its phase."""
    return {**obj, "status": {"phase": "Pending"}}


def default_volume(obj: JsonObject) -> JsonObject:
    """Fill in a PersistentVolume."""

    def fill(spec: JsonObject) -> JsonObject:
        spec = filled(
            without_nulls(spec),
            {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": _FILESYSTEM},
        )
        spec = changed(
            spec, "hostPath", lambda path: path if "type" in path else {**path, "type": ""}
        )
        return changed(spec, "capacity", canonical_amounts)

    return changed(obj, "spec", fill)


def begin_volume(obj: JsonObject) -> JsonObject:
    """Give a new volume its phase."""
    since = obj["metadata"]["creationTimestamp"]
    return {**obj, "status": {"phase": "Pending", "lastPhaseTransitionTime": since}}


def default_class(obj: JsonObject) -> JsonObject:
    """Fill in a StorageClass."""
    return filled(without_nulls(obj), {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"})
