"""How an API server writes statuses."""

from karpy.codec.fields import JsonObject


def without_zeros(status: JsonObject) -> JsonObject:
    """Leave out what is 0, empty or not known."""
    return {key: value for key, value in status.items() if value}
