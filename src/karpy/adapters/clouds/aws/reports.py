"""The sinks of the provider: logs, metrics and events."""

from collections.abc import Callable
from types import TracebackType

from msgspec import Struct

from karpy.barriers import Barrier
from karpy.core.lifecycle.changes import Count, Remark
from karpy.errors import KarpyError
from karpy.model.notices import Notice
from karpy.ports.observers import Observer, ReconcileResult

OnTrouble = Callable[[str, KarpyError], None]
"""Called with a failed action and its error; the action is retried."""
OnFailure = Callable[[str, KarpyError], None]
"""Called with the name of an object and the error of its reconcile, which is retried."""


class Working(Barrier):
    """A barrier around the reconcile of one object, which it reports to the observer."""

    def __init__(self, observer: Observer, key: str, on_failure: OnFailure) -> None:
        super().__init__(self._fail)
        self._observer = observer
        self._key = key
        self._on_failure = on_failure

    def __enter__(self) -> None:
        """Report that the reconcile begins."""
        self._observer.take(self._key)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if error is None:
            self._observer.finish(self._key, ReconcileResult.AGAIN)
        return super().__exit__(kind, error, trace)

    def _fail(self, error: KarpyError) -> None:
        self._observer.finish(self._key, ReconcileResult.of(error))
        self._on_failure(self._key, error)


class Reports(Struct, frozen=True):
    """Callbacks for errors, counts, events and log lines; by default they do nothing."""

    trouble: OnTrouble = lambda *_: None
    count: Callable[[Count], None] = lambda _: None
    emit: Callable[[Notice], None] = lambda _: None
    remark: Callable[[Remark], None] = lambda _: None
