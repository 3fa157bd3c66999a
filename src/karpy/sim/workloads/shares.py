"""Numbers that may be given as a share of another."""

from karpy.model.requirements import as_integer


def share(value: int | str | None, total: int, *, is_rounded_up: bool) -> int:
    """Return a number as it is, a percentage as part of a total; what is neither counts as 0."""
    if isinstance(value, int):
        return value
    percent = as_integer(value[:-1]) if value and value.endswith("%") else None
    if percent is None or percent < 0:
        return 0
    hundredths = percent * total
    return -(-hundredths // 100) if is_rounded_up else hundredths // 100
