"""Volumes, their claims and classes, as far as scheduling reads them."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from karpy.model.constraints import NodeTerm

IMMEDIATE: Final = "Immediate"
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"


class PersistentVolumeClaim(Struct, frozen=True, gc=False):
    """A PersistentVolumeClaim, bound or not."""

    name: str
    namespace: str
    volume_name: str = ""
    storage_class: str | None = None
    phase: str = ""
    is_bind_completed: bool = False
    is_deleting: bool = False

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class PersistentVolume(Struct, frozen=True, gc=False):
    """A PersistentVolume; `terms` are the alternatives of its node affinity."""

    name: str
    driver: str | None = None
    """The CSI driver that attaches it; None if attachments are not counted."""
    terms: tuple[NodeTerm, ...] = ()
    is_local: bool = False
    is_deleting: bool = False


class StorageClass(Struct, frozen=True, gc=False):
    """A StorageClass; its allowed `topologies` are alternatives."""

    name: str
    provisioner: str
    binding_mode: str = IMMEDIATE
    topologies: tuple[NodeTerm, ...] = ()
    is_default: bool = False


class VolumeAttachment(Struct, frozen=True, gc=False):
    """A VolumeAttachment."""

    name: str
    node_name: str
    volume: str = ""
    """Name of the PersistentVolume; empty for an inline volume."""


class Storage(Struct, frozen=True, gc=False):
    """All claims by `namespace/name`, all volumes and classes by name."""

    claims: Mapping[str, PersistentVolumeClaim] = {}
    volumes: Mapping[str, PersistentVolume] = {}
    classes: Mapping[str, StorageClass] = {}
