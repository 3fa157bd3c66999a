"""What a verdict says in the log: Karpenter's words, which tools look for."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Final

from karpy.core.lifecycle.changes import Count, Remark
from karpy.core.lifecycle.launch import resource_text
from karpy.model.verdicts import Launch, Verdict

_NAMED_MAX: Final = 5


def decision_remarks(verdict: Verdict, duration: timedelta) -> tuple[Remark, ...]:
    """Say what was found and what is planned; nothing if nothing is."""
    if not verdict.launches:
        return ()
    placed = [key for launch in verdict.launches for key in launch.pods]
    found = Remark(
        "found provisionable pod(s)",
        {"Pods": listed(placed), "duration": f"{duration.total_seconds():.6f}s"},
    )
    computed = Remark(
        "computed new nodeclaim(s) to fit pod(s)",
        {"nodeclaims": str(len(verdict.launches)), "pods": str(len(placed))},
    )
    waiting = [key for each in verdict.nominations for key in each.pods]
    if not waiting:
        return found, computed
    fits = Remark(
        "computed unready node(s) will fit pod(s)",
        {"nodes": str(len(verdict.nominations)), "pods": str(len(waiting))},
    )
    return found, computed, fits


def created_remark(launch: Launch, claim: str) -> Remark:
    """Say that the NodeClaim of a launch is there."""
    return Remark(
        "created nodeclaim",
        {
            "NodePool": launch.pool,
            "NodeClaim": claim,
            "requests": resource_text(launch.resources),
            "instance-types": listed([each.instance_type for each in launch.options]),
        },
    )


def created_count(launch: Launch, reason: str = "provisioned") -> Count:
    """Count the NodeClaim of a launch."""
    labels = {
        "reason": reason,
        "nodepool": launch.pool,
        "min_values_relaxed": str(launch.is_min_values_relaxed).lower(),
    }
    return Count("nodeclaims_created_total", labels)


def listed(names: Sequence[str]) -> str:
    """Name the first few, and how many more there are."""
    first: Iterable[str] = names[:_NAMED_MAX]
    more = len(names) - _NAMED_MAX
    text = ", ".join(first)
    return f"{text} and {more} other(s)" if more > 0 else text
