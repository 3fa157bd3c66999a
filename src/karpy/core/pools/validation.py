"""Whether a NodePool that the API server took makes sense."""

from collections.abc import Sequence
from datetime import datetime

from karpy.core.lifecycle.outcomes import Outcome
from karpy.core.pools.conditions import VALIDATION_SUCCEEDED, with_false, with_true
from karpy.model.records import PoolRecord


def judge_validity(pool: PoolRecord, faults: Sequence[str], now: datetime) -> Outcome:
    """
    Write on a pool whether its template can be used.

    The faults are those of `codec.poolrules`: manifests and objects of a cluster obey one law.
    """
    if not faults:
        return Outcome(pool=with_true(pool, VALIDATION_SUCCEEDED, now))
    message = "; ".join(faults)
    failed = with_false(pool, VALIDATION_SUCCEEDED, "NodePoolValidationFailed", message, now)
    return Outcome(pool=failed)
