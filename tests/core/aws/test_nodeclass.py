from datetime import timedelta

import pytest
from msgspec.structs import replace

from karpy.core.aws.drift import NODE_CLASS_HASH, NODE_CLASS_HASH_VERSION
from karpy.core.aws.nodeclass import (
    is_ready_to_validate,
    validation_failure,
    with_hash,
    with_images,
    with_placement_group,
    with_problem,
    with_profile,
    with_reservations,
    with_security_groups,
    with_subnets,
    with_validation,
    with_validation_waiting,
)
from karpy.model.conditions import FALSE, TRUE, UNKNOWN, Condition, Conditions
from karpy.model.ec2 import CapacityReservation, PlacementGroup, SecurityGroup, Subnet
from karpy.model.ec2nodeclass import Ec2NodeClass, PlacementGroupTerm
from karpy.model.records import ClaimRecord, Identity
from tests.builders.ec2classes import AMD64, NOON, SPEC, begun, node_class

LATER = NOON + timedelta(minutes=1)


def said(found: Ec2NodeClass, type_: str) -> tuple[str, str, str]:
    condition = found.status.conditions.get(type_)
    assert condition is not None
    return condition.status, condition.reason, condition.message


def ready() -> Ec2NodeClass:
    found = with_images(begun(), [AMD64], "", NOON)
    found = with_subnets(found, [Subnet("subnet-1", "a")], NOON)
    found = with_security_groups(found, [SecurityGroup("sg-1")], NOON)
    found = with_placement_group(found, None, "", NOON)
    return with_profile(found, "shop_1", NOON)


def test_subnets_with_most_free_addresses_come_first() -> None:
    subnets = [Subnet("subnet-b", "b", "", 5), Subnet("subnet-a", "a", "az1", 5), Subnet("c", "c")]

    found = with_subnets(begun(), subnets, LATER)

    assert [each.id for each in found.status.subnets] == ["subnet-a", "subnet-b", "c"]
    assert found.status.subnets[0].zone_id == "az1"
    assert said(found, "SubnetsReady") == (TRUE, "SubnetsReady", "")


def test_what_is_not_there_is_named_by_its_condition() -> None:
    found = with_subnets(begun(), [], LATER)
    found = with_security_groups(found, [], LATER)
    found = with_images(found, [], "", LATER)

    assert said(found, "SubnetsReady")[:2] == (FALSE, "SubnetsNotFound")
    assert said(found, "SecurityGroupsReady")[:2] == (FALSE, "SecurityGroupsNotFound")
    assert said(found, "AMIsReady") == (
        FALSE,
        "AMINotFound",
        "AMISelector did not match any AMIs",
    )
    assert said(found, "Ready")[:2] == (FALSE, "UnhealthyDependents")


def test_an_alias_that_is_not_supported_keeps_the_images_there_are() -> None:
    before = with_images(begun(), [AMD64], "", NOON)

    found = with_images(before, [], "AL2 has no images for Kubernetes 1.33", LATER)

    assert said(found, "AMIsReady")[:2] == (FALSE, "UnsupportedAlias")
    assert found.status.images == (AMD64,)


def test_everything_starts_unknown_and_ready_is_true_at_last() -> None:
    first = with_profile(begun(), "shop_1", NOON)
    assert said(first, "AMIsReady")[:2] == (UNKNOWN, "AwaitingReconciliation")
    assert said(first, "Ready")[:2] == (UNKNOWN, "ReconcilingDependents")
    assert first.status.instance_profile == "shop_1"

    last = with_validation(ready(), "", "", LATER)

    assert said(last, "Ready") == (TRUE, "Ready", "")
    assert [each.generation for each in last.status.conditions.items] == [1] * 7


def test_why_there_is_no_instance_profile_is_said_without_a_verdict() -> None:
    found = with_problem(begun(), "InstanceProfileReady", "RoleNotFound", "no role `nope`", LATER)

    assert said(found, "InstanceProfileReady") == (UNKNOWN, "RoleNotFound", "no role `nope`")
    assert said(found, "Ready")[:2] == (UNKNOWN, "ReconcilingDependents")


def test_a_profile_of_this_generation_outlives_a_failed_look() -> None:
    changed = ready()
    changed = replace(changed, meta=replace(changed.meta, generation=2))

    assert with_problem(ready(), "InstanceProfileReady", "Unauthorized", "no", LATER) == ready()
    found = with_problem(changed, "InstanceProfileReady", "RoleNotFound", "no role `nope`", LATER)
    assert said(found, "InstanceProfileReady") == (UNKNOWN, "RoleNotFound", "no role `nope`")


def test_images_that_boot_no_machine_are_named() -> None:
    found = with_images(begun(), [], "", NOON, ("ami-1", "ami-2"))

    message = "AMISelector did not match any AMIs for amd64 or arm64, only others: ami-1, ami-2"
    assert said(found, "AMIsReady") == (FALSE, "AMINotFound", message)


def test_a_validation_waits_for_what_it_needs() -> None:
    waiting = with_validation_waiting(with_images(begun(), [AMD64], "", NOON), LATER)
    failing = with_validation_waiting(with_images(begun(), [], "", NOON), LATER)

    assert said(waiting, "ValidationSucceeded")[:2] == (UNKNOWN, "DependenciesNotReady")
    assert said(failing, "ValidationSucceeded")[:2] == (FALSE, "DependenciesNotReady")
    assert not is_ready_to_validate(waiting)
    assert is_ready_to_validate(ready())


def test_a_placement_group_is_ready_if_none_is_selected() -> None:
    wanting = node_class(replace(SPEC, placement_group=PlacementGroupTerm("fast")))

    assert said(with_placement_group(begun(), None, "", NOON), "PlacementGroupReady")[0] == TRUE
    missing = with_placement_group(wanting, None, "", NOON)
    assert said(missing, "PlacementGroupReady")[:2] == (FALSE, "PlacementGroupNotFound")
    failed = with_placement_group(wanting, None, "not allowed", NOON)
    assert said(failed, "PlacementGroupReady") == (
        FALSE,
        "PlacementGroupResolutionFailed",
        "not allowed",
    )
    there = with_placement_group(wanting, PlacementGroup("pg-1", "fast"), "", NOON)
    assert said(there, "PlacementGroupReady")[0] == TRUE


def test_reservations_that_have_ended_are_left_out() -> None:
    gated = node_class(
        status=replace(begun().status, conditions=Conditions((), ("CapacityReservationsReady",)))
    )
    block = CapacityReservation("", "p5.48xlarge", "a", type="capacity-block")
    reservations = [
        CapacityReservation("cr-3", "m5.large", "a"),
        replace(block, id="cr-2", ends=NOON + timedelta(minutes=39)),
        replace(block, id="cr-1", ends=NOON + timedelta(minutes=41)),
        replace(block, id="cr-over", ends=NOON),
        CapacityReservation("cr-dead", "m5.large", "a", state="expired"),
    ]

    found = with_reservations(gated, reservations, NOON)

    states = [(each.id, each.state) for each in found.status.reservations]
    assert states == [("cr-1", "active"), ("cr-2", "expiring"), ("cr-3", "active")]
    assert said(found, "CapacityReservationsReady")[0] == TRUE


def test_without_the_gate_nothing_is_said_of_reservations() -> None:
    found = with_reservations(begun(), [], NOON)

    assert found.status.conditions.get("CapacityReservationsReady") is None


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("ec2:CreateLaunchTemplate", "CreateLaunchTemplateAuthCheckFailed"),
        ("ec2:CreateFleet", "CreateFleetAuthCheckFailed"),
        ("ec2:RunInstances", "RunInstancesAuthCheckFailed"),
    ],
)
def test_a_trial_that_is_forbidden_names_its_call(call: str, reason: str) -> None:
    found = validation_failure(call, "UnauthorizedOperation", "You are not authorized")

    assert found is not None
    assert found[0] == reason
    statement = f'{{"Effect": "Allow", "Action": "{call}", "Resource": "*"}}'
    assert statement in found[1]
    assert found[1].endswith("AWS says: You are not authorized")


def test_a_trial_that_is_throttled_is_tried_again() -> None:
    assert validation_failure("ec2:CreateFleet", "RequestLimitExceeded", "slow down") is None
    invalid = "Invalid IAM Instance Profile name"
    assert validation_failure("ec2:CreateFleet", "InvalidParameterValue", invalid) is None


def test_user_data_that_is_too_long_is_named() -> None:
    message = "User data is limited to 16384 bytes"

    found = validation_failure("ec2:CreateLaunchTemplate", "InvalidUserData", message)

    assert found == ("UserDataSizeLimitExceeded", message)


def claim(name: str, version: str, *, has_drifted: bool = False) -> ClaimRecord:
    annotations = {NODE_CLASS_HASH: "1", NODE_CLASS_HASH_VERSION: version}
    drifted = (Condition("Drifted", TRUE, NOON),) if has_drifted else ()
    return ClaimRecord(Identity(name, annotations=annotations), conditions=Conditions(drifted))


def test_a_new_version_of_the_hash_is_written_on_claims_as_well() -> None:
    old = node_class(annotations={NODE_CLASS_HASH: "1", NODE_CLASS_HASH_VERSION: "v4"})
    claims = [claim("a", "v4"), claim("b", "v4", has_drifted=True), claim("c", "v5")]

    found, changed = with_hash(old, "77", claims)

    assert found.meta.annotations == {NODE_CLASS_HASH: "77", NODE_CLASS_HASH_VERSION: "v5"}
    assert {each.name: each.meta.annotations[NODE_CLASS_HASH] for each in changed} == {
        "a": "77",
        "b": "1",
    }
    assert {each.meta.annotations[NODE_CLASS_HASH_VERSION] for each in changed} == {"v5"}


def test_a_hash_that_has_changed_is_not_written_on_claims() -> None:
    old = node_class(annotations={NODE_CLASS_HASH: "1", NODE_CLASS_HASH_VERSION: "v5"})

    found, changed = with_hash(old, "77", [claim("a", "v5")])

    assert found.meta.annotations[NODE_CLASS_HASH] == "77"
    assert changed == ()
    assert with_hash(found, "77", []) == (found, ())
