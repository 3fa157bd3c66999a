import pytest

from karpy.codec.fields import JsonObject
from karpy.errors import Throttled
from karpy.model.kinds import (
    DAEMON_SET,
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    JOB,
    POD,
    REPLICA_SET,
    STATEFUL_SET,
    Kind,
)
from tests.sim.stories import on_virtual_time
from tests.sim.workloads.stage import NAMESPACE, Stage, on_stage, settle, template, workload


def _budget(**spec: object) -> JsonObject:
    return {"selector": {"matchLabels": {"app": "web"}}, **spec}


def _numbers(stage: Stage) -> tuple[int, int, int, int]:
    """Return expected pods, healthy ones, those that must be, and how many may go."""
    status = stage.status(DISRUPTION_BUDGET, "web")
    return (
        status["expectedPods"],
        status["currentHealthy"],
        status["desiredHealthy"],
        status["disruptionsAllowed"],
    )


def _evict(stage: Stage, pod: str) -> None:
    eviction = {"metadata": {"name": pod, "namespace": NAMESPACE}}
    stage.store.create(POD, eviction, subresource="eviction")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"minAvailable": 2}, (7, 7, 2, 5)),
        ({"minAvailable": 9}, (7, 7, 9, 0)),
        ({"minAvailable": "50%"}, (7, 7, 4, 3)),
        ({"minAvailable": "100%"}, (7, 7, 7, 0)),
        ({"minAvailable": "0%"}, (7, 7, 0, 7)),
        ({"maxUnavailable": 2}, (7, 7, 5, 2)),
        ({"maxUnavailable": 0}, (7, 7, 7, 0)),
        ({"maxUnavailable": 9}, (7, 7, 0, 7)),
        ({"maxUnavailable": "30%"}, (7, 7, 4, 3)),
    ],
)
@on_virtual_time
async def test_a_budget_counts(spec: JsonObject, expected: tuple[int, int, int, int]) -> None:
    with on_stage() as stage:
        stage.add(DEPLOYMENT, "web", workload("web", replicas=7))
        stage.add(DISRUPTION_BUDGET, "web", _budget(**spec))
        await settle(5)

        assert _numbers(stage) == expected


@on_virtual_time
async def test_a_budget_says_whether_pods_may_go() -> None:
    with on_stage(start=None) as stage:
        stage.add(DEPLOYMENT, "web", workload("web", replicas=2))
        stage.add(DISRUPTION_BUDGET, "web", _budget(minAvailable=1))
        await settle()
        before = stage.get(DISRUPTION_BUDGET, "web")["status"]["conditions"]
        stage.run(stage.pod_names()[0])
        stage.run(stage.pod_names()[1])
        await settle(2)

        assert before == [
            {
                "type": "DisruptionAllowed",
                "status": "False",
                "reason": "InsufficientPods",
                "message": "",
                "observedGeneration": 1,
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
        ]
        assert stage.conditions(DISRUPTION_BUDGET, "web") == {
            "DisruptionAllowed": ("True", "SufficientPods")
        }
        assert stage.status(DISRUPTION_BUDGET, "web")["observedGeneration"] == 1


@on_virtual_time
async def test_evictions_are_let_through_one_by_one() -> None:
    with on_stage(start=5) as stage:
        stage.add(DEPLOYMENT, "web", workload("web", replicas=3))
        stage.add(DISRUPTION_BUDGET, "web", _budget(maxUnavailable=1))
        await settle(10)
        first, second, _ = stage.pod_names()

        _evict(stage, first)
        await settle(1)
        meanwhile = _numbers(stage)
        with pytest.raises(Throttled):
            _evict(stage, second)
        await settle(10)

        assert meanwhile == (3, 2, 2, 0)
        assert _numbers(stage) == (3, 3, 2, 1)
        assert "disruptedPods" not in stage.status(DISRUPTION_BUDGET, "web")


@on_virtual_time
async def test_a_pod_that_was_evicted_and_is_not_deleted_counts_again_after_a_while() -> None:
    with on_stage() as stage:
        stage.add(DEPLOYMENT, "web", workload("web", replicas=2))
        stage.add(DISRUPTION_BUDGET, "web", _budget(minAvailable=1))
        await settle(5)
        pod = stage.pod_names()[0]

        noted = {"disruptedPods": {pod: "2026-01-01T00:00:05Z"}, "disruptionsAllowed": 0}
        stage.patch(DISRUPTION_BUDGET, "web", {"status": noted}, "status")
        await settle(100)
        before = _numbers(stage)
        await settle(30)

        assert before == (2, 1, 1, 0)
        assert _numbers(stage) == (2, 2, 1, 1)
        assert stage.events(pod) == [
            "NotDeleted: Pod was expected by PDB default/web to be deleted but it wasn't x1"
        ]


@on_virtual_time
async def test_deleting_and_unready_pods_are_not_healthy() -> None:
    with on_stage(stop=60) as stage:
        stage.add(REPLICA_SET, "web", workload("web", replicas=3))
        stage.add(DISRUPTION_BUDGET, "web", _budget(maxUnavailable=3))
        await settle(5)
        first, second, _ = stage.pod_names()

        stage.report(first, "Running")
        stage.delete(POD, second)
        await settle(0.5)

        assert _numbers(stage) == (3, 1, 0, 1)


@on_virtual_time
async def test_the_size_of_a_stateful_set_counts_not_its_pods() -> None:
    with on_stage(start=None) as stage:
        spec = workload("web", replicas=4, serviceName="web")
        stage.add(STATEFUL_SET, "web", spec)
        stage.add(DISRUPTION_BUDGET, "web", _budget(maxUnavailable="50%"))
        await settle()
        stage.run("web-0")
        await settle()

        assert _numbers(stage) == (4, 1, 2, 0)


@on_virtual_time
async def test_an_empty_selector_means_all_pods_and_none_means_none() -> None:
    with on_stage() as stage:
        stage.add(DEPLOYMENT, "web", workload("web", replicas=2))
        stage.add(DEPLOYMENT, "api", workload("api", replicas=3))
        stage.add(DISRUPTION_BUDGET, "all", {"selector": {}, "minAvailable": 1})
        stage.add(DISRUPTION_BUDGET, "none", {"minAvailable": 1})
        await settle(5)

        assert stage.status(DISRUPTION_BUDGET, "all")["expectedPods"] == 5
        assert stage.status(DISRUPTION_BUDGET, "none")["expectedPods"] == 0
        assert stage.events("none") == ["NoPods: No matching pods found x1"]


@on_virtual_time
async def test_pods_without_a_controller_count_for_a_number_only() -> None:
    with on_stage() as stage:
        stage.add(POD, "lone", template("web")["spec"], labels={"app": "web"})
        stage.add(DISRUPTION_BUDGET, "web", _budget(minAvailable=1))
        stage.add(DISRUPTION_BUDGET, "share", _budget(minAvailable="50%"))
        await settle(5)

        assert stage.status(DISRUPTION_BUDGET, "web")["expectedPods"] == 1
        assert stage.status(DISRUPTION_BUDGET, "share")["expectedPods"] == 0
        assert stage.status(DISRUPTION_BUDGET, "share")["disruptionsAllowed"] == 0
        assert stage.events("share")[-1].startswith("UnmanagedPods: ")


@pytest.mark.parametrize(
    ("kind", "spec", "resource"),
    [
        (
            DAEMON_SET,
            {"selector": {"matchLabels": {"app": "web"}}, "template": template("web")},
            "daemonsets.apps",
        ),
        (JOB, {"template": template("web", restartPolicy="Never")}, "jobs.batch"),
    ],
)
@on_virtual_time
async def test_a_budget_over_what_cannot_be_scaled_allows_nothing(
    kind: Kind, spec: JsonObject, resource: str
) -> None:
    with on_stage() as stage:
        stage.node("n1")
        stage.add(kind, "agent", spec)
        stage.add(DISRUPTION_BUDGET, "web", _budget(maxUnavailable=1))
        await settle(5)

        (condition,) = stage.get(DISRUPTION_BUDGET, "web")["status"]["conditions"]
        assert (condition["status"], condition["reason"]) == ("False", "SyncFailed")
        assert condition["message"] == f"{resource} does not implement the scale subresource"
        assert stage.status(DISRUPTION_BUDGET, "web")["disruptionsAllowed"] == 0


@on_virtual_time
async def test_a_pod_that_changes_its_labels_changes_its_budget() -> None:
    with on_stage() as stage:
        stage.add(POD, "lone", template("web")["spec"], labels={"app": "api"})
        stage.add(DISRUPTION_BUDGET, "web", _budget(minAvailable=0))
        await settle(2)
        before = _numbers(stage)

        stage.patch(POD, "lone", {"metadata": {"labels": {"app": "web"}}})
        await settle(2)
        meanwhile = _numbers(stage)
        stage.patch(POD, "lone", {"metadata": {"labels": {"app": "api"}}})
        await settle(2)

        assert before == (0, 0, 0, 0)
        assert meanwhile == (1, 1, 0, 1)
        assert _numbers(stage) == (0, 0, 0, 0)


@on_virtual_time
async def test_a_changed_budget_counts_anew() -> None:
    with on_stage() as stage:
        stage.add(DEPLOYMENT, "web", workload("web", replicas=4))
        stage.add(DISRUPTION_BUDGET, "web", _budget(minAvailable=1))
        await settle(5)

        stage.patch(DISRUPTION_BUDGET, "web", {"spec": {"minAvailable": 3}})
        await settle(1)

        assert _numbers(stage) == (4, 4, 3, 1)
        assert stage.status(DISRUPTION_BUDGET, "web")["observedGeneration"] == 2


@on_virtual_time
async def test_a_budget_that_is_gone_is_forgotten() -> None:
    with on_stage() as stage:
        stage.add(DISRUPTION_BUDGET, "web", _budget(minAvailable=1))
        await settle(1)

        stage.delete(DISRUPTION_BUDGET, "web")
        stage.add(DEPLOYMENT, "web", workload("web"))
        await settle(5)

        assert len(stage.pods()) == 3


@on_virtual_time
async def test_a_budget_at_rest_writes_nothing() -> None:
    with on_stage() as stage:
        stage.add(DEPLOYMENT, "web", workload("web"))
        stage.add(DISRUPTION_BUDGET, "web", _budget(minAvailable=1))
        await settle(10)
        before = stage.store.version

        await settle(3000)

        assert stage.store.version == before
