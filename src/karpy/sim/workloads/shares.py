"""IntOrString values: numbers or percentages."""

from karpy.model.requirements import as_integer


def share(value: int | str | None, total: int, *, is_rounded_up: bool) -> int:
    """Return a number, or a percentage of a total; 0 for any other value."""
    if isinstance(value, int):
        return value
    percent = as_integer(value[:-1]) if value and value.endswith("%") else None
    if percent is None or percent < 0:
        return 0
    hundredths = percent * total
    return -(-hundredths // 100) if is_rounded_up else hundredths // 100
