"""What an EC2NodeClass says of itself, going by what was found in AWS for it."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from karpy.core.aws.drift import NODE_CLASS_HASH, NODE_CLASS_HASH_VERSION
from karpy.core.aws.refusals import is_forbidden, is_throttled, refusal_hint
from karpy.core.lifecycle.changes import with_annotations
from karpy.core.lifecycle.conditions import DRIFTED
from karpy.model.conditions import FALSE, TRUE, UNKNOWN, Condition
from karpy.model.ec2 import CapacityReservation, PlacementGroup, SecurityGroup, Subnet
from karpy.model.ec2nodeclass import (
    HASH_VERSION,
    Ec2NodeClass,
    FoundImage,
    FoundReservation,
    FoundSecurityGroup,
    FoundSubnet,
)
from karpy.model.records import ClaimRecord

FINALIZER: Final = "karpenter.k8s.aws/termination"
IMAGES_READY: Final = "AMIsReady"
SUBNETS_READY: Final = "SubnetsReady"
GROUPS_READY: Final = "SecurityGroupsReady"
PROFILE_READY: Final = "InstanceProfileReady"
PLACEMENT_READY: Final = "PlacementGroupReady"
RESERVATIONS_READY: Final = "CapacityReservationsReady"
VALIDATED: Final = "ValidationSucceeded"
_NEEDED: Final = (IMAGES_READY, PROFILE_READY, GROUPS_READY, SUBNETS_READY)
_SHOWN: Final = 5
_EXPIRING_BEFORE: Final = timedelta(minutes=40)
"""A capacity block is drained so long before it ends."""
_CHECKS: Final = {
    "CreateLaunchTemplate": "CreateLaunchTemplateAuthCheckFailed",
    "CreateFleet": "CreateFleetAuthCheckFailed",
    "RunInstances": "RunInstancesAuthCheckFailed",
}


def with_subnets(
    node_class: Ec2NodeClass, subnets: Iterable[Subnet], now: datetime
) -> Ec2NodeClass:
    """Write the subnets that were found, those with most free addresses first."""
    ranked = sorted(subnets, key=lambda each: (-each.free_addresses, each.id))
    found = tuple(FoundSubnet(each.id, each.zone, each.zone_id) for each in ranked)
    status = replace(node_class.status, subnets=found)
    written = replace(node_class, status=status)
    if found:
        return _true(written, SUBNETS_READY, now)
    return _false(
        written, SUBNETS_READY, "SubnetsNotFound", "SubnetSelector did not match any Subnets", now
    )


def with_security_groups(
    node_class: Ec2NodeClass, groups: Iterable[SecurityGroup], now: datetime
) -> Ec2NodeClass:
    """Write the security groups that were found."""
    found = tuple(
        FoundSecurityGroup(each.id, each.name) for each in sorted(groups, key=lambda each: each.id)
    )
    written = replace(node_class, status=replace(node_class.status, security_groups=found))
    if found:
        return _true(written, GROUPS_READY, now)
    message = "SecurityGroupSelector did not match any SecurityGroups"
    return _false(written, GROUPS_READY, "SecurityGroupsNotFound", message, now)


def with_images(
    node_class: Ec2NodeClass,
    images: Sequence[FoundImage],
    unsupported: str,
    now: datetime,
    unusable: Sequence[str] = (),
) -> Ec2NodeClass:
    """
    Write the images that were found; `unsupported` says why an alias cannot be used.

    `unusable` are the IDs of images that are selected and boot no machine.
    """
    if unsupported:
        return _false(node_class, IMAGES_READY, "UnsupportedAlias", unsupported, now)
    written = replace(node_class, status=replace(node_class.status, images=tuple(images)))
    if images:
        return _true(written, IMAGES_READY, now)
    # Differs: an alias of which no parameter names an image: Karpenter only logs it; Karpy writes
    # AMINotFound into the condition AMIsReady, as for other selectors.
    message = "AMISelector did not match any AMIs"
    if unusable:
        shown = ", ".join(unusable[:_SHOWN])
        message += f" for amd64 or arm64, only others: {shown}"
    return _false(written, IMAGES_READY, "AMINotFound", message, now)


def with_reservations(
    node_class: Ec2NodeClass, reservations: Iterable[CapacityReservation], now: datetime
) -> Ec2NodeClass:
    """Write the capacity reservations that were found and have not ended."""
    alive = sorted(
        (each for each in reservations if _is_alive(each, now)), key=lambda each: each.id
    )
    found = tuple(
        FoundReservation(
            each.id,
            each.instance_type,
            each.zone,
            each.owner,
            each.match_criteria,
            each.type,
            each.is_interruptible,
            "expiring" if is_expiring(each, now) else "active",
            each.ends,
        )
        for each in alive
    )
    written = replace(node_class, status=replace(node_class.status, reservations=found))
    return _true(written, RESERVATIONS_READY, now)


def with_placement_group(
    node_class: Ec2NodeClass, group: PlacementGroup | None, problem: str, now: datetime
) -> Ec2NodeClass:
    """Say whether the placement group that is selected was found."""
    if problem:
        return _false(node_class, PLACEMENT_READY, "PlacementGroupResolutionFailed", problem, now)
    if node_class.spec.placement_group is not None and group is None:
        message = "PlacementGroupSelector did not match any placement group"
        return _false(node_class, PLACEMENT_READY, "PlacementGroupNotFound", message, now)
    return _true(node_class, PLACEMENT_READY, now)


def with_profile(node_class: Ec2NodeClass, profile: str, now: datetime) -> Ec2NodeClass:
    """Write the instance profile of machines."""
    written = replace(node_class, status=replace(node_class.status, instance_profile=profile))
    return _true(written, PROFILE_READY, now)


def with_problem(
    node_class: Ec2NodeClass, type_: str, reason: str, message: str, now: datetime
) -> Ec2NodeClass:
    """Say why something is not known; what was found for this generation before still counts."""
    # Differs: an instance profile that cannot be made, and a selector that AWS does not let Karpy
    # ask about: Karpenter only logs why; Karpy writes it into the condition, which stays Unknown,
    # because users see the object and not the log.
    known = node_class.status.conditions.get(type_)
    if known is not None and known.is_true and known.generation == node_class.meta.generation:
        return node_class
    return _said(node_class, type_, UNKNOWN, reason, message, now)


def is_ready_to_validate(node_class: Ec2NodeClass) -> bool:
    """Say whether everything that a validation needs was found."""
    return all(node_class.status.conditions.is_true(each) for each in _NEEDED)


def with_validation_waiting(node_class: Ec2NodeClass, now: datetime) -> Ec2NodeClass:
    """Say that a validation waits for what was not found yet, or fails since it is not there."""
    said = [node_class.status.conditions.status(each) for each in _NEEDED]
    status = FALSE if FALSE in said else UNKNOWN
    message = "Awaiting AMI, Instance Profile, Security Group, and Subnet resolution"
    return _said(node_class, VALIDATED, status, "DependenciesNotReady", message, now)


def with_validation(
    node_class: Ec2NodeClass, reason: str, message: str, now: datetime
) -> Ec2NodeClass:
    """Write what a validation came to; without a reason it succeeded."""
    if not reason:
        return _true(node_class, VALIDATED, now)
    return _false(node_class, VALIDATED, reason, message, now)


def validation_failure(call: str, code: str, message: str) -> tuple[str, str] | None:
    """Return reason and message of a dry run that was refused; None if it is to be tried again."""
    if "User data is limited to" in message:
        return "UserDataSizeLimitExceeded", message
    if is_throttled(code) or "Invalid IAM Instance Profile name" in message:
        return None
    if is_forbidden(code):
        reason = _CHECKS.get(call.rpartition(":")[2], "RunInstancesAuthCheckFailed")
        hint = refusal_hint(call, code, message)
        return reason, f"{call} is not allowed; {hint}; AWS says: {message}"
    return None


def with_hash(
    node_class: Ec2NodeClass, digest: str, claims: Iterable[ClaimRecord]
) -> tuple[Ec2NodeClass, tuple[ClaimRecord, ...]]:
    """
    Annotate a node class with its hash; its claims, too, if the hash version is new.

    The claims are to be written first. One that has drifted already keeps its old hash.
    """
    written = {NODE_CLASS_HASH: digest, NODE_CLASS_HASH_VERSION: HASH_VERSION}
    is_old = node_class.meta.annotations.get(NODE_CLASS_HASH_VERSION) != HASH_VERSION
    changed = tuple(
        _restamped(each, digest)
        for each in (claims if is_old else ())
        if each.meta.annotations.get(NODE_CLASS_HASH_VERSION) != HASH_VERSION
    )
    if written.items() <= node_class.meta.annotations.items():
        return node_class, changed
    return replace(node_class, meta=with_annotations(node_class.meta, written)), changed


def is_expiring(reservation: CapacityReservation, now: datetime) -> bool:
    """Say whether a capacity block ends soon."""
    ends = reservation.ends
    is_block = reservation.type == "capacity-block"
    return is_block and ends is not None and now >= ends - _EXPIRING_BEFORE


def counts_left(reservations: Iterable[CapacityReservation]) -> Mapping[str, CapacityReservation]:
    """Return reservations by ID."""
    return {each.id: each for each in reservations}


def _is_alive(reservation: CapacityReservation, now: datetime) -> bool:
    has_ended = reservation.ends is not None and reservation.ends <= now
    return reservation.state == "active" and not has_ended


def _restamped(claim: ClaimRecord, digest: str) -> ClaimRecord:
    written = {NODE_CLASS_HASH_VERSION: HASH_VERSION}
    if claim.conditions.get(DRIFTED) is None:
        written[NODE_CLASS_HASH] = digest
    return replace(claim, meta=with_annotations(claim.meta, written))


def _true(node_class: Ec2NodeClass, type_: str, now: datetime) -> Ec2NodeClass:
    return _said(node_class, type_, TRUE, type_, "", now)


def _false(
    node_class: Ec2NodeClass, type_: str, reason: str, message: str, now: datetime
) -> Ec2NodeClass:
    return _said(node_class, type_, FALSE, reason, message, now)


def _said(
    node_class: Ec2NodeClass, type_: str, status: str, reason: str, message: str, now: datetime
) -> Ec2NodeClass:
    meta, conditions = node_class.meta, node_class.status.conditions
    if type_ == RESERVATIONS_READY and type_ not in conditions.dependents:
        return node_class
    begun = conditions.with_unknown(meta.created or now, now, meta.generation)
    condition = Condition(type_, status, now, reason, message, meta.generation)
    said = begun.with_condition(condition, now, is_deleting=meta.is_deleting)
    return replace(node_class, status=replace(node_class.status, conditions=said))
