from datetime import UTC, datetime

import pytest

from karpy.codec.nodeclasses import ClassReader
from karpy.model.conditions import Condition
from karpy.model.records import ClassState
from tests.codec.plain import Json

READY = {
    "type": "Ready",
    "status": "False",
    "reason": "SubnetsNotFound",
    "message": "no subnets",
    "lastTransitionTime": "2026-01-05T00:00:00Z",
}
NOT_READY = Condition(
    "Ready", "False", datetime(2026, 1, 5, tzinfo=UTC), "SubnetsNotFound", "no subnets"
)


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        ({"metadata": {"name": "a"}}, ClassState()),
        (
            {"metadata": {"name": "a", "generation": 3}, "status": {"conditions": [READY]}},
            ClassState(NOT_READY, generation=3),
        ),
        (
            {"metadata": {"name": "a", "deletionTimestamp": "2026-01-05T00:00:00Z"}},
            ClassState(is_deleting=True),
        ),
    ],
    ids=["silent", "not ready", "deleting"],
)
def test_a_node_class_has_its_condition_ready(obj: Json, expected: ClassState) -> None:
    assert ClassReader().from_object(obj) == expected


def test_a_node_class_may_come_as_bytes() -> None:
    assert ClassReader().from_bytes(b'{"metadata": {"generation": 2}}') == ClassState(generation=2)
