"""The objects read from manifests so far, by kind and name."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

from msgspec.structs import replace

from karpy.codec.admission import (
    AS_WRITTEN,
    AdmissionRules,
    LimitRange,
    PriorityClass,
    RuntimeClass,
    read_limit_range,
    read_priority_class,
    read_runtime_class,
)
from karpy.codec.buffers import read_buffer_record, read_pod_source
from karpy.codec.constraints import check_label
from karpy.codec.crds import read_overlay, read_pool
from karpy.codec.fields import FieldInvalid, Fields
from karpy.codec.objects import (
    read_budget,
    read_controller,
    read_namespace,
    read_service,
)
from karpy.codec.pods import PodReader
from karpy.codec.poolrules import find_faults, find_overlay_faults
from karpy.codec.quotas import ResourceQuota, read_quota
from karpy.codec.records import read_claim_record, read_node_record, read_pool_record
from karpy.codec.storage import read_attach_limits, read_claim, read_class, read_volume
from karpy.codec.uids import derived_uid
from karpy.codec.vocabulary import unknown_in_pod
from karpy.codec.workloads import (
    Workload,
    ephemeral_volumes,
    read_daemon_set,
    read_workload_object,
)
from karpy.model.buffers import BufferRecord, PodSource
from karpy.model.labels import NAMESPACE_NAME
from karpy.model.pods import DaemonSet, DisruptionBudget, Pod, PodController, Service
from karpy.model.pools import NodeOverlay, NodePool
from karpy.model.records import ClaimRecord, NodeRecord
from karpy.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass

Key: TypeAlias = tuple[str, str, str]
"""Kind, namespace and name."""

_Reader: TypeAlias = Callable[[Fields], Iterable[str] | None]
_APPS: Final = "apps"
_BUFFERS: Final = "autoscaling.x-k8s.io"
_KARPENTER: Final = "karpenter.sh"
_STORAGE: Final = "storage.k8s.io"
_WORKLOADS: Final = (
    (_APPS, "Deployment"),
    (_APPS, "ReplicaSet"),
    (_APPS, "StatefulSet"),
    ("batch", "Job"),
    ("", "ReplicationController"),
)
_SELECTING: Final = frozenset({"ReplicaSet", "StatefulSet", "ReplicationController"})

T = TypeVar("T")


class Inventory:
    """Holds the objects that were read; of two objects with one name the later one counts."""

    def __init__(self, well_known: frozenset[str], now: datetime) -> None:
        """Take the well-known labels, and the creation time of pods that have none."""
        self.pods: dict[Key, Pod] = {}
        self.nodes: dict[Key, NodeRecord] = {}
        self.node_claims: dict[Key, ClaimRecord] = {}
        self.pools: dict[Key, NodePool] = {}
        self.overlays: dict[Key, NodeOverlay] = {}
        self.daemons: dict[Key, DaemonSet] = {}
        self.workloads: dict[Key, Workload] = {}
        self.controllers: dict[Key, PodController] = {}
        self.services: dict[Key, Service] = {}
        self.budgets: dict[Key, DisruptionBudget] = {}
        self.volumes: dict[Key, PersistentVolume] = {}
        self.volume_claims: dict[Key, PersistentVolumeClaim] = {}
        self.classes: dict[Key, StorageClass] = {}
        self.namespaces: dict[Key, Mapping[str, str]] = {}
        self.limit_ranges: dict[Key, LimitRange] = {}
        self.runtime_classes: dict[Key, RuntimeClass] = {}
        self.priority_classes: dict[Key, PriorityClass] = {}
        self.quotas: dict[Key, ResourceQuota] = {}
        self.buffers: dict[Key, BufferRecord] = {}
        self.attach_limits: dict[Key, Mapping[str, int | None]] = {}
        self.new_claims: list[PersistentVolumeClaim] = []
        """Claims of ephemeral volumes of pods that are not in the cluster yet."""
        self.repeated: list[Key] = []
        self._well_known = well_known
        self._reader = PodReader(created=now, most=None)
        self._generated = 0
        self._unadmitted: dict[Key, Callable[[AdmissionRules], None]] = {}
        """Functions that read objects without a status again, with the changes of admission."""
        self._sources: dict[tuple[str, str], Callable[[], PodSource]] = {}
        """Functions that read what buffers may refer to, by kind and key."""
        self._readers = self._table()

    def knows(self, group: str, kind: str) -> bool:
        """Say whether objects of a kind are read."""
        return (group, kind) in self._readers

    def add(self, group: str, kind: str, fields: Fields) -> list[str] | None:
        """
        Read an object and return its unknown fields; None if the kind is unknown.

        Raises FieldInvalid if the object is left out, or for a NodePool that is kept as not ready
        because of its faults.
        """
        read = self._readers.get((group, kind))
        return None if read is None else list(read(fields) or ())

    def admit(self) -> None:
        """Apply the changes of admission to pods and templates that are not in the cluster yet."""
        ranges, runtimes = self.limit_ranges.values(), self.runtime_classes.values()
        priorities = self.priority_classes.values()
        if ranges or runtimes or priorities:
            admission = AdmissionRules(ranges, runtimes, priorities)
            for read in self._unadmitted.values():
                read(admission)

    def source_of(self, buffer: BufferRecord) -> PodSource | None:
        """Read what a buffer refers to; None if the input lacks it. Raises FieldInvalid."""
        read = self._sources.get(buffer.source)
        return None if read is None else read()

    def _table(self) -> dict[tuple[str, str], _Reader]:
        plain: tuple[tuple[str, str, dict[Key, Any], Callable[[Fields], object]], ...] = (
            ("", "Node", self.nodes, read_node_record),
            ("", "Service", self.services, read_service),
            ("", "PersistentVolume", self.volumes, read_volume),
            ("", "PersistentVolumeClaim", self.volume_claims, read_claim),
            ("", "LimitRange", self.limit_ranges, read_limit_range),
            ("", "ResourceQuota", self.quotas, read_quota),
            (
                "scheduling.k8s.io",
                "PriorityClass",
                self.priority_classes,
                read_priority_class,
            ),
            ("node.k8s.io", "RuntimeClass", self.runtime_classes, read_runtime_class),
            (_STORAGE, "StorageClass", self.classes, read_class),
            (_STORAGE, "CSINode", self.attach_limits, read_attach_limits),
            ("policy", "PodDisruptionBudget", self.budgets, read_budget),
            (_KARPENTER, "NodeClaim", self.node_claims, read_claim_record),
        )
        table: dict[tuple[str, str], _Reader] = {
            ("", "Pod"): self._add_pod,
            ("", "Namespace"): self._add_namespace,
            ("", "PodTemplate"): self._add_pod_template,
            (_BUFFERS, "CapacityBuffer"): self._add_buffer,
            (_APPS, "DaemonSet"): self._add_daemon_set,
            (_KARPENTER, "NodePool"): self._add_pool,
            (_KARPENTER, "NodeOverlay"): self._add_overlay,
        }
        for group, kind, into, read in plain:
            table[group, kind] = partial(self._add_plain, into, kind, read)
        for group, kind in _WORKLOADS:
            table[group, kind] = partial(self._add_workload, kind)
        return table

    def _add_plain(
        self, into: dict[Key, T], kind: str, read: Callable[[Fields], T], fields: Fields
    ) -> None:
        fields.child("metadata").needed("name")
        self._keep(into, kind, fields, read(fields))

    def _keep(self, into: dict[Key, T], kind: str, fields: Fields, value: T) -> Key:
        namespace = getattr(value, "namespace", "")
        key = (kind, namespace, fields.child("metadata").text("name"))
        if key in into:
            self.repeated.append(key)
        into[key] = value
        return key

    def _keep_unadmitted(
        self, into: dict[Key, T], kind: str, fields: Fields, read: Callable[[AdmissionRules], T]
    ) -> None:
        """Keep an object as it is written, and a function that reads it again after admission."""
        key = self._keep(into, kind, fields, read(AS_WRITTEN))

        def read_again(admission: AdmissionRules) -> None:
            into[key] = read(admission)

        self._unadmitted[key] = read_again

    def _add_pod(self, fields: Fields) -> Iterator[str]:
        fields = self._named(fields)
        meta, spec = fields.child("metadata"), fields.child("spec")
        _check_labels(meta)
        for key in ("name", "namespace", "uid"):
            meta.text(key)
        spec.text("nodeName")
        if fields.obj.get("status"):
            self._keep(self.pods, "Pod", fields, self._read_pod(fields, AS_WRITTEN))
            return unknown_in_pod(spec)
        self._keep_unadmitted(self.pods, "Pod", fields, partial(self._read_pod, fields))
        name, namespace = meta.text("name"), meta.text("namespace") or "default"
        self.new_claims += [
            PersistentVolumeClaim(f"{name}-{volume}", namespace, storage_class=kind)
            for volume, kind in ephemeral_volumes(spec)
        ]
        return unknown_in_pod(spec)

    def _read_pod(self, fields: Fields, admission: AdmissionRules) -> Pod:
        obj = fields.obj
        try:
            if admission is not AS_WRITTEN:
                namespace = fields.child("metadata").text("namespace") or "default"
                obj = {**obj, "spec": admission.admitted(obj["spec"], namespace)}
            return self._reader.read(obj)
        except FieldInvalid as error:
            raise error.within(fields.path) from error

    def _named(self, fields: Fields) -> Fields:
        """Give a pod with a `generateName` a name, as an API server would."""
        meta = fields.child("metadata")
        if "name" in meta or "generateName" not in meta:
            return fields
        self._generated += 1
        name = f"{meta.needed('generateName')}{self._generated}"
        return fields.with_field("metadata", {**meta.obj, "name": name})

    def _add_workload(self, kind: str, fields: Fields) -> Iterator[str]:
        template = fields.child("spec").child("template")
        _check_labels(template.child("metadata"))
        read = partial(read_workload_object, fields, kind, self._reader)
        self._keep_unadmitted(self.workloads, kind, fields, read)
        if kind in _SELECTING:
            self._keep(self.controllers, kind, fields, read_controller(fields, kind))
        self._note_source(kind, fields)
        return unknown_in_pod(template.child("spec"))

    def _add_pod_template(self, fields: Fields) -> Iterator[str]:
        _check_labels(fields.child("template").child("metadata"))
        read_pod_source(fields, "PodTemplate", self._reader)
        self._note_source("PodTemplate", fields)
        return unknown_in_pod(fields.child("template").child("spec"))

    def _add_buffer(self, fields: Fields) -> None:
        record = read_buffer_record(fields)
        uid = record.meta.uid or derived_uid("CapacityBuffer", record.namespace, record.meta.name)
        record = replace(record, meta=replace(record.meta, uid=uid))
        self._keep(self.buffers, "CapacityBuffer", fields, record)

    def _note_source(self, kind: str, fields: Fields) -> None:
        """Keep a function that reads the pod template of an object for buffers."""
        meta = fields.child("metadata")
        key = f"{meta.text('namespace') or 'default'}/{meta.needed('name')}"
        self._sources[kind, key] = partial(read_pod_source, fields, kind, self._reader)

    def _add_daemon_set(self, fields: Fields) -> Iterator[str]:
        template = fields.child("spec").child("template")
        _check_labels(template.child("metadata"))
        read = partial(read_daemon_set, fields, self._reader)
        self._keep_unadmitted(self.daemons, "DaemonSet", fields, read)
        return unknown_in_pod(template.child("spec"))

    def _add_pool(self, fields: Fields) -> None:
        pool = replace(read_pool(fields), record=read_pool_record(fields))
        faults = find_faults(fields, self._well_known)
        if faults:
            pool = replace(pool, is_ready=False)
        self._keep(self.pools, "NodePool", fields, pool)
        _raise_all(faults)

    def _add_overlay(self, fields: Fields) -> None:
        overlay = read_overlay(fields)
        _raise_all(tuple(find_overlay_faults(fields, self._well_known)))
        self._keep(self.overlays, "NodeOverlay", fields, overlay)

    def _add_namespace(self, fields: Fields) -> None:
        name, labels = read_namespace(fields)
        self._keep(self.namespaces, "Namespace", fields, {NAMESPACE_NAME: name, **labels})


def _raise_all(faults: Sequence[FieldInvalid]) -> None:
    """Raise the first fault, if there is one, with the others in it."""
    for fault in faults[:1]:
        fault.others = tuple(faults[1:])
        raise fault


def _check_labels(meta: Fields) -> None:
    labels = meta.child("labels")
    for key in meta.labels("labels"):
        check_label(labels, key)
