"""The limits of attached volumes per node."""

from collections import Counter
from typing import Final

from karpy.codec.fields import JsonObject
from karpy.model.kinds import (
    CSI_NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    VOLUME_ATTACHMENT,
)
from karpy.sim.scheduler.claims import annotation, find_class, key_of, volume_name
from karpy.sim.scheduler.nodes import NodeInfo
from karpy.sim.scheduler.podinfos import PodInfo
from karpy.sim.store.store import Store

_MIGRATED: Final = "storage.alpha.kubernetes.io/migrated-plugins"
_EBS: Final = "kubernetes.io/aws-ebs"
_DRIVERS: Final = {_EBS: "ebs.csi.aws.com"}
"""In-tree plugins migrated to a CSI driver, on nodes whose CSINode says so."""

_Attached = dict[str, str]
"""CSI drivers by a unique name of the volume."""


class Attachments:
    """Compares the attached volumes of nodes with the limits in their CSINodes."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._by_node: dict[str, list[JsonObject]] | None = None

    def would_exceed(self, pod: PodInfo, node: NodeInfo) -> bool:
        """Say whether a pod's volumes would exceed the limits of a node."""
        csi_node = self._store.find(CSI_NODE, node.name)
        limits = _limits(csi_node)
        if csi_node is None or not limits:
            return False
        wanted = self._volumes_of(pod, csi_node)
        if not wanted:
            return False
        attached: _Attached = {}
        for other in node.pods.values():
            if other.volumes:
                attached |= self._volumes_of(other, csi_node)
        new = Counter(driver for name, driver in wanted.items() if name not in attached)
        there = Counter({**self._attached_to(node.name), **attached}.values())
        return any(
            driver in limits and there[driver] + count > limits[driver]
            for driver, count in new.items()
        )

    def _volumes_of(self, pod: PodInfo, csi_node: JsonObject) -> _Attached:
        found = {}
        for each in pod.volumes:
            if each.get("persistentVolumeClaim"):
                name = each["persistentVolumeClaim"].get("claimName") or ""
            elif each.get("ephemeral"):
                name = f"{pod.name}-{each['name']}"
            else:
                continue
            claim = self._store.find(PERSISTENT_VOLUME_CLAIM, name, pod.namespace)
            identity = self._identity(claim, csi_node) if claim is not None else None
            if identity is not None:
                found[identity[0]] = identity[1]
        return found

    def _identity(self, claim: JsonObject, csi_node: JsonObject) -> tuple[str, str] | None:
        """Return the volume of a claim and its driver; None if it is not counted."""
        name = volume_name(claim)
        volume = self._store.find(PERSISTENT_VOLUME, name) if name else None
        if volume is None:
            storage_class = find_class(self._store, claim) or {}
            provisioner = storage_class.get("provisioner") or ""
            driver = _driver(provisioner, csi_node) if provisioner in _DRIVERS else provisioner
            return (f"{driver}/claim/{key_of(claim)}", driver) if driver else None
        return _identity_of(volume, csi_node)

    def _attached_to(self, node: str) -> _Attached:
        if self._by_node is None:
            self._by_node = {}
            for each in self._store.list(VOLUME_ATTACHMENT):
                self._by_node.setdefault(each["spec"].get("nodeName") or "", []).append(each)
        found = {}
        for each in self._by_node.get(node, ()):
            name = (each["spec"].get("source") or {}).get("persistentVolumeName")
            volume = self._store.find(PERSISTENT_VOLUME, name) if name else None
            csi = volume["spec"].get("csi") if volume else None
            driver = each["spec"].get("attacher")
            if csi and driver:
                found[f"{driver}/{csi.get('volumeHandle')}"] = driver
        return found


def _identity_of(volume: JsonObject, csi_node: JsonObject) -> tuple[str, str] | None:
    csi, disk = volume["spec"].get("csi"), volume["spec"].get("awsElasticBlockStore")
    if csi:
        driver, handle = csi.get("driver"), csi.get("volumeHandle")
    elif disk:
        driver, handle = _driver(_EBS, csi_node), disk.get("volumeID")
    else:
        return None
    return (f"{driver}/{handle}", driver) if driver and handle else None


def _driver(plugin: str, csi_node: JsonObject) -> str:
    migrated = (annotation(csi_node, _MIGRATED) or "").split(",")
    return _DRIVERS[plugin] if plugin in migrated else ""


def _limits(csi_node: JsonObject | None) -> dict[str, int]:
    drivers = ((csi_node or {}).get("spec") or {}).get("drivers") or ()
    return {
        each["name"]: each["allocatable"]["count"]
        for each in drivers
        if (each.get("allocatable") or {}).get("count") is not None
    }
