"""Where the volumes of a pod allow it to run, and how many a node attaches."""

from collections.abc import Iterable

from msgspec import Struct

from karpy.model.constraints import NodeTerm
from karpy.model.labels import HOSTNAME
from karpy.model.pods import Pod
from karpy.model.requirements import Requirement, Requirements, collect, merge, why_disjoint
from karpy.model.storage import IMMEDIATE, PersistentVolumeClaim, Storage
from karpy.model.verdicts import Reason

Alternative = tuple[Requirement, ...]


class VolumeFacts(Struct, frozen=True):
    """What the volumes of a pod require of a node: one of the alternatives, and attachments."""

    alternatives: tuple[Alternative, ...] = ((),)
    attachments: tuple[tuple[str, str], ...] = ()
    """Pairs of CSI driver and `namespace/claim`."""


NO_VOLUMES = VolumeFacts()


class VolumeRefusal(Struct, frozen=True):
    """Why the volumes of a pod exclude every node."""

    reason: Reason
    detail: str


def volume_facts(pod: Pod, storage: Storage) -> VolumeFacts | VolumeRefusal:
    """Return what the volumes of a pod require, or why the first unusable volume is so."""
    if not pod.rules.volumes:
        return NO_VOLUMES
    per_volume: list[tuple[NodeTerm, ...]] = []
    attachments: dict[tuple[str, str], None] = {}
    for volume in pod.rules.volumes:
        key = f"{pod.namespace}/{volume.claim_of(pod.name)}"
        claim = storage.claims.get(key)
        if claim is None:
            return VolumeRefusal(Reason.VOLUME_CLAIM_MISSING, key)
        found = _resolve(claim, storage)
        if isinstance(found, VolumeRefusal):
            return found
        driver, terms = found
        if driver:
            attachments[driver, key] = None
        if terms:
            per_volume.append(terms)
    return VolumeFacts(_alternatives(per_volume), tuple(attachments))


def attachments_of(pod: Pod, storage: Storage) -> tuple[tuple[str, str], ...]:
    """List the volumes that a running pod has attached and that storage objects name."""
    attachments: dict[tuple[str, str], None] = {}
    for volume in pod.rules.volumes:
        claim = storage.claims.get(f"{pod.namespace}/{volume.claim_of(pod.name)}")
        if claim is None:
            continue
        bound = storage.volumes.get(claim.volume_name)
        made_by = storage.classes.get(claim.storage_class or "")
        driver = bound.driver if bound else made_by.provisioner if made_by else None
        if driver and (bound or not claim.volume_name):
            attachments[driver, claim.key] = None
    return tuple(attachments)


def _resolve(
    claim: PersistentVolumeClaim, storage: Storage
) -> tuple[str | None, tuple[NodeTerm, ...]] | VolumeRefusal:
    if claim.is_deleting:
        return VolumeRefusal(Reason.VOLUME_CLAIM_DELETING, claim.key)
    if claim.phase == "Lost":
        return VolumeRefusal(Reason.VOLUME_CLAIM_LOST, claim.key)
    if claim.volume_name:
        return _resolve_bound(claim, storage)
    storage_class = storage.classes.get(claim.storage_class or "")
    if storage_class is None:
        wanted = claim.storage_class or "none named"
        return VolumeRefusal(Reason.STORAGE_CLASS_MISSING, f"{claim.key}: {wanted}")
    if storage_class.binding_mode == IMMEDIATE:
        return VolumeRefusal(Reason.VOLUME_CLAIM_IMMEDIATE, claim.key)
    return storage_class.provisioner, storage_class.topologies


def _resolve_bound(
    claim: PersistentVolumeClaim, storage: Storage
) -> tuple[str | None, tuple[NodeTerm, ...]] | VolumeRefusal:
    volume = storage.volumes.get(claim.volume_name)
    if volume is None:
        return VolumeRefusal(Reason.VOLUME_MISSING, claim.volume_name)
    if volume.is_deleting:
        return VolumeRefusal(Reason.VOLUME_DELETING, claim.volume_name)
    if not claim.is_bind_completed:
        return VolumeRefusal(Reason.VOLUME_CLAIM_BINDING, claim.key)
    if not volume.is_local:
        return volume.driver, volume.terms
    terms = tuple(
        NodeTerm(tuple(each for each in term.expressions if each.key != HOSTNAME))
        for term in volume.terms
    )
    return volume.driver, terms


def _alternatives(per_volume: Iterable[tuple[NodeTerm, ...]]) -> tuple[Alternative, ...]:
    """List the combinations of one term per volume that some node can meet; there may be none."""
    # Equal combinations are kept once, so that volumes of one class do not multiply.
    # Differs: volumes of one pod whose node affinities contradict each other: Karpenter goes on
    # with the empty result, which may count as no requirement; Karpy places the pod nowhere.
    sound: dict[frozenset[Requirement], Requirements] = {frozenset(): {}}
    for terms in per_volume:
        joined: dict[frozenset[Requirement], Requirements] = {}
        for have in sound.values():
            for term in terms:
                wanted = collect(term.expressions)
                if why_disjoint(have, wanted) is None:
                    both = merge(have, wanted)
                    joined.setdefault(frozenset(both.values()), both)
        sound = joined
    return tuple(tuple(each.values()) for each in sound.values())
