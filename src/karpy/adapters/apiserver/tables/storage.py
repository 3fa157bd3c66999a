"""Tables of storage kinds."""

from datetime import datetime
from typing import Any, Final

from karpy.adapters.apiserver.tables.cells import NONE, UNSET, age, joined, name_of, part
from karpy.adapters.apiserver.tables.printers import Printer, PrinterColumn, columns
from karpy.codec.fields import JsonObject

_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_DEFAULT: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_OLD_CLASS: Final = "volume.beta.kubernetes.io/storage-class"


def _volume(obj: JsonObject, now: datetime) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    claim = spec.get("claimRef")
    return [
        name_of(obj),
        part(spec, "capacity").get("storage", "0"),
        _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        _phase(obj),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        _class_of(obj),
        spec.get("volumeAttributesClassName") or UNSET,
        status.get("reason", ""),
        age(obj, now),
        spec.get("volumeMode") or UNSET,
    ]


def _claim(obj: JsonObject, now: datetime) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    is_bound = bool(spec.get("volumeName"))
    return [
        name_of(obj),
        _phase(obj),
        spec.get("volumeName", ""),
        part(status, "capacity").get("storage", "0") if is_bound else "",
        _modes(status.get("accessModes")) if is_bound else "",
        _class_of(obj),
        spec.get("volumeAttributesClassName") or UNSET,
        age(obj, now),
        spec.get("volumeMode") or UNSET,
    ]


def _phase(obj: JsonObject) -> str:
    if "deletionTimestamp" in obj["metadata"]:
        return "Terminating"
    return str(part(obj, "status").get("phase", ""))


def _class_of(obj: JsonObject) -> str:
    old = part(obj, "metadata", "annotations").get(_OLD_CLASS)
    return str(old or part(obj, "spec").get("storageClassName") or "")


def _modes(modes: list[str] | None) -> str:
    given = modes or ()
    return joined((short for mode, short in _MODES.items() if mode in given), "")


def _storage_class(obj: JsonObject, now: datetime) -> list[Any]:
    notes = part(obj, "metadata", "annotations")
    is_default = any(notes.get(key) == "true" for key in _DEFAULT)
    return [
        f"{name_of(obj)} (default)" if is_default else name_of(obj),
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy", "Delete"),
        obj.get("volumeBindingMode", UNSET),
        bool(obj.get("allowVolumeExpansion")),
        age(obj, now),
    ]


def _csi_node(obj: JsonObject, now: datetime) -> list[Any]:
    return [name_of(obj), len(part(obj, "spec").get("drivers") or ()), age(obj, now)]


def _attachment(obj: JsonObject, now: datetime) -> list[Any]:
    spec = part(obj, "spec")
    return [
        name_of(obj),
        spec.get("attacher", ""),
        part(spec, "source").get("persistentVolumeName") or NONE,
        spec.get("nodeName", ""),
        bool(part(obj, "status").get("attached")),
        age(obj, now),
    ]


STORAGE: Final = {
    ("", "PersistentVolume"): Printer(
        columns(
            "Name | Capacity | Access Modes | Reclaim Policy | Status | Claim | StorageClass | "
            "VolumeAttributesClass | Reason | Age | (VolumeMode)"
        ),
        _volume,
    ),
    ("", "PersistentVolumeClaim"): Printer(
        columns(
            "Name | Status | Volume | Capacity | Access Modes | StorageClass | "
            "VolumeAttributesClass | Age | (VolumeMode)"
        ),
        _claim,
    ),
    ("storage.k8s.io", "StorageClass"): Printer(
        columns(
            "Name | Provisioner | ReclaimPolicy | VolumeBindingMode | AllowVolumeExpansion | Age"
        ),
        _storage_class,
    ),
    ("storage.k8s.io", "CSINode"): Printer(columns("Name | #Drivers | Age"), _csi_node),
    ("storage.k8s.io", "VolumeAttachment"): Printer(
        (
            *columns("Name"),
            PrinterColumn("Attacher", format="name"),
            *columns("PV | Node | ?Attached | Age"),
        ),
        _attachment,
    ),
}
