"""Answers that are likely to be asked for again."""

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

Q = TypeVar("Q")
A = TypeVar("A")


class Recent(Generic[Q, A]):
    """
    The last few answers, found by comparing questions: what holds a mapping has no hash.

    Parts of a question that are the same objects as before cost next to nothing to compare.
    """

    def __init__(self, most: int = 16) -> None:
        """Remember so many answers."""
        self._known: deque[tuple[Q, A]] = deque(maxlen=most)

    def answer(self, question: Q, find: Callable[[], A]) -> A:
        """Return the answer to a question, from memory if it was asked lately."""
        for known, answer in self._known:
            if known == question:
                return answer
        found = find()
        self._known.appendleft((question, found))
        return found
