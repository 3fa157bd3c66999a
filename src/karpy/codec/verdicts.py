"""Verdicts as plain objects and as JSON bytes that are equal whenever the verdicts are."""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.json import encode

from karpy.model.commands import Command, CommandNode, DisruptionVerdict
from karpy.model.instances import MICROS_PER_DOLLAR
from karpy.model.requirements import Operator, Requirement, Requirements
from karpy.model.resources import Resources, format_quantity
from karpy.model.times import write_duration, write_moment
from karpy.model.verdicts import (
    Exclusion,
    Launch,
    LaunchOption,
    NearMiss,
    NodeRefusal,
    Nomination,
    PoolNotice,
    PoolRefusal,
    PoolVerdict,
    Refusal,
    Verdict,
)


def verdict_to_json(verdict: Verdict) -> bytes:
    """Write a verdict as JSON, keys sorted."""
    return encode(verdict_to_dict(verdict), order="sorted")


def verdict_to_dict(verdict: Verdict) -> dict[str, Any]:
    """Write a verdict as plain objects; reasons by name, with the sentence next to it."""
    return {
        "isComplete": verdict.is_complete,
        "dollarsPerHour": dollars(verdict.price),
        "launches": [_launch(each) for each in verdict.launches],
        "nominations": [_nomination(each) for each in verdict.nominations],
        "refusals": [_refusal(each) for each in verdict.refusals],
        "pools": [_notice(each) for each in verdict.pools],
    }


def disruption_to_json(verdict: DisruptionVerdict) -> bytes:
    """Write a verdict about the disruption of nodes as JSON, keys sorted."""
    return encode(disruption_to_dict(verdict), order="sorted")


def disruption_to_dict(verdict: DisruptionVerdict) -> dict[str, Any]:
    """Write a verdict about the disruption of nodes as plain objects."""
    return {
        "method": verdict.method,
        "commands": [command_to_dict(each) for each in verdict.commands],
        "refusals": [node_refusal_to_dict(each) for each in verdict.refusals],
        **({} if verdict.is_complete else {"isComplete": False}),
    }


def pool_verdict_to_json(verdict: PoolVerdict) -> bytes:
    """Write a verdict about the size of a NodePool as JSON, keys sorted."""
    return encode(pool_verdict_to_dict(verdict), order="sorted")


def pool_verdict_to_dict(verdict: PoolVerdict) -> dict[str, Any]:
    """Write a verdict about the size of a NodePool as plain objects."""
    return {
        "pool": verdict.pool,
        "creates": verdict.creates,
        "launch": None if verdict.launch is None else _launch(verdict.launch),
        "withheld": None if verdict.withheld is None else _exclusion(verdict.withheld),
        "deletes": list(verdict.deletes),
        "refusals": [node_refusal_to_dict(each) for each in verdict.refusals],
    }


def requirements_to_list(requirements: Requirements) -> list[dict[str, Any]]:
    """Write requirements as Kubernetes has them, sorted by key."""
    return [
        entry for key in sorted(requirements) for entry in requirement_to_entries(requirements[key])
    ]


def requirement_to_entries(requirement: Requirement) -> list[dict[str, Any]]:
    """
    Write one requirement, as several entries if one cannot express it.

    Reading the entries again and intersecting them gives the requirement back.
    """
    values = sorted(requirement.values)
    entries: list[tuple[Operator, list[str]]] = []
    if requirement.gte is not None:
        entries.append((Operator.GTE, [str(requirement.gte)]))
    if requirement.lte is not None:
        entries.append((Operator.LTE, [str(requirement.lte)]))
    # Differs: a requirement with a bound and excluded values, such as `Gt 1` and `NotIn [5]`:
    # Karpenter writes the bound alone; Karpy writes both, so that the NodeClaim says what was
    # decided.
    if values or not entries:
        entries.append((requirement.operator, values))
    if requirement.is_needed and requirement.gte is None and requirement.lte is None:
        entries.append((Operator.EXISTS, []))
    return [_entry(requirement, operator, some) for operator, some in entries]


def dollars(price: int) -> float:
    """Turn micro-dollars into dollars; JSON shows them to the last digit."""
    return price / MICROS_PER_DOLLAR


def amounts_to_dict(amounts: Resources) -> dict[str, str]:
    """Write amounts as quantities."""
    return {name: format_quantity(amounts[name], name) for name in sorted(amounts)}


def _entry(requirement: Requirement, operator: Operator, values: list[str]) -> dict[str, Any]:
    entry: dict[str, Any] = {"key": requirement.key, "operator": operator.value}
    if values:
        entry["values"] = values
    if requirement.min_values is not None:
        entry["minValues"] = requirement.min_values
    return entry


def _launch(launch: Launch) -> dict[str, Any]:
    return {
        "name": launch.name,
        "pool": launch.pool,
        "pods": list(launch.pods),
        "requirements": requirements_to_list(launch.requirements),
        "resources": amounts_to_dict(launch.resources),
        "dollarsPerHour": dollars(launch.price),
        "options": [option_to_dict(each) for each in launch.options],
        "reservations": list(launch.reservations),
        "isMinValuesRelaxed": launch.is_min_values_relaxed,
    }


def option_to_dict(option: LaunchOption) -> dict[str, Any]:
    """Write one option of a launch as plain objects."""
    return {
        "instanceType": option.instance_type,
        "zone": option.zone,
        "capacityType": option.capacity_type,
        "dollarsPerHour": dollars(option.price),
    }


def _nomination(nomination: Nomination) -> dict[str, Any]:
    return {"node": nomination.node, "pods": list(nomination.pods)}


def _refusal(refusal: Refusal) -> dict[str, Any]:
    return {
        "reason": refusal.reason.name,
        "sentence": refusal.reason.value,
        "detail": refusal.detail,
        "pods": list(refusal.pods),
        "pools": [_pool_refusal(each) for each in refusal.pools],
        "nodes": _exclusions(refusal.nodes),
    }


def _pool_refusal(refusal: PoolRefusal) -> dict[str, Any]:
    return {
        "pool": refusal.pool,
        "decisive": _exclusion(refusal.decisive),
        "isSingle": refusal.is_single,
        "types": refusal.types,
        "exclusions": _exclusions(refusal.exclusions),
        "nearest": _near_miss(refusal.nearest) if refusal.nearest else None,
    }


def _near_miss(nearest: NearMiss) -> Mapping[str, Any]:
    return {"instanceType": nearest.instance_type, "lacks": list(nearest.lacks)}


def _exclusions(exclusions: Iterable[Exclusion]) -> list[dict[str, Any]]:
    return [_exclusion(each) for each in exclusions]


def _exclusion(exclusion: Exclusion) -> dict[str, Any]:
    return {
        "constraint": exclusion.constraint.name,
        "sentence": exclusion.constraint.value,
        "detail": exclusion.detail,
        "count": exclusion.count,
    }


def _notice(notice: PoolNotice) -> dict[str, Any]:
    return {"pool": notice.pool, **_exclusion(notice.why)}


def command_to_dict(command: Command) -> dict[str, Any]:
    """Write a disruption command as plain objects."""
    return {
        "method": command.method,
        "reason": command.reason.value,
        "decision": command.decision,
        "nodes": [_command_node(each) for each in command.nodes],
        "launches": [_launch(each.launch) for each in command.replacements],
        "nominated": list(command.nominated),
        "terminatesFirst": command.terminates_first,
        "savingsPerHour": dollars(command.savings),
    }


def _command_node(node: CommandNode) -> dict[str, Any]:
    return {
        "node": node.node,
        "nodeClaim": node.claim,
        "pool": node.pool,
        "dollarsPerHour": dollars(node.price),
        "pods": node.pods,
        "action": node.action.value,
        "condition": node.condition,
        "drainBound": None if node.drain_bound is None else write_duration(node.drain_bound),
    }


def node_refusal_to_dict(refusal: NodeRefusal) -> dict[str, Any]:
    """Write the refusal of a node as plain objects; unknown numbers are null."""
    return {
        "reason": refusal.why.name,
        "sentence": refusal.why.value,
        "node": refusal.node,
        "detail": refusal.detail,
        "method": refusal.method,
        "pods": list(refusal.pods),
        "dollarsPerHour": _dollars_or_none(refusal.price),
        "replacementDollarsPerHour": _dollars_or_none(refusal.replacement),
        "score": None if refusal.score is None else float(refusal.score),
        "until": None if refusal.until is None else write_moment(refusal.until),
    }


def _dollars_or_none(price: int | None) -> float | None:
    return None if price is None else dollars(price)
