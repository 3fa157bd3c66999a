"""What AWS refuses, and what that means: gone, sold out, forbidden, or worth another try."""

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
ALREADY_EXISTS: Final = frozenset({"EntityAlreadyExists"})
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
# The first that matches counts; texts are looked for in code and message together.
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


def is_not_found(code: str) -> bool:
    """Say whether what was asked for does not exist."""
    return code in NOT_FOUND


def is_sold_out(code: str) -> bool:
    """Say whether a launch failed since EC2 has no machine of that kind there now."""
    return code in SOLD_OUT


def is_forbidden(code: str) -> bool:
    """Say whether the caller lacks a permission."""
    return code.startswith(_FORBIDDEN)


def is_throttled(code: str) -> bool:
    """Say whether AWS asks for patience."""
    return code in _THROTTLED


def is_role_missing(code: str, message: str) -> bool:
    """Say whether an instance profile cannot be made since its role does not exist."""
    return code == "NoSuchEntity" and "role" in message.lower()


def profile_problem(code: str, message: str) -> str:
    """Return the reason that a condition shows for an instance profile that cannot be made."""
    if is_role_missing(code, message):
        return "RoleNotFound"
    return "Unauthorized" if is_forbidden(code) else "InstanceProfileFailed"


def is_spread_full(message: str) -> bool:
    """Say whether a spread placement group has all the machines that one zone may have of it."""
    return _SPREAD_FULL in message.lower()


def launch_reason(code: str, message: str) -> str:
    """Return the reason that the condition Launched shows for a refused launch."""
    text = f"{code} {message}"
    return next((reason for part, reason in _LAUNCH_REASONS if part in text), LAUNCH_FAILED)
