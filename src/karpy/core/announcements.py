"""How a verdict is published: events on pods and NodePools, and log lines."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import islice
from typing import Final

from karpy.core.lifecycle.changes import Count, Remark
from karpy.core.lifecycle.launch import resource_text
from karpy.model.kinds import NODE_POOL, POD
from karpy.model.notices import Notice, Subject
from karpy.model.pods import Pod
from karpy.model.verdicts import (
    Constraint,
    Launch,
    Nomination,
    PoolRefusal,
    Reason,
    Refusal,
    Verdict,
)

_FIVE_MINUTES: Final = 300.0
_QUIET: Final = frozenset(
    {
        Reason.NOT_YET_UNSCHEDULABLE,
        Reason.ON_ITS_WAY,
        Reason.OPTED_OUT,
        Reason.PLACE_TAKEN,
        Reason.PREEMPTING,
        Reason.UNDECIDED,
        Reason.WAITS_FOR_RESERVATION,
    }
)
"""Reasons without an event: they end without intervention, or a user opted out."""
_PASSING: Final = frozenset(
    {
        Reason.NOT_YET_UNSCHEDULABLE,
        Reason.ON_ITS_WAY,
        Reason.OPTED_OUT,
        Reason.PLACE_TAKEN,
        Reason.PREEMPTING,
    }
)
"""Reasons without a log line: a node for the pod is known, or the pod needs none from Karpy."""
_POOLS_NAMED_MAX: Final = 3
_NAMED_MAX: Final = 5
_REASONS_NAMED_MAX: Final = 3


def pending_remark(verdict: Verdict, pods: Mapping[str, Pod]) -> Remark | None:
    """Return a log line with the number of pods that stay pending, by reason; None if none does."""
    reasons = Counter[str]()
    for refusal in verdict.refusals:
        if refusal.reason not in _PASSING:
            reasons[_in_short(refusal)] += sum(1 for _ in _existing(refusal.pods, pods))
    ranked = sorted(+reasons, key=lambda each: (-reasons[each], each))
    if not ranked:
        return None
    texts = [f"{reasons[each]} because {each}" for each in ranked[:_REASONS_NAMED_MAX]]
    if rest := sum(reasons[each] for each in ranked[_REASONS_NAMED_MAX:]):
        texts.append(f"{rest} for other reasons")
    fields = {"pods": str(reasons.total()), "reasons": ", ".join(texts)}
    return Remark("pod(s) stay pending", fields)


def refusal_notices(verdict: Verdict, pods: Mapping[str, Pod]) -> Iterator[Notice]:
    """Yield an event for each pod that stays pending, with the decisive constraint."""
    for refusal in verdict.refusals:
        if refusal.reason in _QUIET:
            continue
        note = f"Failed to schedule pod, {why(refusal)}"
        is_vain = refusal.reason is Reason.LAUNCHED_IN_VAIN
        for key in _existing(refusal.pods, pods):
            subject = pod_subject(key, pods)
            yield Notice(
                subject,
                "LaunchedInVain" if is_vain else "FailedScheduling",
                note,
                is_warning=True,
                same_as=(subject.uid,),
                window_seconds=_FIVE_MINUTES,
            )


def launch_notices(keys: tuple[str, ...], claim: str, pods: Mapping[str, Pod]) -> Iterator[Notice]:
    """Yield an event for each pod, with the NodeClaim that was created for it."""
    return _nominated(keys, f"nodeclaim/{claim}", pods)


def nomination_notices(
    nomination: Nomination, claim: str, pods: Mapping[str, Pod]
) -> Iterator[Notice]:
    """Yield an event for each nominated pod, with the node."""
    places = [f"nodeclaim/{claim}"] if claim else []
    if nomination.node != claim:
        places.append(f"node/{nomination.node}")
    return _nominated(nomination.pods, ", ".join(places), pods)


def pool_notices(verdict: Verdict) -> Iterator[Notice]:
    """Yield an event for each NodePool whose requirements no available instance type meets."""
    for notice in verdict.pools:
        if notice.why.constraint not in {Constraint.POOL_EMPTY, Constraint.MIN_VALUES}:
            continue
        note = "NodePool requirements filtered out all compatible available instance types"
        if notice.why.constraint is Constraint.MIN_VALUES:
            note += " due to minValues incompatibility"
        subject = Subject(NODE_POOL, notice.pool)
        yield Notice(
            subject,
            "NoCompatibleInstanceTypes",
            note,
            is_warning=True,
            same_as=(notice.pool,),
            window_seconds=60.0,
        )


def names_real_pods(nomination: Nomination, pods: Mapping[str, Pod]) -> bool:
    """Say whether a nomination names a pod that is not virtual."""
    return next(_existing(nomination.pods, pods), None) is not None


def why(refusal: Refusal) -> str:
    """Return why a pod stays pending, with the decisive constraint of each NodePool."""
    sentence = refusal.reason.value
    if refusal.detail:
        sentence += f": {refusal.detail}"
    decided = [_decided(each) for each in refusal.pools[:_POOLS_NAMED_MAX]]
    if len(refusal.pools) > _POOLS_NAMED_MAX:
        decided.append(f"and {len(refusal.pools) - _POOLS_NAMED_MAX} more NodePools")
    return "; ".join([sentence, *decided])


def _in_short(refusal: Refusal) -> str:
    """Return why pods stay pending, without details that differ from pod to pod."""
    pools: dict[str, list[str]] = {}
    for each in refusal.pools:
        pools.setdefault(each.decisive.constraint.value, []).append(each.pool)
    decided = [
        f"{constraint} (NodePool {_some(names)})"
        for constraint, names in islice(pools.items(), _POOLS_NAMED_MAX)
    ]
    return "; ".join(decided) or refusal.reason.value


def _some(names: Sequence[str]) -> str:
    more = len(names) - _POOLS_NAMED_MAX
    return ", ".join(names[:_POOLS_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")


def pod_subject(key: str, pods: Mapping[str, Pod]) -> Subject:
    """Return the subject of an event about a pod."""
    namespace, _, name = key.partition("/")
    pod = pods.get(key)
    return Subject(POD, name, namespace, "" if pod is None else pod.uid)


def _decided(refusal: PoolRefusal) -> str:
    decisive = refusal.decisive
    detail = f" ({decisive.detail})" if decisive.detail else ""
    return f"NodePool {refusal.pool}: {decisive.constraint.value}{detail}"


def _nominated(keys: tuple[str, ...], where: str, pods: Mapping[str, Pod]) -> Iterator[Notice]:
    for key in _existing(keys, pods):
        subject = pod_subject(key, pods)
        yield Notice(
            subject, "Nominated", f"Pod should schedule on: {where}", same_as=(subject.uid, where)
        )


# Differs: events about virtual pods of CapacityBuffers: Karpenter emits them, although these pods
# do not exist; Karpy emits none.
def _existing(keys: tuple[str, ...], pods: Mapping[str, Pod]) -> Iterator[str]:
    return (key for key in keys if key not in pods or not pods[key].is_virtual)


def decision_remarks(verdict: Verdict, duration: timedelta) -> tuple[Remark, ...]:
    """Return log lines about the pods and the launches of a decision; none without launches."""
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
    """Return the log line about the created NodeClaim of a launch."""
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
    """Count the created NodeClaim of a launch."""
    labels = {
        "reason": reason,
        "nodepool": launch.pool,
        "min_values_relaxed": str(launch.is_min_values_relaxed).lower(),
    }
    return Count("nodeclaims_created_total", labels)


def listed(names: Sequence[str]) -> str:
    """List the first few names and count the rest: `a, b and 3 other(s)`."""
    first: Iterable[str] = names[:_NAMED_MAX]
    more = len(names) - _NAMED_MAX
    text = ", ".join(first)
    return f"{text} and {more} other(s)" if more > 0 else text
