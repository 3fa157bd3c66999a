"""The topology of a pod's volumes, and the attach limits of nodes (section 6)."""

from collections.abc import Iterable, Mapping
from itertools import product

from karpy.model.constraints import NodeTerm
from karpy.model.labels import HOSTNAME
from karpy.model.pods import HostPort, Pod
from karpy.model.requirements import Requirement, Requirements, collect, merge, why_disjoint
from karpy.model.storage import IMMEDIATE, PersistentVolumeClaim, Storage
from karpy.model.verdicts import Reason

Attachments = dict[str, set[str]]
"""Distinct `namespace/claim` by CSI driver."""


def claims_of(pod: Pod, storage: Storage) -> list[PersistentVolumeClaim | None]:
    """Return the claim of each volume, None where it does not exist."""
    names = (volume.claim_of(pod.name) for volume in pod.rules.volumes)
    return [storage.claims.get(f"{pod.namespace}/{name}") for name in names]


def why_unusable(pod: Pod, storage: Storage) -> Reason | None:
    """Return the first reason why a volume keeps the pod from being placed, or None."""
    for claim in claims_of(pod, storage):
        if why := _why_claim_unusable(claim, storage):
            return why
    return None


def _why_claim_unusable(claim: PersistentVolumeClaim | None, storage: Storage) -> Reason | None:
    if claim is None:
        return Reason.VOLUME_CLAIM_MISSING
    if claim.is_deleting:
        return Reason.VOLUME_CLAIM_DELETING
    if claim.phase == "Lost":
        return Reason.VOLUME_CLAIM_LOST
    if claim.volume_name:
        return _why_bound_unusable(claim, storage)
    kind = storage.classes.get(claim.storage_class or "")
    if kind is None:
        return Reason.STORAGE_CLASS_MISSING
    return Reason.VOLUME_CLAIM_IMMEDIATE if kind.binding_mode == IMMEDIATE else None


def _why_bound_unusable(claim: PersistentVolumeClaim, storage: Storage) -> Reason | None:
    volume = storage.volumes.get(claim.volume_name)
    if volume is None:
        return Reason.VOLUME_MISSING
    if volume.is_deleting:
        return Reason.VOLUME_DELETING
    return None if claim.is_bind_completed else Reason.VOLUME_CLAIM_BINDING


def volume_alternatives(pod: Pod, storage: Storage) -> list[Requirements]:
    """Return the alternative requirements of the volumes; an empty one if there are none."""
    choices = [_places(claim, storage) for claim in claims_of(pod, storage) if claim]
    return [merge(*each) for each in product(*choices) if _is_sound(each)]


def _places(claim: PersistentVolumeClaim, storage: Storage) -> list[dict[str, Requirement]]:
    terms: tuple[NodeTerm, ...] = ()
    is_local = False
    if volume := storage.volumes.get(claim.volume_name):
        terms, is_local = volume.terms, volume.is_local
    elif kind := storage.classes.get(claim.storage_class or ""):
        terms = kind.topologies
    places = [
        collect(each for each in term.expressions if not (is_local and each.key == HOSTNAME))
        for term in terms
    ]
    return places or [{}]


def _is_sound(combination: tuple[Requirements, ...]) -> bool:
    together: Requirements = {}
    for each in combination:
        if why_disjoint(together, each):
            return False
        together = merge(together, each)
    return True


def attachments(pod: Pod, storage: Storage) -> Attachments:
    """Return the volumes that a pod attaches, by CSI driver; skip volumes without a driver."""
    result: Attachments = {}
    for claim in claims_of(pod, storage):
        driver = _driver(claim, storage) if claim else None
        if claim and driver:
            result.setdefault(driver, set()).add(claim.key)
    return result


def _driver(claim: PersistentVolumeClaim, storage: Storage) -> str | None:
    if claim.volume_name:
        volume = storage.volumes.get(claim.volume_name)
        return volume.driver if volume else None
    kind = storage.classes.get(claim.storage_class or "")
    return kind.provisioner if kind else None


def together(*some: Attachments) -> Attachments:
    """Unite attachments; a claim that several pods share counts once."""
    result: Attachments = {}
    for each in some:
        for driver, claims in each.items():
            result[driver] = result.get(driver, set()) | claims
    return result


def exceeds(volumes: Attachments, limits: Mapping[str, int | None]) -> bool:
    """Say whether a driver has more volumes than its limit; None is unlimited."""
    for driver, claims in volumes.items():
        limit = limits.get(driver)
        if limit is not None and len(claims) > limit:
            return True
    return False


def clash(ports: Iterable[HostPort], others: Iterable[HostPort]) -> bool:
    """Say whether two sets of host ports conflict."""
    taken = list(others)
    return any(port.clashes_with(other) for port in ports for other in taken)
