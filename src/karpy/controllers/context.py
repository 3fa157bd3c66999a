"""What a controller works with: the ports it shares with others, and a thread for decisions."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Final, TypeVar

from msgspec import Struct

from karpy.codec.fields import FieldInvalid, Fields, JsonObject
from karpy.controllers.queue import UNOBSERVED, OnFailure, every
from karpy.controllers.writer import Writer
from karpy.errors import AnswerMalformed
from karpy.model.kinds import Kind
from karpy.model.records import ClaimRecord, NodeRecord
from karpy.model.settings import Options
from karpy.ports.clock import Clock
from karpy.ports.cloud import CloudProvider
from karpy.ports.objects import Objects
from karpy.ports.observers import Observer
from karpy.ports.records import Kept, Records

T = TypeVar("T")

AFTER_CONFLICT: Final = 1.0
"""Look again after so many seconds at the latest; the watch reports the change itself sooner."""

KeepGoing = Callable[[], bool]

_THREAD: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="decisions")
"""One for all: decisions are made one after the other, and none needs a lock."""
_YIELDS_AFTER: Final = 10.0
"""After so many seconds a decision that can wait ends for one about pods."""


class ControllerContext(Struct, frozen=True):
    """The ports that lifecycle, termination and upkeep share."""

    records: Records
    objects: Objects
    cloud: CloudProvider
    writer: Writer
    clock: Clock
    is_ours: Callable[[ClaimRecord], bool] = lambda _: True
    """Whether a NodeClaim is of a node class that our cloud knows."""
    on_failure: OnFailure = lambda *_: None
    """Called with an object that could not be worked on and why; it is tried again."""
    decision_timeout: timedelta = Options().decision_timeout
    """A decision ends after that with what it has."""
    observer: Observer = UNOBSERVED
    """Observes the work of the controller."""

    async def every(
        self,
        period: timedelta,
        work: Callable[[], Awaitable[None]],
        often: tuple[int, timedelta] = (0, timedelta()),
    ) -> None:
        """Do the work of the controller now and then, until cancelled; failures are reported."""
        await every(period, work, self.on_failure, often=often, observer=self.observer)

    def claim(self, name: str) -> Kept[ClaimRecord] | None:
        """Return a NodeClaim of ours, or None."""
        kept = self.records.claims.get(name)
        return kept if kept is not None and self.is_ours(kept.record) else None

    def nodes_of(self, claim: ClaimRecord) -> list[Kept[NodeRecord]]:
        """Return the Nodes with the provider ID of a NodeClaim."""
        return list(self.records.nodes.by_index(claim.provider_id)) if claim.provider_id else []

    def claims_of(self, node: NodeRecord) -> list[Kept[ClaimRecord]]:
        """Return the NodeClaims with the provider ID of a Node."""
        return list(self.records.claims.by_index(node.provider_id)) if node.provider_id else []


def only(kept: list[Kept[NodeRecord]]) -> Kept[NodeRecord] | None:
    """Return the Node of a NodeClaim; several are as good as none."""
    return kept[0] if len(kept) == 1 else None


def seconds(pause: timedelta | None) -> float | None:
    """Return a pause as queues take it."""
    return None if pause is None else pause.total_seconds()


def read(reader: Callable[[Fields], T], kind: Kind, obj: JsonObject) -> T:
    """Read an object that was asked for; raise AnswerMalformed if that cannot be done."""
    try:
        return reader(Fields(obj))
    except FieldInvalid as error:
        name = obj.get("metadata", {}).get("name", "")
        what = f"{kind.name} `{name}` cannot be read: {error}"
        raise AnswerMalformed(what, hint=error.hint) from error


async def decide_aside(decide: Callable[[], T]) -> T:
    """Decide on values that never change, off the loop."""
    return await asyncio.get_running_loop().run_in_executor(_THREAD, decide)


class _Urgency:
    """How many decisions about pods wait for the thread, or are being made."""

    def __init__(self) -> None:
        self.count = 0


_URGENCY: Final = _Urgency()


async def decide_in_time(
    decide: Callable[[KeepGoing], T], seconds: float, *, can_wait: bool = False
) -> T:
    """
    Decide off the loop within some seconds; `decide` asks its argument whether time is left.

    A decision that `can_wait` has less time while one that cannot waits for it to end.
    """
    loop = asyncio.get_running_loop()
    is_wanted = True
    began: float | None = None

    def keep_going() -> bool:
        most = min(seconds, _YIELDS_AFTER) if can_wait and _URGENCY.count else seconds
        return is_wanted and (began is None or loop.time() - began < most)

    def begin() -> T:
        # Waiting for the decision before this one does not count.
        nonlocal began
        began = loop.time()
        return decide(keep_going)

    _URGENCY.count += not can_wait
    try:
        return await decide_aside(begin)
    finally:
        _URGENCY.count -= not can_wait
        # A caller that no longer waits for the answer must not keep the thread busy.
        is_wanted = False
