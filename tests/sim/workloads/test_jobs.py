import pytest

from karpy.codec.fields import JsonObject
from karpy.model.kinds import JOB, POD
from karpy.sim.workloads.jobindexes import index_text, read_indexes
from tests.sim.stories import on_virtual_time
from tests.sim.workloads.stage import Stage, on_stage, settle, template

TRACKED = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
COMPLETE = {
    "SuccessCriteriaMet": ("True", "CompletionsReached"),
    "Complete": ("True", "CompletionsReached"),
}


def _spec(**spec: object) -> JsonObject:
    return {"template": {"spec": {**template("x")["spec"], "restartPolicy": "Never"}}, **spec}


def _end(stage: Stage, phase: str, *pods: str, code: int = 0) -> None:
    """Have pods end; all that run if none is named."""
    for pod in pods or stage.pod_names():
        ended = {"exitCode": code, "finishedAt": "2026-01-01T00:00:00Z"}
        statuses = [{"name": "app", "restartCount": 0, "state": {"terminated": ended}}]
        stage.report(pod, phase, containerStatuses=statuses if code else [])


def _running(stage: Stage) -> list[str]:
    return [
        pod["metadata"]["name"]
        for pod in stage.pods()
        if pod["status"]["phase"] in {"Pending", "Running"}
    ]


@on_virtual_time
async def test_a_job_runs_a_pod_until_it_succeeds() -> None:
    with on_stage() as stage:
        stage.add(JOB, "sum", _spec())
        await settle(2)
        running = stage.status(JOB, "sum")
        pod = stage.pods()[0]
        _end(stage, "Succeeded")
        await settle()

        assert pod["metadata"]["finalizers"] == [TRACKED]
        assert pod["metadata"]["name"].startswith("sum-")
        assert running == {
            "startTime": "2026-01-01T00:00:00Z",
            "active": 1,
            "ready": 1,
            "terminating": 0,
            "uncountedTerminatedPods": {},
        }
        assert stage.status(JOB, "sum") == {
            "startTime": "2026-01-01T00:00:00Z",
            "completionTime": "2026-01-01T00:00:02Z",
            "succeeded": 1,
            "ready": 0,
            "terminating": 0,
            "uncountedTerminatedPods": {},
        }
        assert stage.conditions(JOB, "sum") == COMPLETE
        assert "finalizers" not in stage.pods()[0]["metadata"]
        assert stage.events("sum")[-1] == "Completed: Job completed x1"


@on_virtual_time
async def test_the_decision_is_written_before_the_end() -> None:
    with on_stage() as stage:
        seen: list[list[str]] = []
        stage.store.subscribe(JOB, lambda event, _: seen.append(_types(event.object)))
        stage.add(JOB, "sum", _spec())
        await settle(2)

        _end(stage, "Succeeded")
        await settle()

        assert seen[-2:] == [["SuccessCriteriaMet"], ["SuccessCriteriaMet", "Complete"]]


def _types(job: JsonObject) -> list[str]:
    return [each["type"] for each in (job.get("status") or {}).get("conditions") or ()]


@on_virtual_time
async def test_as_many_pods_run_at_a_time_as_may() -> None:
    with on_stage() as stage:
        stage.add(JOB, "sum", _spec(parallelism=2, completions=5))
        await settle(2)
        first = len(_running(stage))
        _end(stage, "Succeeded")
        await settle(2)
        second = len(_running(stage))
        _end(stage, "Succeeded", *_running(stage))
        await settle(2)
        third = len(_running(stage))
        _end(stage, "Succeeded", *_running(stage))
        await settle(2)

        assert (first, second, third) == (2, 2, 1)
        assert stage.status(JOB, "sum")["succeeded"] == 5
        assert stage.conditions(JOB, "sum") == COMPLETE


@on_virtual_time
async def test_without_completions_one_success_stands_for_all() -> None:
    with on_stage() as stage:
        stage.add(JOB, "queue", _spec(parallelism=3))
        await settle(2)
        first, second, third = stage.pod_names()

        _end(stage, "Succeeded", first)
        await settle(60)
        waiting = len(_running(stage)), stage.conditions(JOB, "queue")
        _end(stage, "Succeeded", second, third)
        await settle()

        assert waiting == (2, {})
        assert stage.status(JOB, "queue")["succeeded"] == 3
        assert stage.conditions(JOB, "queue") == COMPLETE


@on_virtual_time
async def test_a_failed_pod_is_tried_again_ever_more_slowly() -> None:
    with on_stage() as stage:
        stage.add(JOB, "sum", _spec())
        await settle(2)

        _end(stage, "Failed")
        await settle(9)
        before = len(stage.pods())
        await settle(2)
        second = len(stage.pods())
        _end(stage, "Failed", *_running(stage))
        await settle(18)
        third = len(stage.pods())
        await settle(4)

        assert (before, second, third, len(stage.pods())) == (1, 2, 2, 3)
        assert stage.status(JOB, "sum")["failed"] == 2


@on_virtual_time
async def test_too_many_failures_are_the_end() -> None:
    with on_stage() as stage:
        stage.add(JOB, "sum", _spec(backoffLimit=1, parallelism=2, completions=2))
        await settle(2)
        first, second = stage.pod_names()

        _end(stage, "Failed", first)
        await settle(15)
        _end(stage, "Failed", second)
        await settle(5)

        assert stage.conditions(JOB, "sum") == {
            "FailureTarget": ("True", "BackoffLimitExceeded"),
            "Failed": ("True", "BackoffLimitExceeded"),
        }
        assert _running(stage) == []
        assert stage.status(JOB, "sum")["failed"] == 3
        assert stage.events("sum")[-1] == (
            "BackoffLimitExceeded: Job has reached the specified backoff limit x1"
        )


@on_virtual_time
async def test_a_job_has_failed_only_when_its_pods_have_stopped() -> None:
    with on_stage(stop=20) as stage:
        stage.add(JOB, "sum", _spec(activeDeadlineSeconds=30))
        await settle(31)
        before = stage.conditions(JOB, "sum"), stage.status(JOB, "sum")["terminating"]
        await settle(20)

        assert before == ({"FailureTarget": ("True", "DeadlineExceeded")}, 1)
        assert stage.conditions(JOB, "sum") == {
            "FailureTarget": ("True", "DeadlineExceeded"),
            "Failed": ("True", "DeadlineExceeded"),
        }
        assert stage.status(JOB, "sum")["failed"] == 1


@on_virtual_time
async def test_containers_that_restart_too_often_are_the_end() -> None:
    with on_stage() as stage:
        spec = _spec(backoffLimit=3)
        spec["template"]["spec"]["restartPolicy"] = "OnFailure"
        stage.add(JOB, "sum", spec)
        await settle(2)

        statuses = [{"name": "app", "restartCount": 3}]
        stage.report(stage.pod_names()[0], "Running", containerStatuses=statuses)
        await settle(5)

        assert stage.conditions(JOB, "sum")["Failed"] == ("True", "BackoffLimitExceeded")


@on_virtual_time
async def test_a_deleted_pod_is_replaced_and_counts_as_failed() -> None:
    with on_stage() as stage:
        stage.add(JOB, "sum", _spec())
        await settle(2)

        stage.delete(POD, stage.pod_names()[0])
        await settle(20)

        assert len(_running(stage)) == 1
        assert stage.status(JOB, "sum")["failed"] == 1


@on_virtual_time
async def test_a_pod_that_stops_is_replaced_only_once_it_has_failed_if_the_job_says_so() -> None:
    with on_stage(stop=30) as stage:
        stage.add(JOB, "sum", _spec(podReplacementPolicy="Failed"))
        await settle(2)
        pod = stage.pod_names()[0]

        stage.delete(POD, pod)
        await settle(20)
        before = _running(stage), stage.status(JOB, "sum")["terminating"]
        _end(stage, "Failed", pod)
        await settle(30)

        assert before == ([], 1)
        assert len(_running(stage)) == 1


@on_virtual_time
async def test_a_suspended_job_rests() -> None:
    with on_stage() as stage:
        stage.add(JOB, "sum", _spec(suspend=True, activeDeadlineSeconds=60))
        await settle(100)
        resting = stage.pods(), stage.conditions(JOB, "sum"), stage.status(JOB, "sum")
        stage.patch(JOB, "sum", {"spec": {"suspend": False}})
        await settle(2)
        resumed = len(_running(stage)), stage.conditions(JOB, "sum")
        stage.patch(JOB, "sum", {"spec": {"suspend": True}})
        await settle(5)

        assert resting[0] == []
        assert resting[1] == {"Suspended": ("True", "JobSuspended")}
        assert "startTime" not in resting[2]
        assert resumed == (1, {"Suspended": ("False", "JobResumed")})
        assert _running(stage) == []
        assert stage.status(JOB, "sum").get("failed") is None
        assert stage.status(JOB, "sum")["startTime"] == "2026-01-01T00:01:40Z"


@on_virtual_time
async def test_lower_parallelism_stops_pods_without_calling_them_failed() -> None:
    with on_stage() as stage:
        stage.add(JOB, "sum", _spec(parallelism=3, completions=9))
        await settle(2)

        stage.patch(JOB, "sum", {"spec": {"parallelism": 1}})
        await settle(5)

        assert len(_running(stage)) == 1
        assert stage.status(JOB, "sum").get("failed") is None


@on_virtual_time
async def test_indexed_pods_know_their_number() -> None:
    with on_stage(start=None) as stage:
        spec = _spec(completionMode="Indexed", completions=3, parallelism=2)
        stage.add(JOB, "sum", spec)
        await settle()

        pods = sorted(stage.pods(), key=lambda pod: str(pod["metadata"]["annotations"][INDEX]))
        assert [pod["metadata"]["annotations"][INDEX] for pod in pods] == ["0", "1"]
        assert [pod["metadata"]["labels"][INDEX] for pod in pods] == ["0", "1"]
        assert [pod["spec"]["hostname"] for pod in pods] == ["sum-0", "sum-1"]
        assert pods[1]["metadata"]["generateName"] == "sum-1-"
        assert pods[0]["spec"]["containers"][0]["env"][0]["name"] == "JOB_COMPLETION_INDEX"


@on_virtual_time
async def test_an_index_that_fails_is_tried_again_under_its_number() -> None:
    with on_stage(start=None) as stage:
        spec = _spec(completionMode="Indexed", completions=2, parallelism=2)
        stage.add(JOB, "sum", spec)
        await settle()
        zero = stage.pod_names(f"{INDEX}=0")[0]
        one = stage.pod_names(f"{INDEX}=1")[0]

        _end(stage, "Succeeded", one)
        _end(stage, "Failed", zero)
        await settle(15)
        halfway = stage.status(JOB, "sum")["completedIndexes"]
        again = [name for name in stage.pod_names(f"{INDEX}=0") if name != zero]
        _end(stage, "Succeeded", *again)
        await settle()

        assert halfway == "1"
        assert len(again) == 1
        assert stage.status(JOB, "sum")["completedIndexes"] == "0,1"
        assert stage.conditions(JOB, "sum") == COMPLETE


@on_virtual_time
async def test_each_index_may_have_a_limit_of_its_own() -> None:
    with on_stage(start=None) as stage:
        spec = _spec(completionMode="Indexed", completions=2, parallelism=2, backoffLimitPerIndex=0)
        stage.add(JOB, "sum", spec)
        await settle()

        _end(stage, "Failed", stage.pod_names(f"{INDEX}=0")[0])
        await settle(60)
        halfway = stage.status(JOB, "sum")["failedIndexes"], _types(stage.get(JOB, "sum"))
        _end(stage, "Succeeded", stage.pod_names(f"{INDEX}=1")[0])
        await settle(60)

        assert halfway == ("0", [])
        assert stage.conditions(JOB, "sum")["Failed"] == ("True", "FailedIndexes")


@on_virtual_time
async def test_too_many_failed_indexes_are_the_end() -> None:
    with on_stage(start=None) as stage:
        spec = _spec(
            completionMode="Indexed",
            completions=3,
            parallelism=3,
            backoffLimitPerIndex=0,
            maxFailedIndexes=1,
        )
        stage.add(JOB, "sum", spec)
        await settle()

        _end(stage, "Failed", stage.pod_names(f"{INDEX}=0")[0], stage.pod_names(f"{INDEX}=1")[0])
        await settle(60)

        assert stage.conditions(JOB, "sum")["Failed"] == ("True", "MaxFailedIndexesExceeded")


@on_virtual_time
async def test_some_indexes_may_be_enough() -> None:
    with on_stage(start=None) as stage:
        spec = _spec(
            completionMode="Indexed",
            completions=3,
            parallelism=3,
            successPolicy={"rules": [{"succeededIndexes": "0"}]},
        )
        stage.add(JOB, "lead", spec)
        await settle()

        _end(stage, "Succeeded", stage.pod_names(f"{INDEX}=0")[0])
        await settle(5)

        assert stage.conditions(JOB, "lead") == {
            "SuccessCriteriaMet": ("True", "SuccessPolicy"),
            "Complete": ("True", "SuccessPolicy"),
        }
        assert _running(stage) == []


@pytest.mark.parametrize(
    ("action", "code", "failed", "ended"),
    [("FailJob", 42, 1, "PodFailurePolicy"), ("Ignore", 42, None, ""), ("FailJob", 1, 1, "")],
)
@on_virtual_time
async def test_an_exit_code_may_decide(
    action: str, code: int, failed: int | None, ended: str
) -> None:
    with on_stage() as stage:
        rule = {"action": action, "onExitCodes": {"operator": "In", "values": [42]}}
        stage.add(JOB, "sum", _spec(podFailurePolicy={"rules": [rule]}))
        await settle(2)

        _end(stage, "Failed", code=code)
        await settle(5)

        assert stage.status(JOB, "sum").get("failed") == failed
        assert stage.conditions(JOB, "sum").get("Failed", ("", ""))[1] == ended


@on_virtual_time
async def test_a_disruption_may_be_forgiven() -> None:
    with on_stage() as stage:
        rule = {
            "action": "Ignore",
            "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
        }
        stage.add(JOB, "sum", _spec(backoffLimit=0, podFailurePolicy={"rules": [rule]}))
        await settle(2)
        target = {"type": "DisruptionTarget", "status": "True"}

        body = {"status": {"phase": "Failed", "conditions": [target]}}
        stage.patch(POD, stage.pod_names()[0], body, "status")
        await settle(60)

        assert stage.conditions(JOB, "sum") == {}
        assert len(_running(stage)) == 1


@on_virtual_time
async def test_a_finished_job_goes_when_its_time_is_over() -> None:
    with on_stage() as stage:
        stage.add(JOB, "sum", _spec(ttlSecondsAfterFinished=100))
        await settle(2)
        _end(stage, "Succeeded")
        await settle(95)
        before = stage.exists(JOB, "sum")
        await settle(10)

        assert before
        assert stage.names(JOB) == []
        assert stage.names(POD) == []


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
@on_virtual_time
async def test_a_job_takes_its_pods_with_it(propagation: str) -> None:
    with on_stage() as stage:
        stage.add(JOB, "sum", _spec(parallelism=2, completions=4))
        await settle(2)

        stage.delete(JOB, "sum", propagation)
        await settle(5)

        assert stage.names(JOB) == []
        assert stage.names(POD) == []


@on_virtual_time
async def test_pods_of_an_orphaning_job_stay_and_are_held_by_nothing() -> None:
    with on_stage() as stage:
        stage.add(JOB, "sum", _spec())
        await settle(2)

        stage.delete(JOB, "sum", "Orphan")
        await settle(5)

        (pod,) = stage.pods()
        assert "ownerReferences" not in pod["metadata"]
        assert "finalizers" not in pod["metadata"]


@on_virtual_time
async def test_a_job_that_somebody_else_manages_is_left_alone() -> None:
    with on_stage() as stage:
        stage.add(JOB, "sum", _spec(managedBy="example.com/kueue"))
        await settle(5)

        assert stage.pods() == []


@on_virtual_time
async def test_a_finished_job_writes_nothing_more() -> None:
    with on_stage() as stage:
        stage.add(JOB, "sum", _spec())
        await settle(2)
        _end(stage, "Succeeded")
        await settle(5)
        before = stage.store.version

        await settle(3000)

        assert stage.store.version == before


@pytest.mark.parametrize(
    ("indexes", "text"),
    [(set(), ""), ({3}, "3"), ({1, 2}, "1,2"), ({0, 1, 2, 5, 7, 8}, "0-2,5,7,8")],
)
def test_indexes_are_written_short_and_read_back(indexes: set[int], text: str) -> None:
    assert index_text(indexes) == text
    assert read_indexes(text, 100) == indexes


@pytest.mark.parametrize(
    ("text", "expected"), [("3-9", {3, 4}), ("x,1", {1}), ("2-y", set()), (None, set())]
)
def test_indexes_that_make_no_sense_are_left_out(text: str | None, expected: set[int]) -> None:
    assert read_indexes(text, 5) == expected
