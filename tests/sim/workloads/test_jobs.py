import pytest

from karpy.model.kinds import JOB, POD
from tests.sim.stories import on_virtual_time
from tests.sim.workloads.runs import COMPLETE, condition_types, end_pods, job_spec, running_pods
from tests.sim.workloads.stage import on_stage, settle

TRACKED = "batch.kubernetes.io/job-tracking"


@on_virtual_time
async def test_a_job_runs_a_pod_until_it_succeeds() -> None:
    with on_stage() as stage:
        stage.add(JOB, "sum", job_spec())
        await settle(2)
        running = stage.status(JOB, "sum")
        pod = stage.pods()[0]
        end_pods(stage, "Succeeded")
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
        stage.store.subscribe(JOB, lambda event, _: seen.append(condition_types(event.object)))
        stage.add(JOB, "sum", job_spec())
        await settle(2)

        end_pods(stage, "Succeeded")
        await settle()

        assert seen[-2:] == [["SuccessCriteriaMet"], ["SuccessCriteriaMet", "Complete"]]


@on_virtual_time
async def test_as_many_pods_run_at_a_time_as_may() -> None:
    with on_stage() as stage:
        stage.add(JOB, "sum", job_spec(parallelism=2, completions=5))
        await settle(2)
        first = len(running_pods(stage))
        end_pods(stage, "Succeeded")
        await settle(2)
        second = len(running_pods(stage))
        end_pods(stage, "Succeeded", *running_pods(stage))
        await settle(2)
        third = len(running_pods(stage))
        end_pods(stage, "Succeeded", *running_pods(stage))
        await settle(2)

        assert (first, second, third) == (2, 2, 1)
        assert stage.status(JOB, "sum")["succeeded"] == 5
        assert stage.conditions(JOB, "sum") == COMPLETE


@on_virtual_time
async def test_without_completions_one_success_stands_for_all() -> None:
    with on_stage() as stage:
        stage.add(JOB, "queue", job_spec(parallelism=3))
        await settle(2)
        first, second, third = stage.pod_names()

        end_pods(stage, "Succeeded", first)
        await settle(60)
        waiting = len(running_pods(stage)), stage.conditions(JOB, "queue")
        end_pods(stage, "Succeeded", second, third)
        await settle()

        assert waiting == (2, {})
        assert stage.status(JOB, "queue")["succeeded"] == 3
        assert stage.conditions(JOB, "queue") == COMPLETE


@on_virtual_time
async def test_a_failed_pod_is_tried_again_ever_more_slowly() -> None:
    with on_stage() as stage:
        stage.add(JOB, "sum", job_spec())
        await settle(2)

        end_pods(stage, "Failed")
        await settle(9)
        before = len(stage.pods())
        await settle(2)
        second = len(stage.pods())
        end_pods(stage, "Failed", *running_pods(stage))
        await settle(18)
        third = len(stage.pods())
        await settle(4)

        assert (before, second, third, len(stage.pods())) == (1, 2, 2, 3)
        assert stage.status(JOB, "sum")["failed"] == 2


@on_virtual_time
async def test_a_job_fails_after_too_many_failures() -> None:
    with on_stage() as stage:
        stage.add(JOB, "sum", job_spec(backoffLimit=1, parallelism=2, completions=2))
        await settle(2)
        first, second = stage.pod_names()

        end_pods(stage, "Failed", first)
        await settle(15)
        end_pods(stage, "Failed", second)
        await settle(5)

        assert stage.conditions(JOB, "sum") == {
            "FailureTarget": ("True", "BackoffLimitExceeded"),
            "Failed": ("True", "BackoffLimitExceeded"),
        }
        assert running_pods(stage) == []
        assert stage.status(JOB, "sum")["failed"] == 3
        assert stage.events("sum")[-1] == (
            "BackoffLimitExceeded: Job has reached the specified backoff limit x1"
        )


@on_virtual_time
async def test_a_job_has_failed_only_when_its_pods_have_stopped() -> None:
    with on_stage(stop=20) as stage:
        stage.add(JOB, "sum", job_spec(activeDeadlineSeconds=30))
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
async def test_a_job_fails_after_too_many_restarts_of_containers() -> None:
    with on_stage() as stage:
        spec = job_spec(backoffLimit=3)
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
        stage.add(JOB, "sum", job_spec())
        await settle(2)

        stage.delete(POD, stage.pod_names()[0])
        await settle(20)

        assert len(running_pods(stage)) == 1
        assert stage.status(JOB, "sum")["failed"] == 1


@on_virtual_time
async def test_a_pod_that_stops_is_replaced_only_once_it_has_failed_if_the_job_says_so() -> None:
    with on_stage(stop=30) as stage:
        stage.add(JOB, "sum", job_spec(podReplacementPolicy="Failed"))
        await settle(2)
        pod = stage.pod_names()[0]

        stage.delete(POD, pod)
        await settle(20)
        before = running_pods(stage), stage.status(JOB, "sum")["terminating"]
        end_pods(stage, "Failed", pod)
        await settle(30)

        assert before == ([], 1)
        assert len(running_pods(stage)) == 1


@on_virtual_time
async def test_a_suspended_job_runs_no_pods() -> None:
    with on_stage() as stage:
        stage.add(JOB, "sum", job_spec(suspend=True, activeDeadlineSeconds=60))
        await settle(100)
        resting = stage.pods(), stage.conditions(JOB, "sum"), stage.status(JOB, "sum")
        stage.patch(JOB, "sum", {"spec": {"suspend": False}})
        await settle(2)
        resumed = len(running_pods(stage)), stage.conditions(JOB, "sum")
        stage.patch(JOB, "sum", {"spec": {"suspend": True}})
        await settle(5)

        assert resting[0] == []
        assert resting[1] == {"Suspended": ("True", "JobSuspended")}
        assert "startTime" not in resting[2]
        assert resumed == (1, {"Suspended": ("False", "JobResumed")})
        assert running_pods(stage) == []
        assert stage.status(JOB, "sum").get("failed") is None
        assert stage.status(JOB, "sum")["startTime"] == "2026-01-01T00:01:40Z"


@on_virtual_time
async def test_lower_parallelism_stops_pods_without_calling_them_failed() -> None:
    with on_stage() as stage:
        stage.add(JOB, "sum", job_spec(parallelism=3, completions=9))
        await settle(2)

        stage.patch(JOB, "sum", {"spec": {"parallelism": 1}})
        await settle(5)

        assert len(running_pods(stage)) == 1
        assert stage.status(JOB, "sum").get("failed") is None


@on_virtual_time
async def test_a_finished_job_is_deleted_after_its_ttl() -> None:
    with on_stage() as stage:
        stage.add(JOB, "sum", job_spec(ttlSecondsAfterFinished=100))
        await settle(2)
        end_pods(stage, "Succeeded")
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
        stage.add(JOB, "sum", job_spec(parallelism=2, completions=4))
        await settle(2)

        stage.delete(JOB, "sum", propagation)
        await settle(5)

        assert stage.names(JOB) == []
        assert stage.names(POD) == []


@on_virtual_time
async def test_orphaned_pods_of_a_job_stay_without_the_finalizer() -> None:
    with on_stage() as stage:
        stage.add(JOB, "sum", job_spec())
        await settle(2)

        stage.delete(JOB, "sum", "Orphan")
        await settle(5)

        (pod,) = stage.pods()
        assert "ownerReferences" not in pod["metadata"]
        assert "finalizers" not in pod["metadata"]


@on_virtual_time
async def test_a_job_of_another_manager_is_left_alone() -> None:
    with on_stage() as stage:
        stage.add(JOB, "sum", job_spec(managedBy="example.com/kueue"))
        await settle(5)

        assert stage.pods() == []


@on_virtual_time
async def test_a_finished_job_writes_nothing_more() -> None:
    with on_stage() as stage:
        stage.add(JOB, "sum", job_spec())
        await settle(2)
        end_pods(stage, "Succeeded")
        await settle(5)
        before = stage.store.version

        await settle(3000)

        assert stage.store.version == before
