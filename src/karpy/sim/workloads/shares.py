"""Numbers that may be given as a share of another."""


def share(value: int | str | None, total: int, *, is_rounded_up: bool) -> int:
    """Return a number as it is, a percentage as part of a total; what is neither counts as 0."""
    if isinstance(value, int):
        return value
    if not value or not value.endswith("%") or not value[:-1].isdecimal():
        return 0
    hundredths = int(value[:-1]) * total
    return -(-hundredths // 100) if is_rounded_up else hundredths // 100
