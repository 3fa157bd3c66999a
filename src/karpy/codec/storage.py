"""PersistentVolumes, their claims, StorageClasses and attach limits from plain objects."""

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from karpy.codec.constraints import read_node_terms
from karpy.codec.fields import Fields
from karpy.model.constraints import NodeTerm
from karpy.model.labels import ZONE
from karpy.model.requirements import Requirement, one_of
from karpy.model.storage import (
    IMMEDIATE,
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolume,
    PersistentVolumeClaim,
    Storage,
    StorageClass,
    VolumeAttachment,
)

EBS_DRIVER: Final = "ebs.csi.aws.com"
_IN_TREE: Final = {"kubernetes.io/aws-ebs": EBS_DRIVER}
_ZONE_KEYS: Final = frozenset({"topology.ebs.csi.aws.com/zone"})
"""Topology keys of CSI drivers for the zone; new nodes only have the well-known zone label."""
_BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_ANNOTATIONS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_USUAL_CLASS: Final = "default"
_BINDING_MODES: Final = frozenset({IMMEDIATE, WAIT_FOR_FIRST_CONSUMER})


def read_claim(fields: Fields) -> PersistentVolumeClaim:
    """Read a PersistentVolumeClaim; its class is None if it names none, which is not `""`."""
    meta, spec = fields.child("metadata"), fields.child("spec")
    phase, volume = fields.child("status").text("phase"), spec.text("volumeName")
    # A claim from a cluster has a phase; a hand-written claim with a volume will be bound.
    will_be_bound = bool(volume) and not phase
    return PersistentVolumeClaim(
        name=meta.needed("name"),
        namespace=meta.text("namespace") or "default",
        volume_name=volume,
        storage_class=read_claim_class(fields),
        phase=phase,
        is_bind_completed=will_be_bound or _BIND_COMPLETED in meta.labels("annotations"),
        is_deleting="deletionTimestamp" in meta,
    )


def read_claim_class(fields: Fields) -> str | None:
    """Read the class that a claim, or a template of one, names."""
    annotated = fields.child("metadata").labels("annotations").get(_CLASS_ANNOTATION)
    if annotated is not None:
        return annotated
    spec = fields.child("spec")
    return spec.text("storageClassName") if "storageClassName" in spec else None


def read_attachment(fields: Fields) -> VolumeAttachment:
    """Read a VolumeAttachment."""
    spec = fields.child("spec")
    return VolumeAttachment(
        name=fields.child("metadata").needed("name"),
        node_name=spec.text("nodeName"),
        volume=spec.child("source").text("persistentVolumeName"),
    )


def read_volume(fields: Fields) -> PersistentVolume:
    """Read a PersistentVolume."""
    meta, spec = fields.child("metadata"), fields.child("spec")
    driver = None
    if "csi" in spec:
        driver = spec.child("csi").needed("driver")
    elif "awsElasticBlockStore" in spec:
        driver = EBS_DRIVER
    terms = read_node_terms(spec.child("nodeAffinity").child("required"), "nodeSelectorTerms")
    return PersistentVolume(
        name=meta.needed("name"),
        driver=driver,
        terms=tuple(_with_known_zone(term) for term in terms),
        is_local="local" in spec or "hostPath" in spec,
        is_deleting="deletionTimestamp" in meta,
    )


def read_class(fields: Fields) -> StorageClass:
    """Read a StorageClass; the names of in-tree provisioners become those of their CSI drivers."""
    meta = fields.child("metadata")
    annotations = meta.labels("annotations")
    provisioner = fields.needed("provisioner")
    return StorageClass(
        name=meta.needed("name"),
        provisioner=_IN_TREE.get(provisioner, provisioner),
        binding_mode=fields.choice("volumeBindingMode", _BINDING_MODES, IMMEDIATE),
        topologies=tuple(_topology(each) for each in fields.children("allowedTopologies")),
        is_default=any(annotations.get(each) == "true" for each in _DEFAULT_ANNOTATIONS),
    )


def read_attach_limits(fields: Fields) -> dict[str, int | None]:
    """Read the attach limits of a CSINode by driver; None is unlimited."""
    limits: dict[str, int | None] = {}
    for driver in fields.child("spec").children("drivers"):
        count = driver.child("allocatable").number("count")
        if count is not None and count < 0:
            driver.fail("allocatable.count", f"is {count}", "write a count of 0 or more")
        limits[driver.needed("name")] = count
    return limits


def gather_storage(
    claims: Iterable[PersistentVolumeClaim],
    volumes: Iterable[PersistentVolume],
    classes: Iterable[StorageClass],
) -> Storage:
    """Put storage together; a claim without a class gets the default one, if there is one."""
    by_name = {each.name: each for each in classes}
    defaults = sorted(name for name, each in by_name.items() if each.is_default)
    default = defaults[0] if defaults else None
    return Storage(
        claims={each.key: _with_class(each, default) for each in claims},
        volumes={each.name: each for each in volumes},
        classes=by_name,
    )


def with_usual_class(
    claims: Iterable[PersistentVolumeClaim], classes: Iterable[StorageClass]
) -> tuple[list[StorageClass], list[str]]:
    """
    Return the StorageClasses of a cluster, and the names of assumed ones.

    If the input has no StorageClass at all, claims without a volume get an assumed class, which
    creates volumes in the zone of the pod.
    """
    given = list(classes)
    wanted = {each.storage_class for each in claims if not each.volume_name} - {""}
    if given or not wanted:
        return given, []
    usual = [
        StorageClass(
            name or _USUAL_CLASS,
            provisioner="",
            binding_mode=WAIT_FOR_FIRST_CONSUMER,
            is_default=name is None,
        )
        for name in sorted(wanted, key=lambda each: each or "")
    ]
    return usual, [each.name for each in usual]


def _with_class(claim: PersistentVolumeClaim, default: str | None) -> PersistentVolumeClaim:
    if claim.storage_class is not None or claim.volume_name or default is None:
        return claim
    return replace(claim, storage_class=default)


def _topology(fields: Fields) -> NodeTerm:
    expressions = []
    for each in fields.children("matchLabelExpressions"):
        values = each.texts("values")
        if not values:
            each.fail("values", "is empty", "add at least one value")
        expressions.append(one_of(_known_zone_key(each.needed("key")), *values))
    return NodeTerm(tuple(expressions))


def _with_known_zone(term: NodeTerm) -> NodeTerm:
    return replace(term, expressions=tuple(_renamed(each) for each in term.expressions))


def _renamed(requirement: Requirement) -> Requirement:
    key = _known_zone_key(requirement.key)
    return requirement if key == requirement.key else replace(requirement, key=key)


def _known_zone_key(key: str) -> str:
    return ZONE if key in _ZONE_KEYS else key
