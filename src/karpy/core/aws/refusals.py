"""Errors of AWS: their meaning, the reasons that conditions show, and hints what to do."""

import json
import re
from typing import Final

NOT_FOUND: Final = frozenset(
    {
        "InvalidCapacityReservationId.NotFound",
        "InvalidInstanceID.NotFound",
        "InvalidLaunchTemplateName.NotFoundException",
        "InvalidLaunchTemplateId.NotFound",
        "InvalidLaunchTemplateId.NotFoundException",
        "QueueDoesNotExist",
        "AWS.SimpleQueueService.NonExistentQueue",
        "NoSuchEntity",
        "ParameterNotFound",
    }
)
ALREADY_EXISTS: Final = frozenset(
    {"EntityAlreadyExists", "InvalidLaunchTemplateName.AlreadyExistsException"}
)
SOLD_OUT: Final = frozenset(
    {
        "InsufficientInstanceCapacity",
        "MaxSpotInstanceCountExceeded",
        "VcpuLimitExceeded",
        "UnfulfillableCapacity",
        "Unsupported",
        "InsufficientFreeAddressesInSubnet",
        "MaxFleetCountExceeded",
        "ReservationCapacityExceeded",
    }
)
DRY_RUN: Final = "DryRunOperation"
SUBNET_FULL: Final = "InsufficientFreeAddressesInSubnet"
SERVICE_LINKED_ROLE: Final = "AuthFailure.ServiceLinkedRoleCreationNotPermitted"
TEMPLATE_GONE: Final = "InvalidLaunchTemplateName.NotFoundException"
_THROTTLED: Final = frozenset(
    {"RequestLimitExceeded", "Throttling", "ThrottlingException", "TooManyRequestsException"}
)
_FORBIDDEN: Final = ("UnauthorizedOperation", "AccessDenied", "AuthFailure")
# The first text that occurs in code and message gives the reason.
_LAUNCH_REASONS: Final = (
    ("ServiceLinkedRoleCreationNotPermitted", "SpotSLRCreationFailed"),
    ("Not authorized for images", "AMIAuthorizationFailure"),
    ("permissions boundary", "UnauthorizedByPermissionsBoundary"),
    ("service control policy", "UnauthorizedByServiceControlPolicy"),
    *((each, "Unauthorized") for each in _FORBIDDEN),
    ("belong to different networks", "SecurityGroupSubnetVPCMismatch"),
    ("iamInstanceProfile.name is invalid", "InstanceProfileNameInvalid"),
    ("InvalidLaunchTemplateId.NotFound", "LaunchTemplateNotFound"),
    ("User data is limited to", "UserDataSizeLimitExceeded"),
    ("InvalidAMIID.Malformed", "InvalidAMIID"),
    ("InvalidAMIID.NotFound", "AMINotFound"),
    ("RequestLimitExceeded", "RequestLimitExceeded"),
    ("InternalError", "InternalError"),
    ("not eligible for Free Tier", "FreeTierIneligible"),
    ("MaxFleetCountExceeded", "FleetQuotaExceeded"),
    ("PendingVerification", "AccountPendingVerification"),
    ("MaxSpotInstanceCountExceeded", "SpotQuotaExceeded"),
    ("VcpuLimitExceeded", "VCPULimitExceeded"),
    ("InsufficientFreeAddressesInSubnet", "InsufficientFreeAddressesInSubnet"),
)
_SPREAD_FULL: Final = "spread placement group"
LAUNCH_FAILED: Final = "LaunchFailed"
_ACTION: Final = re.compile(r"not authorized to perform: ([A-Za-z0-9-]+:[A-Za-z0-9*]+)")
_RESOURCE: Final = re.compile(r"on resource: (arn:[^\s,]+)")
# Words in AWS' message, and the policy that denies a permission which the role has.
_ELSEWHERE: Final = (
    ("service control policy", "a service control policy of the organization"),
    ("resource control policy", "a resource control policy of the organization"),
    ("permissions boundary", "the permissions boundary of the role"),
    ("session policy", "the session policy of the role"),
    ("VPC endpoint policy", "the policy of the VPC endpoint"),
    ("explicit deny", "a statement with the effect Deny"),
)
_HINTS: Final = {
    SERVICE_LINKED_ROLE: "create the role once for the account: "
    "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com",
    "AuthFailure": "check that the credentials are for this partition and region, "
    "and that the clock of the machine is right",
    "OptInRequired": "enable the region, or subscribe the account to the service",
    "RequestExpired": "set the clock of the machine right",
    "VcpuLimitExceeded": "have the vCPU quota of the account raised, or limit the NodePool",
    "MaxSpotInstanceCountExceeded": "have the spot quota of the account raised, "
    "or limit the NodePool",
    "DryRunOperation": "leave DryRun out to make the call",
}
_MISSING: Final = {
    "eks:DescribeCluster": "correct `--cluster-name` or the region; "
    "a cluster that EKS does not know needs `--cluster-endpoint`",
    "sqs:GetQueueUrl": "create the queue (`karpy aws setup` prints how), "
    "or correct `--interruption-queue`",
}
"""Hints for calls whose object does not exist; the code differs between services."""
_MISSING_CODES: Final = NOT_FOUND | {"ResourceNotFoundException"}
_STALE: Final = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidClientTokenId",
        "InvalidIdentityToken",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)


def is_not_found(code: str) -> bool:
    """Say whether the object of a call does not exist."""
    return code in NOT_FOUND


def is_sold_out(code: str) -> bool:
    """Say whether a launch failed because EC2 has no capacity for it, or a quota is used up."""
    return code in SOLD_OUT


def is_forbidden(code: str) -> bool:
    """Say whether the caller lacks a permission."""
    return code.startswith(_FORBIDDEN)


def is_throttled(code: str) -> bool:
    """Say whether AWS has throttled the call."""
    return code in _THROTTLED


def is_role_missing(code: str, message: str) -> bool:
    """Say whether an instance profile cannot be made because its role does not exist."""
    return code == "NoSuchEntity" and "role" in message.lower()


def profile_problem(code: str, message: str) -> str:
    """Return the reason that a condition shows for an instance profile that cannot be made."""
    if is_role_missing(code, message):
        return "RoleNotFound"
    return "Unauthorized" if is_forbidden(code) else "InstanceProfileFailed"


def is_spread_full(message: str) -> bool:
    """Say whether a spread placement group has its maximum of machines in a zone."""
    return _SPREAD_FULL in message.lower()


def launch_reason(code: str, message: str) -> str:
    """Return the reason that the condition Launched shows for a refused launch."""
    text = f"{code} {message}"
    return next((reason for part, reason in _LAUNCH_REASONS if part in text), LAUNCH_FAILED)


def refusal_hint(call: str, code: str, message: str) -> str:
    """Return what to do about a refused call such as `ec2:CreateFleet`; empty if unknown."""
    if code in _HINTS:
        return _HINTS[code]
    if code in _STALE:
        return "renew the credentials: check the role of the service account, or the profile"
    if is_throttled(code):
        return "wait; have the request rate of the account raised if it recurs"
    if call in _MISSING and code in _MISSING_CODES:
        return _MISSING[call]
    if is_role_missing(code, message):
        return "create the role, or correct `role` of the EC2NodeClass"
    if code.endswith((".NotFound", ".NotFoundException")):
        return "check the name, the region and the account"
    return _permission_hint(call, message) if is_forbidden(code) else ""


def missing_action(call: str, message: str) -> str:
    """Return the permission that a refused call lacks, which may belong to another call."""
    found = _ACTION.search(message)
    return found[1] if found else call


def granting_statement(action: str, resource: str = "*") -> str:
    """Return the statement of a policy that allows an action, as JSON."""
    return json.dumps({"Effect": "Allow", "Action": action, "Resource": resource})


def _permission_hint(call: str, message: str) -> str:
    action = missing_action(call, message)
    place = next((place for sign, place in _ELSEWHERE if sign in message), "")
    if place:
        return f"have {place} allow `{action}`"
    found = _RESOURCE.search(message)
    statement = granting_statement(action, found[1] if found else "*")
    return f"add to the policy of the role that Karpy runs with: {statement}"
