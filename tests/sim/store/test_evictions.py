import pytest

from karpy.codec.fields import JsonObject
from karpy.errors import Conflict, Forbidden, ServerFault, Throttled
from karpy.model.kinds import DISRUPTION_BUDGET, POD, Kind
from karpy.sim.store.evictions import BudgetSpent
from karpy.sim.store.store import Store
from tests.sim.store.worlds import NOW, a_pod, labelled, merge_of

EVICTION: JsonObject = {"metadata": {"name": "web", "namespace": "default"}}
REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."


def set_status(store: Store, kind: Kind, name: str, status: JsonObject) -> None:
    store.patch(kind, name, merge_of({"status": status}), namespace="default", subresource="status")


def add_budget(
    store: Store, name: str = "b", *, spec: JsonObject | None = None, **status: object
) -> None:
    store.create(
        DISRUPTION_BUDGET,
        {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "minAvailable": 1,
                **(spec or {}),
            },
        },
    )
    set_status(store, DISRUPTION_BUDGET, name, {"observedGeneration": 1, **status})


def evict(store: Store, **options: object) -> JsonObject:
    return store.create(POD, {**EVICTION, "deleteOptions": options}, subresource="eviction")


def budget(store: Store) -> JsonObject:
    status: JsonObject = store.get(DISRUPTION_BUDGET, "b", "default")["status"]
    return status


@pytest.fixture
def running(store: Store) -> Store:
    store.create(POD, labelled(a_pod(nodeName="n1"), app="web"))
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    set_status(store, POD, "web", ready)
    return store


def test_an_evicted_pod_has_time_to_stop_and_knows_why(running: Store) -> None:
    answer = evict(running)

    pod = running.get(POD, "web", "default")
    assert answer["status"] == "Success"
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 30
    assert pod["status"]["conditions"][1] == {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastTransitionTime": NOW,
    }


def test_an_eviction_may_say_how_much_time_there_is(running: Store) -> None:
    evict(running, gracePeriodSeconds=5)

    pod = running.get(POD, "web", "default")
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 5


def test_an_eviction_spends_the_budget(running: Store) -> None:
    add_budget(running, disruptionsAllowed=1, currentHealthy=2, desiredHealthy=1)

    evict(running)

    status = budget(running)
    assert status["disruptionsAllowed"] == 0
    assert status["disruptedPods"] == {"web": NOW}
    assert status["conditions"][0]["reason"] == "InsufficientPods"


def test_a_spent_budget_refuses(running: Store) -> None:
    add_budget(running, disruptionsAllowed=0, currentHealthy=1, desiredHealthy=1)

    with pytest.raises(Throttled) as error:
        evict(running)

    assert error.value.message == REFUSED
    assert error.value.status == 429
    assert isinstance(error.value, BudgetSpent)
    assert error.value.details["causes"] == [
        {
            "reason": "DisruptionBudget",
            "message": "The disruption budget b needs 1 healthy pods and has 1 currently",
        }
    ]
    assert "deletionTimestamp" not in running.get(POD, "web", "default")["metadata"]


def test_a_budget_that_is_not_counted_yet_asks_for_a_retry(running: Store) -> None:
    add_budget(running, observedGeneration=0, disruptionsAllowed=5)

    with pytest.raises(Throttled, match="Cannot evict pod") as error:
        evict(running)

    assert error.value.retry_after == 10


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        (
            {"status": "False", "reason": "SyncFailed", "message": "no scale"},
            "does not allow evicting pods currently because it failed sync: no scale",
        ),
        (
            {"status": "False", "reason": "Other", "message": "tired"},
            "does not allow evicting pods currently (Other): tired",
        ),
        ({"status": "True"}, "does not allow evicting pods currently"),
    ],
)
def test_a_budget_says_why_it_refuses(running: Store, condition: JsonObject, why: str) -> None:
    conditions = [{"type": "DisruptionAllowed", **condition}]
    add_budget(running, currentHealthy=2, desiredHealthy=1, conditions=conditions)

    with pytest.raises(BudgetSpent) as error:
        evict(running)

    assert error.value.details["causes"][0]["message"] == f"The disruption budget b {why}"


def test_two_budgets_are_one_too_many(running: Store) -> None:
    add_budget(running, "b", disruptionsAllowed=1)
    add_budget(running, "c", disruptionsAllowed=1)

    with pytest.raises(
        ServerFault, match="This pod has more than one PodDisruptionBudget"
    ) as error:
        evict(running)

    assert error.value.status == 500


@pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
def test_a_pod_that_does_not_run_always_goes(running: Store, phase: str) -> None:
    add_budget(running, disruptionsAllowed=0)
    set_status(running, POD, "web", {"phase": phase})

    evict(running)

    assert budget(running)["disruptionsAllowed"] == 0


def test_an_unready_pod_goes_while_its_budget_is_healthy(running: Store) -> None:
    add_budget(running, disruptionsAllowed=0, currentHealthy=1, desiredHealthy=1)
    set_status(running, POD, "web", {"conditions": []})

    evict(running)

    assert "deletionTimestamp" in running.get(POD, "web", "default")["metadata"]


def test_an_unready_pod_stays_while_its_budget_is_not_healthy(running: Store) -> None:
    add_budget(running, disruptionsAllowed=0, currentHealthy=0, desiredHealthy=1)
    set_status(running, POD, "web", {"conditions": []})

    with pytest.raises(Throttled):
        evict(running)


def test_a_budget_may_let_every_unready_pod_go(running: Store) -> None:
    always = {"unhealthyPodEvictionPolicy": "AlwaysAllow"}
    add_budget(running, spec=always, disruptionsAllowed=0, currentHealthy=0, desiredHealthy=1)
    set_status(running, POD, "web", {"conditions": []})

    evict(running)

    assert "deletionTimestamp" in running.get(POD, "web", "default")["metadata"]


def test_a_budget_without_a_selector_protects_no_pod(running: Store) -> None:
    running.create(
        DISRUPTION_BUDGET,
        {"metadata": {"name": "b", "namespace": "default"}, "spec": {"minAvailable": 1}},
    )

    assert evict(running)["status"] == "Success"


def test_a_negative_budget_is_an_error(running: Store) -> None:
    add_budget(running, disruptionsAllowed=-1)

    with pytest.raises(Forbidden, match="pdb disruptions allowed is negative"):
        evict(running)


def test_only_the_pod_that_was_meant_is_evicted(running: Store) -> None:
    with pytest.raises(Conflict, match="the UID in the precondition"):
        evict(running, preconditions={"uid": "other"})


def test_a_dry_run_evicts_nothing(running: Store) -> None:
    add_budget(running, disruptionsAllowed=1)
    before = running.version

    running.create(POD, EVICTION, subresource="eviction", dry_run=True)

    assert running.version == before
