"""Conditions in the statuses of workloads."""

from karpy.codec.fields import JsonObject


def find_condition(status: JsonObject | None, type_: str) -> JsonObject | None:
    """Return the condition of a type, None if there is none."""
    for each in (status or {}).get("conditions") or ():
        if each.get("type") == type_:
            found: JsonObject = each
            return found
    return None


def put_condition(status: JsonObject, condition: JsonObject, now: str) -> JsonObject:
    """
    Return a status with a condition at the end, in place of the one of its type.

    A condition with the same status and reason stays unchanged, with its message. The time of the
    update is written only if the condition has that field.
    """
    current = find_condition(status, condition["type"])
    if current is not None and _is_same(current, condition):
        return status
    changed = {**condition, "lastTransitionTime": now}
    if "lastUpdateTime" in condition:
        changed["lastUpdateTime"] = now
    if current is not None and current["status"] == condition["status"]:
        changed["lastTransitionTime"] = current["lastTransitionTime"]
    others = [each for each in status.get("conditions") or () if each is not current]
    return {**status, "conditions": [*others, changed]}


def drop_condition(status: JsonObject, type_: str) -> JsonObject:
    """Return a status without the condition of a type."""
    current = find_condition(status, type_)
    if current is None:
        return status
    others = [each for each in status["conditions"] if each is not current]
    changed = {**status, "conditions": others}
    if not others:
        del changed["conditions"]
    return changed


def _is_same(one: JsonObject, other: JsonObject) -> bool:
    return bool(one["status"] == other["status"] and one.get("reason") == other.get("reason"))
