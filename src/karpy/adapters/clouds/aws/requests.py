"""Observation of requests to AWS: duration, status and number of tries."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from aiobotocore.client import AioBaseClient
from botocore.awsrequest import AWSRequest
from msgspec import Struct

_KEY: Final = "karpy"
_NO_ANSWER: Final = 0


class Tried(Struct, frozen=True):
    """One try of a request; the status is that of HTTP, 0 without an answer."""

    service: str
    """The service ID of AWS: `EC2`."""
    action: str
    status: int
    seconds: float


class Answered(Struct, frozen=True):
    """A request with all its tries; the status is that of the last answer, 0 without one."""

    service: str
    action: str
    status: int
    seconds: float
    tries: int


OnAnswer = Callable[[Answered], None]
OnTry = Callable[[Tried], None]


class _Progress(Struct):
    """A request that is under way."""

    began: float
    try_began: float = 0.0
    tries: int = 0
    status: int = _NO_ANSWER


class RequestWatch:
    """Follows the requests of one client through the events of botocore."""

    def __init__(self, client: AioBaseClient, on_answer: OnAnswer, on_try: OnTry) -> None:
        self._service: str = client.meta.service_model.service_id
        self._on_answer = on_answer
        self._on_try = on_try
        self._time = asyncio.get_running_loop().time
        events = client.meta.events
        events.register("before-call", self._begin)
        events.register("request-created", self._begin_try)
        events.register("response-received", self._end_try)
        events.register("after-call", self._end)
        events.register("after-call-error", self._end)

    def _begin(self, context: dict[str, Any], **_: object) -> None:
        context[_KEY] = _Progress(self._time())

    def _begin_try(self, request: AWSRequest, **_: object) -> None:
        request.context[_KEY].try_began = self._time()

    def _end_try(
        self,
        context: dict[str, Any],
        event_name: str,
        response_dict: dict[str, Any] | None = None,
        **_: object,
    ) -> None:
        progress: _Progress = context[_KEY]
        progress.status = _NO_ANSWER if response_dict is None else response_dict["status_code"]
        progress.tries += 1
        seconds = self._time() - progress.try_began
        self._on_try(Tried(self._service, _action(event_name), progress.status, seconds))

    def _end(self, context: dict[str, Any], event_name: str, **_: object) -> None:
        progress: _Progress | None = context.pop(_KEY, None)
        # `after-call-error` also comes for a request that failed before `before-call`.
        if progress is not None:
            seconds = self._time() - progress.began
            action = _action(event_name)
            self._on_answer(
                Answered(self._service, action, progress.status, seconds, progress.tries)
            )


def _action(event_name: str) -> str:
    return event_name.rpartition(".")[2]
