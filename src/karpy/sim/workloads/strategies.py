"""The spec of a Deployment with its defaults."""

from typing import Final

from karpy.codec.fields import JsonObject
from karpy.sim.store.sharing import remembered
from karpy.sim.workloads.shares import share

ROLLING: Final = "RollingUpdate"
RECREATE: Final = "Recreate"
_UNLIMITED: Final = 2**31 - 1
_USUAL_SHARE: Final = "25%"
_USUAL_DEADLINE: Final = 600
_USUAL_HISTORY: Final = 10


def wanted(deployment: JsonObject) -> int:
    """Return the replicas."""
    return _wanted(deployment["spec"])


def is_rolling(deployment: JsonObject) -> bool:
    """Say whether the strategy is RollingUpdate."""
    strategy = deployment["spec"].get("strategy") or {}
    return bool(strategy.get("type", ROLLING) == ROLLING)


def surge(deployment: JsonObject) -> int:
    """Return how many pods may exist beyond the replicas."""
    return _leeway(deployment["spec"])[0] if is_rolling(deployment) else 0


def unavailable(deployment: JsonObject) -> int:
    """Return how many of the replicas may be unavailable."""
    if not is_rolling(deployment) or not wanted(deployment):
        return 0
    return min(_leeway(deployment["spec"])[1], wanted(deployment))


def deadline(deployment: JsonObject) -> int | None:
    """Return the progress deadline in seconds, None if there is none."""
    seconds = deployment["spec"].get("progressDeadlineSeconds", _USUAL_DEADLINE)
    return None if seconds is None or seconds >= _UNLIMITED else int(seconds)


def history(deployment: JsonObject) -> int | None:
    """Return how many old ReplicaSets are kept; None is all."""
    limit = deployment["spec"].get("revisionHistoryLimit", _USUAL_HISTORY)
    return None if limit is None or limit >= _UNLIMITED else int(limit)


def _wanted(spec: JsonObject) -> int:
    replicas = spec.get("replicas")
    return 1 if replicas is None else int(replicas)


def _read_leeway(spec: JsonObject) -> tuple[int, int]:
    strategy = spec.get("strategy") or {}
    rolling = strategy.get("rollingUpdate") or {}
    total = _wanted(spec)
    more = share(rolling.get("maxSurge", _USUAL_SHARE), total, is_rounded_up=True)
    fewer = share(rolling.get("maxUnavailable", _USUAL_SHARE), total, is_rounded_up=False)
    # If both rounded to 0, the rollout could never progress.
    return (more, fewer) if more or fewer else (0, 1)


_leeway: Final = remembered(_read_leeway)
