"""The launches of a decision (section 9)."""

from dataclasses import dataclass

from karpy.model.instances import LAUNCH_OPTIONS_MAX
from karpy.model.labels import CAPACITY_TYPE, HOSTNAME, INITIALIZED, REGISTERED, RESERVED
from karpy.model.pods import Pod
from karpy.model.requirements import Requirement, Requirements, merge, one_of
from karpy.model.resources import add
from karpy.model.settings import MinValuesPolicy
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import LaunchOption
from tests.reference.claims import Claim
from tests.reference.templates import lacking, lowered, roomy_offerings

SIMULATED = frozenset({HOSTNAME, REGISTERED, INITIALIZED})
"""Keys of requirements that only help to decide, and are not part of a launch."""


@dataclass(frozen=True)
class PlannedLaunch:
    """A claim as the decision launches it."""

    pool: str
    pods: tuple[str, ...]
    requirements: Requirements
    resources: dict[str, int]
    options: tuple[LaunchOption, ...]
    reservations: tuple[str, ...]
    is_min_values_relaxed: bool


def plan_launch(claim: Claim, snapshot: Snapshot) -> PlannedLaunch | None:
    """Return the launch of a claim; None if the cheapest types do not satisfy minValues."""
    requirements = _final_requirements(claim, snapshot.catalog.reservation_label)
    options = _options(claim, requirements, snapshot.catalog.well_known)
    chosen = {option.instance_type for option in options}
    types = [kind for kind in claim.types if kind.name in chosen]
    is_short = bool(lacking(types, requirements)) and not claim.reservations
    if is_short and snapshot.settings.min_values_policy is MinValuesPolicy.STRICT:
        return None
    return PlannedLaunch(
        pool=claim.template.pool.name,
        pods=tuple(_key(pod) for pod in claim.pods),
        requirements=lowered(types, requirements) if is_short else requirements,
        resources=add(claim.requests, _least_daemons(claim)),
        options=options,
        reservations=tuple(sorted(claim.reservations)),
        is_min_values_relaxed=is_short or _is_relaxed(claim),
    )


def _key(pod: Pod) -> str:
    return pod.key


def _final_requirements(claim: Claim, reservation_label: str) -> dict[str, Requirement]:
    final = {key: each for key, each in claim.requirements.items() if key not in SIMULATED}
    if claim.reservations:
        final[CAPACITY_TYPE] = one_of(CAPACITY_TYPE, RESERVED)
        if reservation_label:
            ids = one_of(reservation_label, *claim.reservations)
            final = merge(final, {reservation_label: ids})
    return final


def _options(
    claim: Claim, requirements: Requirements, well_known: frozenset[str]
) -> tuple[LaunchOption, ...]:
    options = []
    for kind in claim.types:
        total = add(claim.requests, claim.template.daemon_requests(kind))
        launchable = [
            LaunchOption(kind.name, offering.price, offering.zone, offering.capacity_type)
            for offering in roomy_offerings(kind, total, requirements, well_known)
            if offering.is_launchable
        ]
        options += sorted(launchable, key=_cheapest_first)[:1]
    return tuple(sorted(options, key=_cheapest_first)[:LAUNCH_OPTIONS_MAX])


def _cheapest_first(option: LaunchOption) -> tuple[int, str, str, str]:
    return option.price, option.instance_type, option.zone, option.capacity_type


def _least_daemons(claim: Claim) -> dict[str, int]:
    totals = [claim.template.daemon_requests(kind) for kind in claim.types]
    names = {name for total in totals for name in total}
    least = {name: min(total.get(name, 0) for total in totals) for name in sorted(names)}
    return {name: amount for name, amount in least.items() if amount}


def _is_relaxed(claim: Claim) -> bool:
    for stated in claim.template.pool.requirements:
        final = claim.requirements[stated.key].min_values
        if stated.min_values is not None and (final is None or final < stated.min_values):
            return True
    return False
