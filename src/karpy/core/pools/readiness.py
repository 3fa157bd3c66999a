"""Whether the node class of a NodePool is there and ready."""

from datetime import datetime

from karpy.core.lifecycle.outcomes import Outcome
from karpy.core.pools.conditions import NODE_CLASS_READY, with_false, with_true
from karpy.model.conditions import UNKNOWN
from karpy.model.nodeclasses import ClassState
from karpy.model.records import PoolRecord


def judge_readiness(pool: PoolRecord, node_class: ClassState | None, now: datetime) -> Outcome:
    """Write on a pool whether its node class is ready; None is one that does not exist."""
    why = _why_not_ready(node_class)
    if why is None:
        return Outcome(pool=with_true(pool, NODE_CLASS_READY, now))
    reason, message = why
    return Outcome(pool=with_false(pool, NODE_CLASS_READY, reason, message, now))


def _why_not_ready(node_class: ClassState | None) -> tuple[str, str] | None:
    if node_class is None:
        return "NodeClassNotFound", "NodeClass not found on cluster"
    if node_class.is_deleting:
        return "NodeClassTerminating", "NodeClass is Terminating"
    ready = node_class.ready
    if ready is None or ready.status == UNKNOWN:
        return "NodeClassReadinessUnknown", "Node Class Readiness Unknown"
    return None if ready.is_true else (ready.reason, ready.message)
