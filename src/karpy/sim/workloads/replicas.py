"""The counts of ReplicaSets, and the annotations of Deployments on them."""

from collections.abc import Iterable
from typing import Final

from karpy.codec.fields import JsonObject
from karpy.model.requirements import as_integer
from karpy.sim.store.sharing import remembered

REVISION: Final = "deployment.kubernetes.io/revision"
REVISION_HISTORY: Final = "deployment.kubernetes.io/revision-history"
DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
MAX: Final = "deployment.kubernetes.io/max-replicas"
_NOT_COPIED: Final = frozenset(
    {
        REVISION,
        REVISION_HISTORY,
        DESIRED,
        MAX,
        "kubectl.kubernetes.io/last-applied-configuration",
        "deprecated.deployment.rollback.to",
    }
)
_HISTORY_MAX: Final = 2000


def size(replica_set: JsonObject) -> int:
    """Return the replicas of a ReplicaSet's spec."""
    replicas = replica_set["spec"].get("replicas")
    return 1 if replicas is None else int(replicas)


def _has_no_say(replica_set: JsonObject) -> bool:
    status = replica_set.get("status") or {}
    is_empty = not (status.get("replicas") or status.get("terminatingReplicas"))
    return is_empty and size(replica_set) == 0 and not status.get("conditions")


is_retired: Final = remembered(_has_no_say)
"""Says whether a ReplicaSet has no pods, wants none, and has no failure condition."""


def total_size(sets: Iterable[JsonObject]) -> int:
    """Return the sum of the replicas of ReplicaSets."""
    return sum(map(size, sets))


def counted(sets: Iterable[JsonObject], field: str) -> int:
    """Return the sum of a status field of ReplicaSets."""
    return sum((each.get("status") or {}).get(field, 0) for each in sets)


def available(replica_set: JsonObject) -> int:
    """Return the available replicas of a ReplicaSet."""
    return counted((replica_set,), "availableReplicas")


def age_order(replica_set: JsonObject) -> tuple[str, str]:
    """Return the sort key of a ReplicaSet: oldest first."""
    meta = replica_set["metadata"]
    return meta["creationTimestamp"], meta["name"]


def annotations_of(obj: JsonObject) -> dict[str, str]:
    """Return the annotations of an object."""
    return obj["metadata"].get("annotations") or {}


def revision_of(replica_set: JsonObject) -> int:
    """Return the revision of a ReplicaSet, 0 if it has none."""
    return noted(replica_set, REVISION) or 0


def noted(replica_set: JsonObject, key: str) -> int | None:
    """Return the number in an annotation, None if there is none."""
    text = annotations_of(replica_set).get(key, "")
    return as_integer(text) if text.isdecimal() else None


def size_notes(wanted: int, surge: int) -> dict[str, str]:
    """Return the annotations of a ReplicaSet for the size of its Deployment."""
    return {DESIRED: str(wanted), MAX: str(wanted + surge)}


def rollout_notes(
    deployment: JsonObject, replica_set: JsonObject | None, revision: int
) -> dict[str, str]:
    """Return the annotations of a ReplicaSet that becomes a revision."""
    present = annotations_of(replica_set) if replica_set else {}
    copied = {
        key: value for key, value in annotations_of(deployment).items() if key not in _NOT_COPIED
    }
    notes = {**present, **copied}
    was = noted(replica_set, REVISION) if replica_set else None
    if was is not None and was >= revision:
        return notes
    notes[REVISION] = str(revision)
    if was is not None:
        notes[REVISION_HISTORY] = _longer(present.get(REVISION_HISTORY, ""), str(was))
    return notes


def _longer(history: str, revision: str) -> str:
    revisions = [*filter(None, history.split(",")), revision]
    while len(",".join(revisions)) > _HISTORY_MAX:
        revisions.pop(0)
    return ",".join(revisions)
