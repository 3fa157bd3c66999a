"""Conditions in the status of objects."""

from karpy.codec.fields import JsonObject


def condition_of(obj: JsonObject, type_: str) -> JsonObject | None:
    """Return the condition of a type, or None."""
    for each in (obj.get("status") or {}).get("conditions") or ():
        if each.get("type") == type_:
            found: JsonObject = each
            return found
    return None


def is_true(obj: JsonObject, type_: str) -> bool:
    """Say whether a condition exists with status True."""
    condition = condition_of(obj, type_)
    return condition is not None and condition.get("status") == "True"


def with_condition(status: JsonObject | None, condition: JsonObject, now: str) -> JsonObject:
    """
    Return a status with a condition set.

    The time of its last transition changes only if the status of the condition does.
    """
    status = status or {}
    conditions = list(status.get("conditions") or ())
    changed = {**condition, "lastTransitionTime": now}
    for index, each in enumerate(conditions):
        if each.get("type") == condition["type"]:
            if each.get("status") == condition["status"] and "lastTransitionTime" in each:
                changed["lastTransitionTime"] = each["lastTransitionTime"]
            conditions[index] = changed
            return {**status, "conditions": conditions}
    return {**status, "conditions": [*conditions, changed]}
