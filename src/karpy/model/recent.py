"""A small memo for questions that have no hash."""

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

Q = TypeVar("Q")
A = TypeVar("A")


class Recent(Generic[Q, A]):
    """
    The last few answers, found by comparing questions for equality.

    Questions may hold mappings, which have no hash. Comparing is cheap as long as the parts of
    equal questions are the same objects.
    """

    def __init__(self, most: int = 16) -> None:
        """Remember at most this many answers."""
        self._known: deque[tuple[Q, A]] = deque(maxlen=most)

    def answer(self, question: Q, find: Callable[[], A]) -> A:
        """Return the remembered answer to an equal question, else the result of `find`."""
        for known, answer in self._known:
            if known == question:
                return answer
        found = find()
        self._known.appendleft((question, found))
        return found
