import pytest

from karpy.model.kinds import JOB, POD
from karpy.sim.workloads.jobindexes import index_text, read_indexes
from tests.sim.stories import on_virtual_time
from tests.sim.workloads.runs import COMPLETE, condition_types, end_pods, job_spec, running_pods
from tests.sim.workloads.stage import on_stage, settle

INDEX = "batch.kubernetes.io/job-completion-index"


@on_virtual_time
async def test_indexed_pods_know_their_number() -> None:
    with on_stage(start=None) as stage:
        spec = job_spec(completionMode="Indexed", completions=3, parallelism=2)
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
        spec = job_spec(completionMode="Indexed", completions=2, parallelism=2)
        stage.add(JOB, "sum", spec)
        await settle()
        zero = stage.pod_names(f"{INDEX}=0")[0]
        one = stage.pod_names(f"{INDEX}=1")[0]

        end_pods(stage, "Succeeded", one)
        end_pods(stage, "Failed", zero)
        await settle(15)
        halfway = stage.status(JOB, "sum")["completedIndexes"]
        again = [name for name in stage.pod_names(f"{INDEX}=0") if name != zero]
        end_pods(stage, "Succeeded", *again)
        await settle()

        assert halfway == "1"
        assert len(again) == 1
        assert stage.status(JOB, "sum")["completedIndexes"] == "0,1"
        assert stage.conditions(JOB, "sum") == COMPLETE


@on_virtual_time
async def test_each_index_may_have_a_limit_of_its_own() -> None:
    with on_stage(start=None) as stage:
        spec = job_spec(
            completionMode="Indexed", completions=2, parallelism=2, backoffLimitPerIndex=0
        )
        stage.add(JOB, "sum", spec)
        await settle()

        end_pods(stage, "Failed", stage.pod_names(f"{INDEX}=0")[0])
        await settle(60)
        halfway = stage.status(JOB, "sum")["failedIndexes"], condition_types(stage.get(JOB, "sum"))
        end_pods(stage, "Succeeded", stage.pod_names(f"{INDEX}=1")[0])
        await settle(60)

        assert halfway == ("0", [])
        assert stage.conditions(JOB, "sum")["Failed"] == ("True", "FailedIndexes")


@on_virtual_time
async def test_a_job_fails_after_too_many_failed_indexes() -> None:
    with on_stage(start=None) as stage:
        spec = job_spec(
            completionMode="Indexed",
            completions=3,
            parallelism=3,
            backoffLimitPerIndex=0,
            maxFailedIndexes=1,
        )
        stage.add(JOB, "sum", spec)
        await settle()

        end_pods(
            stage, "Failed", stage.pod_names(f"{INDEX}=0")[0], stage.pod_names(f"{INDEX}=1")[0]
        )
        await settle(60)

        assert stage.conditions(JOB, "sum")["Failed"] == ("True", "MaxFailedIndexesExceeded")


@on_virtual_time
async def test_a_success_policy_may_need_only_some_indexes() -> None:
    with on_stage(start=None) as stage:
        spec = job_spec(
            completionMode="Indexed",
            completions=3,
            parallelism=3,
            successPolicy={"rules": [{"succeededIndexes": "0"}]},
        )
        stage.add(JOB, "lead", spec)
        await settle()

        end_pods(stage, "Succeeded", stage.pod_names(f"{INDEX}=0")[0])
        await settle(5)

        assert stage.conditions(JOB, "lead") == {
            "SuccessCriteriaMet": ("True", "SuccessPolicy"),
            "Complete": ("True", "SuccessPolicy"),
        }
        assert running_pods(stage) == []


@pytest.mark.parametrize(
    ("action", "code", "failed", "ended"),
    [("FailJob", 42, 1, "PodFailurePolicy"), ("Ignore", 42, None, ""), ("FailJob", 1, 1, "")],
)
@on_virtual_time
async def test_a_failure_policy_may_decide_by_the_exit_code(
    action: str, code: int, failed: int | None, ended: str
) -> None:
    with on_stage() as stage:
        rule = {"action": action, "onExitCodes": {"operator": "In", "values": [42]}}
        stage.add(JOB, "sum", job_spec(podFailurePolicy={"rules": [rule]}))
        await settle(2)

        end_pods(stage, "Failed", code=code)
        await settle(5)

        assert stage.status(JOB, "sum").get("failed") == failed
        assert stage.conditions(JOB, "sum").get("Failed", ("", ""))[1] == ended


@on_virtual_time
async def test_a_failure_policy_may_ignore_a_disruption() -> None:
    with on_stage() as stage:
        rule = {
            "action": "Ignore",
            "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
        }
        stage.add(JOB, "sum", job_spec(backoffLimit=0, podFailurePolicy={"rules": [rule]}))
        await settle(2)
        target = {"type": "DisruptionTarget", "status": "True"}

        body = {"status": {"phase": "Failed", "conditions": [target]}}
        stage.patch(POD, stage.pod_names()[0], body, "status")
        await settle(60)

        assert stage.conditions(JOB, "sum") == {}
        assert len(running_pods(stage)) == 1


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
