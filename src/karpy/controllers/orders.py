"""What a NodeClaim asks of a cloud."""

from collections.abc import Iterator

from karpy.core.lifecycle.launch import LaunchedMachine
from karpy.model.instances import Catalog
from karpy.model.labels import INSTANCE_TYPE
from karpy.model.records import ClaimRecord
from karpy.model.requirements import Requirements, collect, why_incompatible
from karpy.model.resources import fits
from karpy.model.verdicts import LaunchOption
from karpy.ports.cloud import LaunchSpec, Machine


def launch_spec(claim: ClaimRecord, catalog: Catalog) -> LaunchSpec:
    """Ask for a machine for a claim: whatever is on sale, fits and is allowed, cheapest first."""
    requirements = collect(claim.requirements)
    options = sorted(
        set(_options(claim, requirements, catalog)),
        key=lambda each: (each.price, each.instance_type, each.zone, each.capacity_type),
    )
    reserved = requirements.get(catalog.reservation_label)
    is_listed = reserved is not None and not reserved.complement
    return LaunchSpec(
        claim=claim.name,
        token=claim.meta.uid,
        pool=claim.pool,
        node_class=claim.node_class.name,
        options=tuple(options),
        labels=claim.meta.labels,
        reservations=tuple(sorted(reserved.values)) if reserved and is_listed else (),
        requirements=requirements,
        requests=claim.requests,
        annotations=claim.meta.annotations,
    )


def launched(machine: Machine) -> LaunchedMachine:
    """Return what a claim needs to know of its machine."""
    return LaunchedMachine(
        machine.provider_id,
        machine.labels,
        machine.annotations,
        machine.capacity,
        machine.allocatable,
        machine.image,
    )


def _options(
    claim: ClaimRecord, requirements: Requirements, catalog: Catalog
) -> Iterator[LaunchOption]:
    may_lack = catalog.well_known | {catalog.reservation_label}
    named = requirements.get(INSTANCE_TYPE)
    is_sold_here: dict[int, bool] = {}
    """By the identity of an offering's requirements: types are sold in the same few places."""
    for type_ in catalog.types_for(claim.pool):
        if named is not None and type_.name not in named:
            continue
        if why_incompatible(requirements, type_.requirements, may_lack) is not None:
            continue
        if not fits(claim.requests, type_.allocatable):
            continue
        for offering in type_.offerings:
            key = id(offering.requirements)
            if key not in is_sold_here:
                clash = why_incompatible(requirements, offering.requirements, may_lack)
                is_sold_here[key] = clash is None
            if is_sold_here[key] and offering.is_launchable:
                yield LaunchOption(
                    type_.name, offering.price, offering.zone, offering.capacity_type
                )
