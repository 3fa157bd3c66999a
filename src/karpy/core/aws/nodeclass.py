"""The status of an EC2NodeClass, computed from what was found in AWS."""

from collections.abc import Iterable, Sequence
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
"""Machines of a capacity block are drained this long before the block ends."""
_CHECKS: Final = {
    "CreateLaunchTemplate": "CreateLaunchTemplateAuthCheckFailed",
    "CreateFleet": "CreateFleetAuthCheckFailed",
    "RunInstances": "RunInstancesAuthCheckFailed",
}


def with_subnets(
    node_class: Ec2NodeClass, subnets: Iterable[Subnet], now: datetime
) -> Ec2NodeClass:
    """Return a node class with these subnets in its status, most free addresses first."""
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
    """Return a node class with these security groups in its status."""
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
    Return a node class with these images in its status.

    `unsupported` says why an alias cannot be used; empty if it can. `unusable` are the IDs of
    selected images that boot no machine.
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
    """Return a node class with the reservations that have not ended in its status."""
    active = sorted(
        (each for each in reservations if _is_active(each, now)), key=lambda each: each.id
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
        for each in active
    )
    written = replace(node_class, status=replace(node_class.status, reservations=found))
    return _true(written, RESERVATIONS_READY, now)


def with_placement_group(
    node_class: Ec2NodeClass, group: PlacementGroup | None, problem: str, now: datetime
) -> Ec2NodeClass:
    """Return a node class with the condition of its placement group."""
    if problem:
        return _false(node_class, PLACEMENT_READY, "PlacementGroupResolutionFailed", problem, now)
    if node_class.spec.placement_group is not None and group is None:
        message = "PlacementGroupSelector did not match any placement group"
        return _false(node_class, PLACEMENT_READY, "PlacementGroupNotFound", message, now)
    return _true(node_class, PLACEMENT_READY, now)


def with_profile(node_class: Ec2NodeClass, profile: str, now: datetime) -> Ec2NodeClass:
    """Return a node class with this instance profile in its status."""
    written = replace(node_class, status=replace(node_class.status, instance_profile=profile))
    return _true(written, PROFILE_READY, now)


def with_problem(
    node_class: Ec2NodeClass, type_: str, reason: str, message: str, now: datetime
) -> Ec2NodeClass:
    """Set a condition to Unknown, unless it is True for the present generation."""
    # Differs: an instance profile that cannot be made, and a selector that AWS does not let Karpy
    # ask about: Karpenter only logs why; Karpy writes it into the condition, which stays Unknown,
    # because users see the object and not the log.
    known = node_class.status.conditions.get(type_)
    if known is not None and known.is_true and known.generation == node_class.meta.generation:
        return node_class
    return _with_condition(node_class, type_, UNKNOWN, reason, message, now)


def is_ready_to_validate(node_class: Ec2NodeClass) -> bool:
    """Say whether all conditions that a validation needs are True."""
    return all(node_class.status.conditions.is_true(each) for each in _NEEDED)


def with_validation_waiting(node_class: Ec2NodeClass, now: datetime) -> Ec2NodeClass:
    """Set ValidationSucceeded to False if a needed condition is False, else to Unknown."""
    needed = [node_class.status.conditions.status(each) for each in _NEEDED]
    status = FALSE if FALSE in needed else UNKNOWN
    message = "Awaiting AMI, Instance Profile, Security Group, and Subnet resolution"
    return _with_condition(node_class, VALIDATED, status, "DependenciesNotReady", message, now)


def with_validation(
    node_class: Ec2NodeClass, reason: str, message: str, now: datetime
) -> Ec2NodeClass:
    """Set ValidationSucceeded; it is True without a reason for failure."""
    if not reason:
        return _true(node_class, VALIDATED, now)
    return _false(node_class, VALIDATED, reason, message, now)


def validation_failure(call: str, code: str, message: str) -> tuple[str, str] | None:
    """Return reason and message for a refused dry run; None if it should be tried again."""
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
    Annotate a node class with its hash, and its claims as well if the hash version is new.

    Write the claims first. A claim that has drifted keeps its old hash.
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


def _is_active(reservation: CapacityReservation, now: datetime) -> bool:
    has_ended = reservation.ends is not None and reservation.ends <= now
    return reservation.state == "active" and not has_ended


def _restamped(claim: ClaimRecord, digest: str) -> ClaimRecord:
    written = {NODE_CLASS_HASH_VERSION: HASH_VERSION}
    if claim.conditions.get(DRIFTED) is None:
        written[NODE_CLASS_HASH] = digest
    return replace(claim, meta=with_annotations(claim.meta, written))


def _true(node_class: Ec2NodeClass, type_: str, now: datetime) -> Ec2NodeClass:
    return _with_condition(node_class, type_, TRUE, type_, "", now)


def _false(
    node_class: Ec2NodeClass, type_: str, reason: str, message: str, now: datetime
) -> Ec2NodeClass:
    return _with_condition(node_class, type_, FALSE, reason, message, now)


def _with_condition(
    node_class: Ec2NodeClass, type_: str, status: str, reason: str, message: str, now: datetime
) -> Ec2NodeClass:
    meta, conditions = node_class.meta, node_class.status.conditions
    if type_ == RESERVATIONS_READY and type_ not in conditions.dependents:
        return node_class
    complete = conditions.with_unknown(meta.created or now, now, meta.generation)
    condition = Condition(type_, status, now, reason, message, meta.generation)
    updated = complete.with_condition(condition, now, is_deleting=meta.is_deleting)
    return replace(node_class, status=replace(node_class.status, conditions=updated))
