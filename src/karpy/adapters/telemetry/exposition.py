"""Metrics as the text that Prometheus reads, a line for each number."""

from collections.abc import Sequence
from math import isfinite, isnan
from operator import itemgetter
from typing import Final, TypeAlias

from karpy.adapters.telemetry.specs import MetricSpec

Values: TypeAlias = tuple[str, ...]
"""The values of a metric's labels, in the order of its labels."""
_ESCAPES: Final = {"\\": r"\\", '"': r"\"", "\n": r"\n"}
_SPECIAL: Final = tuple(_ESCAPES)
_IN_LABELS: Final = str.maketrans(_ESCAPES)
_IN_HELP: Final = str.maketrans({"\\": r"\\", "\n": r"\n"})


class LineWriter:
    """Writes the lines of one name; made once, since there may be a hundred thousand of them."""

    def __init__(self, name: str, labels: Sequence[str] = ()) -> None:
        places = sorted(range(len(labels)), key=lambda place: labels[place])
        self._sorted = None if places == list(range(len(labels))) else itemgetter(*places)
        pairs = ",".join(f'{labels[place]}="%s"' for place in places)
        self._form = f"{name}{{{pairs}}} %s\n" if labels else f"{name} %s\n"

    def write(self, values: Values, number: float) -> str:
        """Write one number; labels come in the order of their names."""
        text = "".join(values)
        # Most values are plain; to look at each of them would take longer than all the rest.
        if any(special in text for special in _SPECIAL):
            values = tuple(value.translate(_IN_LABELS) for value in values)
        if self._sorted is not None:
            values = self._sorted(values)
        return self._form % (*values, number_text(number))


def head(spec: MetricSpec) -> str:
    """Write what a metric is."""
    said = spec.help.translate(_IN_HELP)
    return f"# HELP {spec.name} {said}\n# TYPE {spec.name} {spec.type.value}\n"


def number_text(number: float) -> str:
    """Write a number so that Go can read it."""
    if isfinite(number):
        return repr(float(number))
    return "NaN" if isnan(number) else "+Inf" if number > 0 else "-Inf"
