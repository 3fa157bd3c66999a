"""Proportional scaling of ReplicaSets during a rollout."""

from karpy.codec.fields import JsonObject
from karpy.sim.workloads.replicas import MAX, age_order, noted, size, total_size
from karpy.sim.workloads.strategies import surge, wanted


def new_sizes(deployment: JsonObject, sets: list[JsonObject]) -> list[tuple[JsonObject, int]]:
    """
    Return the ReplicaSets of a Deployment amid a rollout, each with its new size.

    Each grows or shrinks in proportion to its size, so that scaling does not change the progress of
    the rollout. The rest of the rounding goes to the largest ReplicaSet.
    """
    total = wanted(deployment)
    allowed = total + surge(deployment) if total else 0
    missing = allowed - total_size(sets)
    # Among ReplicaSets of equal size, new ones grow first and old ones shrink first.
    ordered = sorted(sets, key=age_order, reverse=missing > 0)
    ordered.sort(key=size, reverse=True)
    added = 0
    sizes = []
    for each in ordered:
        part = _part(deployment, each, missing, missing - added)
        added += part
        sizes.append(size(each) + part)
    if sizes and missing:
        sizes[0] = max(0, sizes[0] + missing - added)
    return list(zip(ordered, sizes, strict=True))


def _part(deployment: JsonObject, replica_set: JsonObject, missing: int, left: int) -> int:
    if not missing or not left or not size(replica_set):
        return 0
    fraction = _fraction(deployment, replica_set)
    return min(fraction, left) if missing > 0 else max(fraction, left)


def _fraction(deployment: JsonObject, replica_set: JsonObject) -> int:
    if not wanted(deployment):
        return -size(replica_set)
    largest = wanted(deployment) + surge(deployment)
    before = noted(replica_set, MAX) or (deployment.get("status") or {}).get("replicas", 0)
    if not before:
        return 0
    # Halves are rounded up; sizes are never negative.
    return int((2 * size(replica_set) * largest + before) // (2 * before)) - size(replica_set)
