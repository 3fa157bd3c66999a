"""The pod failure policy and the success policy of Jobs."""

from collections.abc import Iterator
from typing import Final

from karpy.codec.fields import JsonObject
from karpy.sim.workloads.jobindexes import read_indexes

COUNT: Final = "Count"
IGNORE: Final = "Ignore"
FAIL_JOB: Final = "FailJob"
FAIL_INDEX: Final = "FailIndex"


def action_on(job: JsonObject, pod: JsonObject) -> tuple[str, str]:
    """Return the action of the pod failure policy for a failed pod, and the message for FailJob."""
    policy = job["spec"].get("podFailurePolicy") or {}
    for index, rule in enumerate(policy.get("rules") or ()):
        reason = _match(rule, pod)
        if reason:
            return rule["action"], f"{reason} matching {rule['action']} rule at index {index}"
    return COUNT, ""


def success_rule(job: JsonObject, succeeded: set[int], completions: int) -> str | None:
    """Return the message of the first success rule that holds, None if none does."""
    policy = job["spec"].get("successPolicy")
    if not policy or not succeeded:
        return None
    for index, rule in enumerate(policy.get("rules") or ()):
        enough = rule.get("succeededCount")
        if rule.get("succeededIndexes") is None:
            is_met = enough is not None and len(succeeded) >= enough
        else:
            required = read_indexes(rule["succeededIndexes"], completions)
            present = len(required & succeeded)
            is_met = bool(required) and (
                present == len(required) or (enough is not None and present >= enough)
            )
        if is_met:
            return f"Matched rules at index {index}"
    return None


def _match(rule: JsonObject, pod: JsonObject) -> str:
    meta, status = pod["metadata"], pod.get("status") or {}
    name = f"{meta['namespace']}/{meta['name']}"
    if codes := rule.get("onExitCodes"):
        for container, code in _exits(status):
            if codes.get("containerName") in {None, container} and _is_code(codes, code):
                return f"Container {container} for pod {name} failed with exit code {code}"
        return ""
    for condition in status.get("conditions") or ():
        for pattern in rule.get("onPodConditions") or ():
            wanted = (pattern["type"], pattern.get("status", "True"))
            if wanted == (condition["type"], condition.get("status")):
                return f"Pod {name} has condition {condition['type']}"
    return ""


def _exits(status: JsonObject) -> Iterator[tuple[str, int]]:
    for field in ("containerStatuses", "initContainerStatuses"):
        for each in status.get(field) or ():
            ended = (each.get("state") or {}).get("terminated")
            if ended and ended.get("exitCode"):
                yield each["name"], ended["exitCode"]


def _is_code(codes: JsonObject, code: int) -> bool:
    is_listed = code in (codes.get("values") or ())
    return is_listed if codes["operator"] == "In" else not is_listed
