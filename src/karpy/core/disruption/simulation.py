"""Where the pods of nodes would go if these nodes went."""

from collections.abc import Collection

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.announcements import why
from karpy.core.lifecycle.changes import is_reschedulable
from karpy.core.scheduling.decide import decide
from karpy.model.instances import Catalog, InstanceType
from karpy.model.settings import ReservedMode
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Launch, Verdict


class Relocation(Struct, frozen=True, gc=False):
    """Where pods go that lose their node, and which of them find no place."""

    launches: tuple[Launch, ...] = ()
    nodes: tuple[str, ...] = ()
    """Names of nodes that are there and take some of them."""
    homeless: tuple[str, ...] = ()
    """Pods that find no place, each with the reason."""


def relocate(
    snapshot: Snapshot, claims: Collection[str], mode: ReservedMode = ReservedMode.FALLBACK
) -> Relocation:
    """
    Find another place for the pods of some claims' nodes, whatever forbids to move them.

    A pod that cannot be read finds none anywhere, and is not waited for: a repair must not depend
    on it.
    """
    nodes = tuple(
        replace(each, is_deleting=True) if each.claim in claims else each for each in snapshot.nodes
    )
    left = {each.name for each in nodes if each.claim in claims}
    displaced = {
        pod.key
        for pod in snapshot.pods
        if pod.node_name in left and is_reschedulable(pod) and not pod.unreadable
    }
    if not displaced:
        return Relocation()
    settings = replace(snapshot.settings, reserved_mode=mode)
    verdict = decide(replace(snapshot, nodes=nodes, settings=settings))
    # What others wait for is launched by whoever looks after them.
    launches = tuple(each for each in verdict.launches if displaced.intersection(each.pods))
    nominations = [each for each in verdict.nominations if displaced.intersection(each.pods)]
    booting = {each.name for each in nodes if not each.is_initialized}
    unsafe = {
        key: f"would schedule against uninitialized node {each.node}"
        for each in nominations
        if each.node in booting
        for key in each.pods
        if key in displaced
    }
    taken = {key for each in launches for key in each.pods}
    taken |= {key for each in nominations for key in each.pods}
    reasons = {**_reasons(verdict), **unsafe}
    homeless = sorted((displaced - taken) | unsafe.keys())
    return Relocation(
        launches,
        tuple(each.node for each in nominations),
        tuple(f"{key}: {reasons.get(key, 'no node was found for it')}" for key in homeless),
    )


def with_credit(catalog: Catalog, reservation: str) -> Catalog:
    """See a reservation with one more machine left: that of a node that goes."""

    def credited(types: tuple[InstanceType, ...]) -> tuple[InstanceType, ...]:
        return tuple(
            replace(
                each,
                offerings=tuple(
                    replace(offering, reservation_capacity=offering.reservation_capacity + 1)
                    if offering.reservation_id == reservation
                    else offering
                    for offering in each.offerings
                ),
            )
            if any(offering.reservation_id == reservation for offering in each.offerings)
            else each
            for each in types
        )

    by_pool = {pool: credited(types) for pool, types in catalog.by_pool.items()}
    return replace(catalog, types=credited(catalog.types), by_pool=by_pool)


def _reasons(verdict: Verdict) -> dict[str, str]:
    return {key: why(refusal) for refusal in verdict.refusals for key in refusal.pods}
