"""The controller context: the ports that controllers share, and a thread for decisions."""

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
"""Seconds until a reconcile that met a conflict is repeated, unless the watch triggers it."""

KeepGoing = Callable[[], bool]

_THREAD: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="decisions")
"""One thread for all decisions: they run one after the other, and none needs a lock."""
_YIELDS_AFTER: Final = 10.0
"""Seconds after which a decision that can wait ends if a decision about pods waits."""


class ControllerContext(Struct, frozen=True):
    """The ports and settings that controllers share."""

    records: Records
    objects: Objects
    cloud: CloudProvider
    writer: Writer
    clock: Clock
    is_ours: Callable[[ClaimRecord], bool] = lambda _: True
    """Says whether the node class of a NodeClaim is of a kind that our cloud serves."""
    on_failure: OnFailure = lambda *_: None
    """Called with the key of an object whose reconcile failed, and the error; it is retried."""
    decision_timeout: timedelta = Options().decision_timeout
    """Time limit of a decision, which then returns what it has decided so far."""
    observer: Observer = UNOBSERVED
    """Measures the work of the controller."""

    async def every(
        self,
        period: timedelta,
        work: Callable[[], Awaitable[None]],
        often: tuple[int, timedelta] = (0, timedelta()),
    ) -> None:
        """Repeat the work of the controller every `period`, until cancelled; report failures."""
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
    """Return the only Node of a NodeClaim; None if there is none or several."""
    return kept[0] if len(kept) == 1 else None


def seconds(pause: timedelta | None) -> float | None:
    """Return a pause in seconds, as queues take it."""
    return None if pause is None else pause.total_seconds()


def read(reader: Callable[[Fields], T], kind: Kind, obj: JsonObject) -> T:
    """Read an object; raise AnswerMalformed if it is unreadable."""
    try:
        return reader(Fields(obj))
    except FieldInvalid as error:
        name = obj.get("metadata", {}).get("name", "")
        what = f"{kind.name} `{name}` cannot be read: {error}"
        raise AnswerMalformed(what, hint=error.hint) from error


async def decide_aside(decide: Callable[[], T]) -> T:
    """Make a decision on the thread of decisions; its input must be immutable."""
    return await asyncio.get_running_loop().run_in_executor(_THREAD, decide)


class _Urgency:
    """The number of urgent decisions, about pods, that wait for the thread or run on it."""

    def __init__(self) -> None:
        self.count = 0


_URGENCY: Final = _Urgency()


async def decide_in_time(
    decide: Callable[[KeepGoing], T], seconds: float, *, can_wait: bool = False
) -> T:
    """
    Decide on the thread of decisions; `decide` calls its argument to learn whether time is left.

    A decision with `can_wait` has less time while an urgent one waits for the thread.
    """
    loop = asyncio.get_running_loop()
    is_wanted = True
    began: float | None = None

    def keep_going() -> bool:
        most = min(seconds, _YIELDS_AFTER) if can_wait and _URGENCY.count else seconds
        return is_wanted and (began is None or loop.time() - began < most)

    def begin() -> T:
        # The wait for the thread does not count.
        nonlocal began
        began = loop.time()
        return decide(keep_going)

    _URGENCY.count += not can_wait
    try:
        return await decide_aside(begin)
    finally:
        _URGENCY.count -= not can_wait
        # A cancelled decision must not keep the thread busy.
        is_wanted = False
