"""How long a decision may take: looked at after so much work, whatever the work is."""

from collections.abc import Callable
from typing import Final

KeepGoing = Callable[[], bool]

_WORK_BETWEEN_LOOKS: Final = 4096
"""Groups looked at, steps made and the like; together they take some milliseconds."""


class OutOfTime(Exception):
    """The time of a decision is up; raised where nothing is half done, and never leaves it."""


class Effort:
    """Counts the work of a decision, ends it after the most allowed, and looks at the clock."""

    __slots__ = ("_done", "_is_over", "_keep_going", "_most", "_next_look", "spent")

    def __init__(self, keep_going: KeepGoing | None = None, most: int | None = None) -> None:
        self._keep_going = keep_going
        self._most = most
        self.spent = 0
        self._done = 0
        self._next_look = _WORK_BETWEEN_LOOKS
        self._is_over = False

    def begin(self, keep_going: KeepGoing | None) -> None:
        """Begin anew, with as much time as `keep_going` says."""
        self._keep_going, self._is_over = keep_going, False
        self._next_look = self._done + _WORK_BETWEEN_LOOKS

    def check(self) -> None:
        """Look at the clock; raise OutOfTime if time is up."""
        if self._is_over or self._must_end():
            raise OutOfTime

    def spend(self, work: int) -> None:
        """Count some work that is about to be done; raise OutOfTime if time is up."""
        self.spent += work
        self.pass_time(work)

    def pass_time(self, work: int) -> None:
        """Look at the clock as `spend` does; the work does not count, since it depends on memos."""
        self._done += work
        if self._done >= self._next_look:
            self._next_look = self._done + _WORK_BETWEEN_LOOKS
            if self._is_over or self._must_end():
                self._is_over, self._next_look = True, 0
                raise OutOfTime

    def _must_end(self) -> bool:
        if self._most is not None and self.spent > self._most:
            return True
        return self._keep_going is not None and not self._keep_going()
