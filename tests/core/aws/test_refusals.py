import pytest

from karpy.core.aws.refusals import (
    granting_statement,
    is_forbidden,
    is_not_found,
    is_role_missing,
    is_sold_out,
    is_spread_full,
    is_throttled,
    launch_reason,
    missing_action,
    profile_problem,
    refusal_hint,
)
from karpy.core.aws.tags import MachineOwner, ec2_tags, machine_tags, restricted_tags

NOT_ALLOWED = (
    "User: arn:aws:sts::111122223333:assumed-role/k/x is not authorized to perform:"
    " ec2:CreateTags on resource: arn:aws:ec2:eu-west-1:111122223333:fleet/*"
)


@pytest.mark.parametrize(
    ("code", "message", "reason"),
    [
        ("AuthFailure.ServiceLinkedRoleCreationNotPermitted", "", "SpotSLRCreationFailed"),
        ("UnauthorizedOperation", "You are not authorized", "Unauthorized"),
        ("UnauthorizedOperation", "Not authorized for images: [ami-1]", "AMIAuthorizationFailure"),
        ("AccessDeniedException", "", "Unauthorized"),
        ("InvalidParameter", "they belong to different networks", "SecurityGroupSubnetVPCMismatch"),
        (
            "InvalidParameterValue",
            "Value (x) for parameter iamInstanceProfile.name is invalid",
            "InstanceProfileNameInvalid",
        ),
        ("InvalidLaunchTemplateId.NotFound", "", "LaunchTemplateNotFound"),
        ("InvalidUserData", "User data is limited to 16384 bytes", "UserDataSizeLimitExceeded"),
        ("InvalidAMIID.Malformed", "", "InvalidAMIID"),
        ("InvalidAMIID.NotFound", "", "AMINotFound"),
        ("RequestLimitExceeded", "", "RequestLimitExceeded"),
        ("InternalError", "", "InternalError"),
        ("InvalidParameter", "it is not eligible for Free Tier", "FreeTierIneligible"),
        ("MaxFleetCountExceeded", "", "FleetQuotaExceeded"),
        ("PendingVerification", "", "AccountPendingVerification"),
        ("MaxSpotInstanceCountExceeded", "", "SpotQuotaExceeded"),
        ("VcpuLimitExceeded", "", "VCPULimitExceeded"),
        (
            "InsufficientFreeAddressesInSubnet",
            "",
            "InsufficientFreeAddressesInSubnet",
        ),
        ("Strange", "whatever", "LaunchFailed"),
    ],
)
def test_a_launch_that_fails_has_a_reason(code: str, message: str, reason: str) -> None:
    assert launch_reason(code, message) == reason


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("InsufficientInstanceCapacity", (True, False, False, False)),
        ("VcpuLimitExceeded", (True, False, False, False)),
        ("InvalidInstanceID.NotFound", (False, True, False, False)),
        ("ParameterNotFound", (False, True, False, False)),
        ("UnauthorizedOperation", (False, False, True, False)),
        ("AccessDenied", (False, False, True, False)),
        ("Throttling", (False, False, False, True)),
        ("Strange", (False, False, False, False)),
    ],
)
def test_codes_of_aws_mean_something(code: str, expected: tuple[bool, ...]) -> None:
    found = (is_sold_out(code), is_not_found(code), is_forbidden(code), is_throttled(code))

    assert found == expected


def test_a_missing_role_is_distinguished_from_a_missing_profile() -> None:
    assert is_role_missing("NoSuchEntity", "The role with name x cannot be found.")
    assert not is_role_missing("NoSuchEntity", "Instance Profile x cannot be found.")


def test_a_full_spread_group_is_recognized_by_its_message() -> None:
    assert is_spread_full("exceeded the limit of 7 in a Spread Placement Group")
    assert not is_spread_full("no capacity")


def test_a_refusal_names_the_permission_and_the_statement_that_grants_it() -> None:
    hint = refusal_hint("ec2:CreateFleet", "UnauthorizedOperation", NOT_ALLOWED)

    assert missing_action("ec2:CreateFleet", NOT_ALLOWED) == "ec2:CreateTags"
    resource = "arn:aws:ec2:eu-west-1:111122223333:fleet/*"
    assert granting_statement("ec2:CreateTags", resource) in hint


@pytest.mark.parametrize(
    ("message", "place"),
    [
        ("with an explicit deny in a service control policy", "service control policy"),
        ("because no permissions boundary allows", "permissions boundary"),
        ("because no VPC endpoint policy allows", "VPC endpoint"),
    ],
)
def test_a_permission_that_is_taken_away_elsewhere_is_granted_there(
    message: str, place: str
) -> None:
    hint = refusal_hint("ec2:CreateFleet", "AccessDenied", f"{NOT_ALLOWED} {message}")

    assert place in hint
    assert "`ec2:CreateTags`" in hint


@pytest.mark.parametrize(
    ("code", "word"),
    [
        ("AuthFailure.ServiceLinkedRoleCreationNotPermitted", "create-service-linked-role"),
        ("ExpiredToken", "renew"),
        ("Throttling", "wait"),
        ("InvalidSubnetID.NotFound", "check the name"),
        ("Strange", ""),
    ],
)
def test_other_refusals_have_hints_as_well(code: str, word: str) -> None:
    hint = refusal_hint("ec2:DescribeSubnets", code, "")

    assert word in hint
    assert bool(hint) == bool(word)


def test_tags_that_only_the_provider_may_set_are_found() -> None:
    tags = {
        "team": "a",
        "kubernetes.io/cluster/shop": "owned",
        "karpenter.sh/nodepool": "x",
        "karpenter.sh/nodeclaim": "x",
        "eks:eks-cluster-name": "x",
        "karpenter.k8s.aws/ec2nodeclass": "x",
        "kubernetes.io/cluster/": "no name",
    }

    assert set(tags) - set(restricted_tags(tags)) == {"team", "kubernetes.io/cluster/"}


def test_machines_carry_the_tags_of_their_class_and_of_their_owner() -> None:
    tags = machine_tags(
        {"team": "a", "karpenter.sh/nodepool": "x"}, MachineOwner("shop", "big", "web")
    )

    assert tags == {
        "team": "a",
        "kubernetes.io/cluster/shop": "owned",
        "karpenter.sh/nodepool": "web",
        "eks:eks-cluster-name": "shop",
        "karpenter.k8s.aws/ec2nodeclass": "big",
    }
    assert ec2_tags({"b": "2", "a": "1"})[0] == {"Key": "a", "Value": "1"}


@pytest.mark.parametrize(
    ("code", "message", "reason"),
    [
        ("NoSuchEntity", "The role with name nope cannot be found.", "RoleNotFound"),
        ("AccessDenied", "not authorized to perform: iam:PassRole", "Unauthorized"),
        ("LimitExceeded", "too many instance profiles", "InstanceProfileFailed"),
    ],
)
def test_a_profile_that_cannot_be_made_has_a_reason(code: str, message: str, reason: str) -> None:
    assert profile_problem(code, message) == reason


def test_a_missing_role_is_to_be_created_or_corrected() -> None:
    hint = refusal_hint("iam:AddRoleToInstanceProfile", "NoSuchEntity", "Role nope not found")

    assert hint == "create the role, or correct `role` of the EC2NodeClass"


@pytest.mark.parametrize(
    ("call", "code", "flag"),
    [
        ("eks:DescribeCluster", "ResourceNotFoundException", "--cluster-name"),
        ("sqs:GetQueueUrl", "AWS.SimpleQueueService.NonExistentQueue", "--interruption-queue"),
        ("sqs:GetQueueUrl", "QueueDoesNotExist", "--interruption-queue"),
    ],
)
def test_what_does_not_exist_has_a_flag_to_correct(call: str, code: str, flag: str) -> None:
    assert f"correct `{flag}`" in refusal_hint(call, code, "It does not exist.")
