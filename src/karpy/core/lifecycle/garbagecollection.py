"""NodeClaims whose machine is gone, and machines without a NodeClaim."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from karpy.core.lifecycle.changes import Changes, Remark, disruption_counts
from karpy.core.lifecycle.conditions import REGISTERED
from karpy.model.records import ClaimRecord, NodeRecord

PERIOD: Final = timedelta(minutes=2)
ORPHAN_AGE: Final = timedelta(seconds=30)
"""A younger machine may belong to a claim whose provider ID is not written yet."""


class CloudMachine(Struct, frozen=True, gc=False):
    """A machine that the cloud lists."""

    provider_id: str
    claim: str
    """Name of the NodeClaim it was launched for."""
    created: datetime
    is_terminating: bool = False


def collect_claim(
    claim: ClaimRecord,
    machines: Collection[str],
    nodes: Sequence[NodeRecord],
    pods: int = 0,
) -> Changes:
    """
    Delete a registered claim whose machine is gone; a Ready node proves that it is not.

    `machines` are the provider IDs of live machines, listed after the claim was read. `nodes` are
    those with the claim's provider ID; `pods` is the number of pods to reschedule.
    """
    if claim.meta.is_deleting or not claim.conditions.is_true(REGISTERED):
        return Changes()
    if claim.provider_id in machines or (len(nodes) == 1 and nodes[0].is_ready):
        return Changes()
    fields = {"provider-id": claim.provider_id, "nodepool": claim.pool}
    return Changes(
        deletes_claim=True,
        counts=disruption_counts(claim, "garbage_collected", pods),
        remarks=(Remark("deleting nodeclaim whose machine is gone", fields),),
    )


def find_live_machines(machines: Iterable[CloudMachine]) -> frozenset[str]:
    """Return the provider IDs of the machines that are not terminating."""
    return frozenset(each.provider_id for each in machines if not each.is_terminating)


def find_orphans(
    machines: Iterable[CloudMachine], claims: Iterable[ClaimRecord], now: datetime
) -> tuple[CloudMachine, ...]:
    """
    List the machines to terminate: those that belong to no claim.

    The machines must have been listed before the claims, since a claim exists before its machine.
    """
    known = tuple(claims)
    owned = {each.provider_id for each in known if each.provider_id}
    expected = {each.name for each in known if not each.provider_id}
    orphans = (
        each
        for each in machines
        if not each.is_terminating
        and now - each.created > ORPHAN_AGE
        and each.provider_id not in owned
        and each.claim not in expected
    )
    return tuple(sorted(orphans, key=lambda each: each.provider_id))
