import pytest

from karpy.codec.fields import FieldInvalid, Fields
from karpy.codec.objects import (
    read_budget,
    read_controller,
    read_namespace,
    read_service,
)
from karpy.codec.uids import derived_uid
from karpy.model.pods import DisruptionBudget, PodController, Service
from karpy.model.requirements import Requirement
from tests.codec.plain import Json

APP = Requirement("app", frozenset({"web"}))


def test_a_namespace_is_its_labels() -> None:
    obj = {"metadata": {"name": "shop", "labels": {"a": "b"}}}

    assert read_namespace(Fields(obj)) == ("shop", {"a": "b"})


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, Service("s", "default")),
        ({"selector": {}}, Service("s", "default", {})),
        ({"selector": {"app": "web"}}, Service("s", "default", {"app": "web"})),
    ],
)
def test_a_service_without_a_selector_is_not_one_that_selects_all(
    spec: Json, expected: Service
) -> None:
    assert read_service(Fields({"metadata": {"name": "s"}, "spec": spec})) == expected


@pytest.mark.parametrize(
    ("kind", "selector", "expected"),
    [
        (
            "ReplicaSet",
            {"matchLabels": {"app": "web"}},
            PodController("apps/v1", "ReplicaSet", "c", "ns", "u", (APP,)),
        ),
        ("StatefulSet", None, PodController("apps/v1", "StatefulSet", "c", "ns", "u")),
        (
            "ReplicationController",
            {"app": "web"},
            PodController("v1", "ReplicationController", "c", "ns", "u", (APP,)),
        ),
    ],
)
def test_controllers_are_known_by_what_they_select(
    kind: str, selector: Json | None, expected: PodController
) -> None:
    obj = {
        "metadata": {"name": "c", "namespace": "ns", "uid": "u"},
        "spec": {"selector": selector},
    }

    assert read_controller(Fields(obj), kind) == expected


def test_a_controller_that_was_never_created_gets_a_uid() -> None:
    made = read_controller(Fields({"metadata": {"name": "c"}}), "ReplicaSet")

    assert made.uid == derived_uid("ReplicaSet", "default", "c")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"minAvailable": 1}, DisruptionBudget("b", "ns", None, "1", None, 2)),
        (
            {"maxUnavailable": "25%", "selector": {}},
            DisruptionBudget("b", "ns", (), None, "25%", 2),
        ),
        (
            {"selector": {"matchLabels": {"app": "web"}}},
            DisruptionBudget("b", "ns", (APP,), None, None, 2),
        ),
    ],
)
def test_budgets_are_read_whole(spec: Json, expected: DisruptionBudget) -> None:
    obj = {
        "metadata": {"name": "b", "namespace": "ns"},
        "spec": spec,
        "status": {"disruptionsAllowed": 2},
    }

    assert read_budget(Fields(obj)) == expected


@pytest.mark.parametrize(
    ("policy", "expected"), [("AlwaysAllow", True), ("IfHealthyBudget", False), ("", False)]
)
def test_a_budget_may_allow_the_eviction_of_unready_pods(policy: str, *, expected: bool) -> None:
    spec = {"selector": {}, "unhealthyPodEvictionPolicy": policy}

    budget = read_budget(Fields({"metadata": {"name": "b"}, "spec": spec}))

    assert budget.allows_unready is expected


@pytest.mark.parametrize("value", [-1, "many", True, "5 %", 1.5])
def test_a_budget_is_a_number_or_a_share(value: object) -> None:
    obj = {"metadata": {"name": "b"}, "spec": {"minAvailable": value}}

    with pytest.raises(FieldInvalid, match="minAvailable"):
        read_budget(Fields(obj))
