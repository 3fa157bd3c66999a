"""What the volumes of a pod mean for its place: whether it can start, where, and how many fit."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from karpy.core.check.wishes import Wish
from karpy.model.constraints import NodeTerm
from karpy.model.labels import HOSTNAME
from karpy.model.pods import Pod, PodVolume
from karpy.model.storage import (
    IMMEDIATE,
    PersistentVolume,
    PersistentVolumeClaim,
    Storage,
    StorageClass,
)


class Volume(Struct, frozen=True):
    """A volume as its node sees it."""

    claim: str
    """Namespace and name of the PersistentVolumeClaim; pods may share it."""
    reach: Wish | None
    """Alternatives for the node's labels, or None if every node will do."""


def volumes_of(pod: Pod, storage: Storage) -> tuple[list[Volume], list[str]]:
    """Return the volumes that can be used, and for each of the others why it cannot."""
    usable: list[Volume] = []
    problems: list[str] = []
    for each in pod.rules.volumes:
        found = _find(each, pod, storage)
        if isinstance(found, str):
            problems.append(f"{each.name}: {found}")
        else:
            usable.append(found)
    return usable, problems


def _find(volume: PodVolume, pod: Pod, storage: Storage) -> Volume | str:
    claim = storage.claims.get(f"{pod.namespace}/{volume.claim_of(pod.name)}")
    if claim is None:
        return "its claim does not exist"
    if claim.is_deleting or claim.phase == "Lost":
        return "its claim is being deleted or has lost its volume"
    if claim.volume_name:
        return _as_bound(claim, storage.volumes.get(claim.volume_name))
    return _as_unbound(claim, storage.classes.get(claim.storage_class or ""))


def _as_bound(claim: PersistentVolumeClaim, volume: PersistentVolume | None) -> Volume | str:
    if volume is None or volume.is_deleting:
        return "there is no such volume, or not for long"
    if not claim.is_bind_completed:
        return "its claim is still being bound"
    terms = tuple(_anywhere_local(term) if volume.is_local else term for term in volume.terms)
    is_free = not terms or any(term is None for term in terms)
    reach = None if is_free else tuple(term for term in terms if term is not None)
    return Volume(claim.key, reach)


def _anywhere_local(term: NodeTerm) -> NodeTerm | None:
    """
    Forget which node a local volume is on; None if nothing else is asked.

    The node goes away with its pods, and the volume is made anew where the pod comes to be.
    """
    rest = tuple(each for each in term.expressions if each.key != HOSTNAME)
    return NodeTerm(rest, term.has_match_fields) if rest else None


def _as_unbound(claim: PersistentVolumeClaim, its_class: StorageClass | None) -> Volume | str:
    if its_class is None:
        return "its storage class does not exist"
    if its_class.binding_mode == IMMEDIATE:
        return "its claim is bound before scheduling, but not yet"
    return Volume(claim.key, its_class.topologies or None)


def attached(pods: Iterable[Pod], storage: Storage) -> dict[str, set[str]]:
    """
    Return the claims that pods have attached to their node, by driver.

    For pods that run already it does not matter whether their volumes could be used anew.
    """
    claims: dict[str, set[str]] = {}
    for pod in pods:
        names = (f"{pod.namespace}/{each.claim_of(pod.name)}" for each in pod.rules.volumes)
        for claim in (storage.claims[name] for name in names if name in storage.claims):
            if driver := _driver(claim, storage):
                claims.setdefault(driver, set()).add(claim.key)
    return claims


def _driver(claim: PersistentVolumeClaim, storage: Storage) -> str | None:
    if claim.volume_name:
        volume = storage.volumes.get(claim.volume_name)
        return volume.driver if volume else None
    its_class = storage.classes.get(claim.storage_class or "")
    return its_class.provisioner if its_class else None


def over_limit(
    new: Mapping[str, set[str]], old: Mapping[str, set[str]], limits: Mapping[str, int | None]
) -> str | None:
    """Name a driver that new pods take beyond its limit; None if there is none."""
    for driver, claims in sorted(new.items()):
        limit = limits.get(driver)
        before = old.get(driver, set())
        if limit is not None and not claims <= before and len(claims | before) > limit:
            return f"{len(claims | before)} volumes of {driver}, at most {limit}"
    return None
