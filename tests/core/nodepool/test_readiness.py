from datetime import timedelta

import pytest
from msgspec.structs import replace

from karpy.core.nodepool.readiness import judge_readiness, judge_validity
from karpy.model.conditions import FALSE, TRUE, UNKNOWN, Condition
from karpy.model.kinds import NODE_POOL
from karpy.model.notices import Subject
from karpy.model.records import ClassState, NodeClassRef
from tests.builders.pods import NOON
from tests.core.nodepool.records import pool

LATER = NOON + timedelta(minutes=1)
WAITS = ("AwaitingReconciliation", "object is awaiting reconciliation")


@pytest.mark.parametrize(
    ("node_class", "reason", "message"),
    [
        (None, "NodeClassNotFound", "NodeClass not found on cluster"),
        (ClassState(is_deleting=True), "NodeClassTerminating", "NodeClass is Terminating"),
        (ClassState(), "NodeClassReadinessUnknown", "Node Class Readiness Unknown"),
        (
            ClassState(Condition("Ready", UNKNOWN, NOON, "Waits")),
            "NodeClassReadinessUnknown",
            "Node Class Readiness Unknown",
        ),
        (
            ClassState(Condition("Ready", FALSE, NOON, "SubnetsNotFound", "no subnets")),
            "SubnetsNotFound",
            "no subnets",
        ),
        (
            ClassState(Condition("Ready", TRUE, NOON, "Ready"), is_deleting=True),
            "NodeClassTerminating",
            "NodeClass is Terminating",
        ),
    ],
)
def test_a_pool_says_what_is_wrong_with_its_node_class(
    node_class: ClassState | None, reason: str, message: str
) -> None:
    changes = judge_readiness(pool(generation=2), node_class, LATER)

    assert changes.pool == pool(
        generation=2,
        conditions=[
            Condition("ValidationSucceeded", UNKNOWN, NOON, *WAITS, 2),
            Condition("NodeClassReady", FALSE, LATER, reason, message, 2),
            Condition(
                "Ready",
                FALSE,
                LATER,
                "UnhealthyDependents",
                "NodeClassReady=False, ValidationSucceeded=Unknown",
                2,
            ),
        ],
    )


@pytest.mark.parametrize("node_class", [None, ClassState(is_deleting=True)])
def test_a_pool_whose_node_class_is_gone_gets_an_event(node_class: ClassState | None) -> None:
    web = replace(pool(), node_class=NodeClassRef("g", "K", "default"))

    changes = judge_readiness(web, node_class, LATER)

    (notice,) = changes.notices
    assert (notice.reason, notice.is_warning) == ("FailedResolvingNodeClass", True)
    assert notice.subject == Subject(NODE_POOL, "web", uid="uid-web")
    assert notice.note == "Failed resolving NodeClass `default`"


def test_a_pool_is_ready_once_its_template_is_valid_and_its_node_class_is_ready() -> None:
    valid = judge_validity(pool(), (), NOON).pool
    assert valid is not None

    changes = judge_readiness(valid, ClassState(Condition("Ready", TRUE, NOON)), LATER)

    assert changes.pool == pool(
        conditions=[
            Condition("ValidationSucceeded", TRUE, NOON, "ValidationSucceeded", "", 1),
            Condition("NodeClassReady", TRUE, LATER, "NodeClassReady", "", 1),
            Condition("Ready", TRUE, LATER, "Ready", "", 1),
        ]
    )


def test_a_pool_that_has_the_condition_stays_the_same_object() -> None:
    said = judge_readiness(pool(), None, NOON).pool
    assert said is not None

    changes = judge_readiness(said, None, LATER)

    assert changes.pool is said


def test_a_pool_names_all_its_faults() -> None:
    changes = judge_validity(pool(), ("one is wrong", "two is wrong"), NOON)

    assert changes.pool is not None
    condition = changes.pool.conditions.get("ValidationSucceeded")
    assert condition is not None
    assert condition.status == FALSE
    assert condition.reason == "NodePoolValidationFailed"
    assert condition.message == "one is wrong; two is wrong"


def test_a_mended_pool_is_valid_again() -> None:
    broken = judge_validity(pool(), ("one is wrong",), NOON).pool
    assert broken is not None

    changes = judge_validity(broken, (), LATER)

    assert changes.pool is not None
    condition = changes.pool.conditions.get("ValidationSucceeded")
    assert condition is not None
    assert (condition.status, condition.changed) == (TRUE, LATER)
