"""Statuses as Go clients write them."""

from karpy.codec.fields import JsonObject


def without_zeros(status: JsonObject) -> JsonObject:
    """Return a status without fields that are 0, empty or None."""
    return {key: value for key, value in status.items() if value}
