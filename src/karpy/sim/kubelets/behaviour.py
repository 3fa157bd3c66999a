"""How a pod behaves, by annotations that only simulated kubelets read."""

from typing import Final

from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.model.times import LONGEST
from karpy.sim.store.sharing import remembered

PREFIX: Final = "sim.karpy.dev/"
START: Final = PREFIX + "start-seconds"
"""Seconds until the containers of the pod have started."""
READY: Final = PREFIX + "ready-seconds"
"""Seconds from the start until the pod is Ready; `never` if it never becomes Ready."""
RUN: Final = PREFIX + "run-seconds"
"""Seconds until the containers exit; then the restart policy applies."""
EXIT_CODE: Final = PREFIX + "exit-code"
"""The exit code of the containers; 0 by default."""
STOP: Final = PREFIX + "stop-seconds"
"""Seconds that the containers take to stop."""
NEVER: Final = "never"


class Behaviour(Struct, frozen=True):
    """The behaviour of a pod; None is the default of the kubelets."""

    start_seconds: float | None = None
    ready_seconds: float | None = 0.0
    """None: the pod never becomes Ready."""
    run_seconds: float | None = None
    stop_seconds: float | None = None
    exit_code: int = 0
    problem: str = ""
    """Why the annotations cannot be read: the containers of such a pod do not start."""


USUAL: Final = Behaviour()


def behaviour_of(pod: JsonObject) -> Behaviour:
    """Read the behaviour of a pod from its annotations."""
    annotations = pod["metadata"].get("annotations")
    return _read_behaviour(annotations) if annotations else USUAL


def _behaviour(annotations: JsonObject) -> Behaviour:
    if not any(key.startswith(PREFIX) for key in annotations):
        return USUAL
    try:
        return Behaviour(
            start_seconds=_seconds(annotations, START),
            ready_seconds=_ready_seconds(annotations),
            run_seconds=_seconds(annotations, RUN),
            stop_seconds=_seconds(annotations, STOP),
            exit_code=int(_seconds(annotations, EXIT_CODE) or 0),
        )
    except _Unreadable as error:
        return Behaviour(problem=str(error))


_read_behaviour: Final = remembered(_behaviour)


class _Unreadable(Exception):
    """An annotation is no number."""


def _ready_seconds(annotations: JsonObject) -> float | None:
    if annotations.get(READY) == NEVER:
        return None
    return _seconds(annotations, READY) or 0.0


def _seconds(annotations: JsonObject, key: str) -> float | None:
    text = annotations.get(key)
    if text is None:
        return None
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        message = f"annotation {key} is `{text}`: give a number, 0 or more"
        raise _Unreadable(message)
    return min(number, LONGEST.total_seconds())
