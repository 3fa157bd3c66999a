"""What a controller works with: the ports that it shares with the others."""

from collections.abc import Callable
from datetime import timedelta
from typing import Final, TypeVar

from msgspec import Struct

from karpy.codec.fields import FieldInvalid, Fields, JsonObject
from karpy.controllers.queue import UNOBSERVED, OnFailure
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
"""Look again after so many seconds at the latest; the change itself is told sooner."""


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
    """Is told which object could not be worked on and why; it will be tried again."""
    decision_timeout: timedelta = Options().decision_timeout
    """A decision ends after that with what it has."""
    observer: Observer = UNOBSERVED
    """Hears how the work of the controller goes on."""

    def claim(self, name: str) -> Kept[ClaimRecord] | None:
        """Return a NodeClaim of ours, or None."""
        kept = self.records.claims.get(name)
        return kept if kept is not None and self.is_ours(kept.record) else None

    def nodes_of(self, claim: ClaimRecord) -> list[Kept[NodeRecord]]:
        """Return the Nodes with the provider ID of a NodeClaim."""
        return list(self.records.nodes.under(claim.provider_id)) if claim.provider_id else []

    def claims_of(self, node: NodeRecord) -> list[Kept[ClaimRecord]]:
        """Return the NodeClaims with the provider ID of a Node."""
        return list(self.records.claims.under(node.provider_id)) if node.provider_id else []


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
