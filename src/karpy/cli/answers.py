"""Verdicts and explanations as JSON."""

from typing import Any

from karpy.cli.findings import findings_answer
from karpy.cli.inputs import ClusterInput, Decided
from karpy.cli.room import room_answer
from karpy.cli.tables import HOURS_PER_MONTH
from karpy.codec.verdicts import verdict_to_dict
from karpy.core.explain import Explanation, Fix, PoolGroup
from karpy.model.instances import MICROS_PER_DOLLAR
from karpy.model.verdicts import Exclusion, Verdict


def plan_answer(verdict: Verdict) -> dict[str, Any]:
    """Write a whole verdict and its totals."""
    return {"summary": summary(verdict), **verdict_to_dict(verdict)}


def decided_answer(decided: Decided) -> dict[str, Any]:
    """Write a verdict with its catalog and the findings about its input."""
    return {
        **plan_answer(decided.verdict),
        "buffers": room_answer(decided.snapshot, decided.verdict),
        **context_answer(decided.cluster),
    }


def context_answer(cluster: ClusterInput) -> dict[str, Any]:
    """Write the catalog and the findings about the input."""
    types = cluster.snapshot.catalog.type_count
    return {
        "catalog": {
            "name": cluster.catalog,
            "instanceTypes": types,
            "isEstimate": cluster.is_estimate,
        },
        "findings": findings_answer(cluster.findings),
    }


def summary(verdict: Verdict) -> dict[str, Any]:
    """Write the totals of a verdict."""
    return {
        "newNodes": len(verdict.launches),
        "podsOnNewNodes": sum(len(each.pods) for each in verdict.launches),
        "podsOnExistingNodes": sum(len(each.pods) for each in verdict.nominations),
        "podsPending": sum(len(each.pods) for each in verdict.refusals),
        "dollarsPerHour": verdict.price / MICROS_PER_DOLLAR,
        "dollarsPerMonth": verdict.price * HOURS_PER_MONTH / MICROS_PER_DOLLAR,
    }


def explanation_answer(explanation: Explanation) -> dict[str, Any]:
    """Write all that is known about one pod."""
    launch, nomination, refusal = explanation.launch, explanation.nomination, explanation.refusal
    part = verdict_to_dict(
        Verdict(
            launches=(launch,) if launch else (),
            nominations=(nomination,) if nomination else (),
            refusals=(refusal,) if refusal else (),
        )
    )
    return {
        "pod": explanation.pod,
        "outcome": explanation.outcome.name,
        "sentence": explanation.sentence,
        "buffer": explanation.buffer or None,
        "asks": list(explanation.asks),
        "launch": next(iter(part["launches"]), None),
        "nomination": next(iter(part["nominations"]), None),
        "node": explanation.node.name if explanation.node else None,
        "refusal": next(iter(part["refusals"]), None),
        "groups": [_group(each) for each in explanation.groups],
        "exclusions": [_exclusion(each) for each in explanation.exclusions],
        "types": explanation.types,
        "nearest": _nearest(explanation),
        "fixes": [_fix(each) for each in explanation.fixes],
    }


def _group(group: PoolGroup) -> dict[str, Any]:
    return {
        "constraint": group.constraint.name,
        "sentence": group.constraint.value,
        "details": list(group.details),
        "pools": list(group.pools),
        "ruledOut": group.ruled_out,
        "types": group.types,
        "isSingle": group.is_single,
    }


def _exclusion(exclusion: Exclusion) -> dict[str, Any]:
    return {
        "constraint": exclusion.constraint.name,
        "sentence": exclusion.constraint.value,
        "detail": exclusion.detail,
        "count": exclusion.count,
    }


def _nearest(explanation: Explanation) -> dict[str, Any] | None:
    nearest = explanation.nearest
    if nearest is None:
        return None
    return {
        "pool": nearest.pool,
        "instanceType": nearest.miss.instance_type,
        "lacks": list(nearest.miss.lacks),
    }


def _fix(fix: Fix) -> dict[str, Any]:
    return {
        "text": fix.text,
        "pools": list(fix.pools),
        "constraint": fix.constraint.name if fix.constraint else None,
        "isEnough": fix.is_enough,
    }
