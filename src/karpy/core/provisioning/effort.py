"""How long a decision may take: looked at after so much work, whatever the work is."""

from collections.abc import Callable
from typing import Final

KeepGoing = Callable[[], bool]

_WORK_BETWEEN_LOOKS: Final = 4096
"""Groups looked at, steps made and the like; together they take some milliseconds."""


class OutOfTime(Exception):
    """The time of a decision is up; raised where nothing is half done, and never leaves it."""


class Effort:
    """Counts the work of a decision, and looks at the clock now and then."""

    __slots__ = ("_is_over", "_keep_going", "_next_look", "_spent")

    def __init__(self, keep_going: KeepGoing | None = None) -> None:
        self._keep_going = keep_going
        self._spent = 0
        self._next_look = _WORK_BETWEEN_LOOKS
        self._is_over = False

    def spend(self, work: int) -> None:
        """Count some work that is about to be done; raise OutOfTime if time is up."""
        self._spent += work
        if self._spent >= self._next_look:
            self._next_look = self._spent + _WORK_BETWEEN_LOOKS
            if self._is_over or (self._keep_going is not None and not self._keep_going()):
                self._is_over, self._next_look = True, 0
                raise OutOfTime
