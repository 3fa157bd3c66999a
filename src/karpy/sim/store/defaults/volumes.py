"""Defaults of PersistentVolumes, PersistentVolumeClaims and StorageClasses."""

from typing import Final

from karpy.codec.fields import JsonObject
from karpy.sim.store.quantities import canonical_amounts
from karpy.sim.store.sharing import changed, filled, without_nulls

_FILESYSTEM: Final = "Filesystem"


def default_claim(obj: JsonObject) -> JsonObject:
    """Set the defaults of a PersistentVolumeClaim."""
    return changed(obj, "spec", lambda spec: default_claim_spec(without_nulls(spec)))


def default_claim_spec(spec: JsonObject) -> JsonObject:
    """Set the defaults of a claim's spec."""
    spec = filled(spec, {"volumeMode": _FILESYSTEM})
    return changed(spec, "resources", lambda asked: changed(asked, "requests", canonical_amounts))


def begin_claim(obj: JsonObject) -> JsonObject:
    """Set the phase of a new claim."""
    return {**obj, "status": {"phase": "Pending"}}


def default_volume(obj: JsonObject) -> JsonObject:
    """Set the defaults of a PersistentVolume."""

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
    """Set the phase of a new volume."""
    since = obj["metadata"]["creationTimestamp"]
    return {**obj, "status": {"phase": "Pending", "lastPhaseTransitionTime": since}}


def default_class(obj: JsonObject) -> JsonObject:
    """Set the defaults of a StorageClass."""
    return filled(without_nulls(obj), {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"})
