"""Where errors stop: the work on one object ends, that on all others goes on."""

from collections.abc import Callable
from types import TracebackType
from typing import TypeAlias

from karpy.errors import KarpyError, LeadershipLost, Unexpected

OnError: TypeAlias = Callable[[KarpyError], None]


def fail_at_once(error: KarpyError) -> None:
    """Raise an error as it came: nothing is passed over where no part listens."""
    cause = error.__cause__ if isinstance(error, Unexpected) else None
    raise cause or error


class Barrier:
    """
    Ends the block at its first error and passes that on, as one of ours.

    Cancellation goes through, and so does a lost lease: nothing may be done after it.
    """

    def __init__(self, on_error: OnError) -> None:
        self._on_error = on_error

    def __enter__(self) -> None:
        """Begin with what may fail."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if not isinstance(error, Exception) or lost_lease(error) is not None:
            return False
        self._on_error(known(error))
        return True


def known(error: Exception) -> KarpyError:
    """Return an error as one of ours; one that is not becomes the cause of a Bug."""
    if isinstance(error, KarpyError):
        return error
    bug = Unexpected(error=error)
    bug.__cause__ = error
    return bug


def lost_lease(error: BaseException) -> LeadershipLost | None:
    """Find a lost lease in an error or among those that tasks ended with."""
    if isinstance(error, LeadershipLost):
        return error
    if isinstance(error, BaseExceptionGroup):
        found = (lost_lease(each) for each in error.exceptions)
        return next((each for each in found if each is not None), None)
    return None
