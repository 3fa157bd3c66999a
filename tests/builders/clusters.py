"""Volumes, and whole clusters as one decision sees them."""

from collections.abc import Iterable, Mapping
from typing import Final, TypedDict, Unpack

from karpy.model.constraints import NodeTerm
from karpy.model.instances import Catalog
from karpy.model.nodes import Node
from karpy.model.pods import DaemonSet, Pod, PodController, Service
from karpy.model.pools import NodeOverlay, NodePool
from karpy.model.settings import Settings
from karpy.model.snapshot import Snapshot
from karpy.model.storage import (
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolume,
    PersistentVolumeClaim,
    Storage,
    StorageClass,
)
from tests.builders.clouds import catalog
from tests.builders.nodes import pool
from tests.builders.pods import NOON

DRIVER: Final = "ebs.csi.example.com"


class VolumeClaimFields(TypedDict, total=False):
    """What a volume claim may say besides its volume and class."""

    phase: str
    is_bind_completed: bool
    is_deleting: bool


def volume_claim(
    name: str,
    *,
    bound_to: str = "",
    storage_class: str | None = "standard",
    namespace: str = "default",
    **fields: Unpack[VolumeClaimFields],
) -> PersistentVolumeClaim:
    """Build a claim that waits for its pod, or one bound (completely) to a volume."""
    return PersistentVolumeClaim(
        name,
        namespace,
        bound_to,
        storage_class,
        fields.get("phase", "Bound" if bound_to else "Pending"),
        fields.get("is_bind_completed", bool(bound_to)),
        fields.get("is_deleting", False),
    )


def volume(
    name: str, *terms: NodeTerm, driver: str | None = DRIVER, is_local: bool = False
) -> PersistentVolume:
    """Build a volume by the alternatives of where it can be used."""
    return PersistentVolume(name, driver, terms, is_local)


def storage_class(
    name: str = "standard",
    *topologies: NodeTerm,
    provisioner: str = DRIVER,
    binding_mode: str = WAIT_FOR_FIRST_CONSUMER,
) -> StorageClass:
    """Build a class whose volumes wait for their first pod."""
    return StorageClass(name, provisioner, binding_mode, topologies)


def storage(
    *objects: PersistentVolumeClaim | PersistentVolume | StorageClass,
) -> Storage:
    """Index claims, volumes and classes; the class `standard` is always there."""
    standard = storage_class()
    return Storage(
        claims={each.key: each for each in objects if isinstance(each, PersistentVolumeClaim)},
        volumes={each.name: each for each in objects if isinstance(each, PersistentVolume)},
        classes={standard.name: standard}
        | {each.name: each for each in objects if isinstance(each, StorageClass)},
    )


class SnapshotFields(TypedDict, total=False):
    """What a snapshot may say."""

    pods: Iterable[Pod]
    nodes: Iterable[Node]
    pools: Iterable[NodePool]
    daemons: Iterable[DaemonSet]
    catalog: Catalog
    overlays: Iterable[NodeOverlay]
    storage: Storage
    namespaces: Mapping[str, Mapping[str, str]]
    services: Iterable[Service]
    controllers: Iterable[PodController]
    settings: Settings


def snapshot(**fields: Unpack[SnapshotFields]) -> Snapshot:
    """Build a cluster with one pool, `default`, and the twelve types unless told otherwise."""
    return Snapshot(
        now=NOON,
        pods=tuple(fields.get("pods", ())),
        nodes=tuple(fields.get("nodes", ())),
        pools=tuple(fields.get("pools", (pool(),))),
        daemons=tuple(fields.get("daemons", ())),
        catalog=fields.get("catalog", catalog()),
        overlays=tuple(fields.get("overlays", ())),
        storage=fields.get("storage", storage()),
        namespaces=fields.get("namespaces", {"default": {}}),
        services=tuple(fields.get("services", ())),
        controllers=tuple(fields.get("controllers", ())),
        settings=fields.get("settings", Settings()),
    )
