"""New nodes: the remaining types as pods are added (sections 3 and 7)."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from karpy.model.constraints import first_untolerated
from karpy.model.instances import InstanceType, Offering, micros
from karpy.model.labels import HOSTNAME
from karpy.model.pods import HostPort, Pod
from karpy.model.requirements import (
    Requirement,
    Requirements,
    merge,
    one_of,
    why_disjoint,
    why_incompatible,
)
from karpy.model.resources import Resources, add
from karpy.model.settings import MinValuesPolicy, ReservedMode, Settings
from tests.reference.attempt import Attempt
from tests.reference.templates import (
    Template,
    lacking,
    lowered,
    roomy_offerings,
)
from tests.reference.topology import Place, Topology
from tests.reference.volumes import Attachments, clash, exceeds, together


class No(Enum):
    """Why a claim does not take a pod."""

    ORDINARY = "something does not fit"
    RESERVATION = "reserved capacity is taken"


NOT_SOLD = micros(1_000_000_000)
"""A price above that of any type."""


@dataclass
class Claim:
    """A new node."""

    template: Template
    hostname: str
    requirements: Requirements
    types: list[InstanceType]
    pods: list[Pod] = field(default_factory=list)
    requests: dict[str, int] = field(default_factory=dict)
    ports: list[HostPort] = field(default_factory=list)
    volumes: Attachments = field(default_factory=dict)
    reservations: set[str] = field(default_factory=set)
    first_types: list[InstanceType] = field(default_factory=list)
    """The types of the claim at its creation."""


@dataclass(frozen=True)
class Fit:
    """The state of a claim with one more pod."""

    requirements: Requirements
    types: list[InstanceType]
    reservations: set[str]


def new_claim(template: Template, number: int, types: list[InstanceType]) -> Claim:
    """Return a claim of some types of a template, with a unique hostname."""
    hostname = f"claim-{number:04d}"
    promises = {**template.requirements, HOSTNAME: one_of(HOSTNAME, hostname)}
    return Claim(template, hostname, promises, types)


@dataclass
class Claims:
    """The claims of this decision, and the reservations they hold."""

    topology: Topology
    settings: Settings
    well_known: frozenset[str]
    capacity: dict[str, int]
    """The capacity of reservations by ID."""
    withheld: frozenset[str]
    """Labels that a claim does not get from a pod whose requirement allows their absence."""
    made: list[Claim] = field(default_factory=list)

    def in_order(self) -> list[Claim]:
        """Return the claims by number of pods, fewest first, then by age, oldest first."""
        return sorted(self.made, key=_pod_count)

    def try_add(self, claim: Claim, attempt: Attempt) -> Fit | No:
        """Return the claim's state with the pod, or why it does not take the pod."""
        rules = attempt.rules
        if first_untolerated(claim.template.pool.taints, rules.tolerations):
            return No.ORDINARY
        if clash(rules.ports, claim.ports):
            return No.ORDINARY
        if why_incompatible(claim.requirements, attempt.full, self.well_known):
            return No.ORDINARY
        answers = []
        for requirements in self._candidates(claim, attempt):
            answers.append(answer := self._narrow(claim, attempt, requirements))
            if isinstance(answer, Fit):
                return answer
        return No.RESERVATION if No.RESERVATION in answers else No.ORDINARY

    def _candidates(self, claim: Claim, attempt: Attempt) -> Iterator[Requirements]:
        for alternative in attempt.volume_alternatives:
            wanted = merge(attempt.full, alternative)
            if why_disjoint(attempt.full, alternative):
                continue
            if why_incompatible(claim.requirements, wanted, self.well_known):
                continue
            there = merge(claim.requirements, self._gained(wanted, claim))

            def price_if(required: Requirement, there: Requirements = there) -> int:
                known = merge(there, {required.key: required})
                usable = self._offerings_left(claim, attempt, known).values()
                prices = [each.price for some in usable for each in some if not each.is_reserved]
                return min(prices, default=NOT_SOLD)

            for choice in self.topology.choices(
                attempt.pod, attempt.rules, there, self.well_known, price_if
            ):
                if why_incompatible(there, choice, self.well_known):
                    continue
                if not self._bestows(claim, then := merge(there, choice)):
                    yield then

    def _bestows(self, claim: Claim, then: Requirements) -> bool:
        """Say whether a claim with pods would now get a label that it must not get."""
        written = {key for key, each in then.items() if not each.is_negative}
        had = {key for key, each in claim.requirements.items() if not each.is_negative}
        return bool(claim.pods) and not self.withheld.isdisjoint(written - had - self.well_known)

    def _gained(self, wanted: Requirements, claim: Claim) -> Requirements:
        """Return the requirements without labels that the node must not get."""
        return {
            key: each
            for key, each in wanted.items()
            if key in claim.requirements or key in self.well_known or key not in self.withheld
        }

    def _narrow(self, claim: Claim, attempt: Attempt, requirements: Requirements) -> Fit | No:
        offerings = self._offerings_left(claim, attempt, requirements)
        types = [kind for kind in claim.types if offerings[kind.name]]
        if lacking(types, requirements):
            is_lenient = self.settings.min_values_policy is MinValuesPolicy.BEST_EFFORT
            if claim.pods or not is_lenient:
                return No.ORDINARY
            requirements = lowered(types, requirements)
        if not types:
            return No.ORDINARY
        usable = [offering for kind in types for offering in offerings[kind.name]]
        reservations = self._reserve(claim, usable)
        if isinstance(reservations, No):
            return reservations
        return Fit(requirements, types, reservations)

    def _offerings_left(
        self, claim: Claim, attempt: Attempt, requirements: Requirements
    ) -> dict[str, list[Offering]]:
        """Return the offerings of the claim with the pod, by type."""
        volumes = together(claim.volumes, attempt.attachments)
        total = add(claim.requests, attempt.pod.requests)
        return {
            kind.name: self.usable_offerings(claim, kind, total, requirements)
            if not exceeds(volumes, kind.volume_limits)
            and not clash(attempt.rules.ports, claim.template.daemon_ports(kind))
            and not why_disjoint(requirements, kind.requirements)
            else []
            for kind in claim.types
        }

    def usable_offerings(
        self,
        claim: Claim,
        kind: InstanceType,
        total: Resources,
        requirements: Requirements,
    ) -> list[Offering]:
        """Return the offerings of a type that have room for pods and the type's daemons."""
        with_daemons = add(total, claim.template.daemon_requests(kind))
        return roomy_offerings(kind, with_daemons, requirements, self.well_known)

    # --- reservations (section 7) ------------------------------------------------------------

    def left(self, reservation: str) -> int:
        holders = sum(reservation in claim.reservations for claim in self.made)
        return self.capacity[reservation] - holders

    def _reserve(self, claim: Claim, offerings: list[Offering]) -> set[str] | No:
        if not self.settings.reserved_capacity:
            return set()
        has_unreserved = any(not offering.is_reserved for offering in offerings)
        with_capacity = [
            offering.reservation_id
            for offering in offerings
            if offering.is_reserved and offering.reservation_capacity > 0
        ]
        taken = {
            reservation
            for reservation in with_capacity
            if reservation in claim.reservations or self.left(reservation) > 0
        }
        is_strict = self.settings.reserved_mode is ReservedMode.STRICT
        if is_strict and with_capacity and not taken:
            return No.RESERVATION
        if not with_capacity and not has_unreserved:
            return No.RESERVATION if is_strict else No.ORDINARY
        if is_strict and claim.reservations and not taken:
            return No.RESERVATION
        return taken

    def add(self, claim: Claim, attempt: Attempt, fit: Fit) -> None:
        """Add a pod to a claim as the fit says."""
        if not claim.pods:
            claim.first_types = fit.types
            self.made.append(claim)
            self.topology.hostnames.add(claim.hostname)
        claim.pods.append(attempt.pod)
        claim.requirements, claim.types, claim.reservations = (
            fit.requirements,
            fit.types,
            fit.reservations,
        )
        claim.requests = add(claim.requests, attempt.pod.requests)
        claim.ports += attempt.rules.ports
        claim.volumes = together(claim.volumes, attempt.attachments)
        taints = claim.template.pool.taints
        self.topology.record(
            Place(attempt.pod, fit.requirements, taints, lambda: claim.requirements)
        )


def _pod_count(claim: Claim) -> int:
    return len(claim.pods)
