"""Barriers that stop an error: work on one object ends, work on all other objects goes on."""

from collections.abc import Callable
from types import TracebackType
from typing import TypeAlias

from karpy.errors import KarpyError, LeadershipLost, Unexpected

OnError: TypeAlias = Callable[[KarpyError], None]


def fail_at_once(error: KarpyError) -> None:
    """Raise an error, or the cause of an unexpected one: the default where no handler is set."""
    cause = error.__cause__ if isinstance(error, Unexpected) else None
    raise cause or error


class Barrier:
    """
    End the block at its first error and pass that to `on_error` as a KarpyError.

    Cancellation and a lost lease are raised: after a lost lease nothing may be written.
    """

    def __init__(self, on_error: OnError) -> None:
        self._on_error = on_error

    def __enter__(self) -> None:
        """Enter the block whose errors stop here."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if not isinstance(error, Exception) or lost_lease(error) is not None:
            return False
        self._on_error(as_karpy_error(error))
        return True


def as_karpy_error(error: Exception) -> KarpyError:
    """Return a KarpyError: the error itself, or a Bug that has the error as its cause."""
    if isinstance(error, KarpyError):
        return error
    bug = Unexpected(error=error)
    bug.__cause__ = error
    return bug


def lost_lease(error: BaseException) -> LeadershipLost | None:
    """Return the LeadershipLost that an error is, or that an exception group contains."""
    if isinstance(error, LeadershipLost):
        return error
    if isinstance(error, BaseExceptionGroup):
        found = (lost_lease(each) for each in error.exceptions)
        return next((each for each in found if each is not None), None)
    return None
