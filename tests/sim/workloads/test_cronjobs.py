from karpy.codec.fields import JsonObject
from karpy.model.kinds import CRON_JOB, JOB, POD
from tests.sim.stories import on_virtual_time
from tests.sim.workloads.stage import Stage, on_stage, settle, template

HOUR = 3600.0
MIDNIGHT = 29453760
"""Minutes from 1970 to the start of the stage."""
SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"


def _spec(schedule: str = "@hourly", **spec: object) -> JsonObject:
    pod = {**template("x")["spec"], "restartPolicy": "Never"}
    job = {"metadata": {"labels": {"app": "report"}}, "spec": {"template": {"spec": pod}}}
    return {"schedule": schedule, "jobTemplate": job, **spec}


def _end(stage: Stage, phase: str = "Succeeded") -> None:
    for pod in stage.pods():
        if pod["status"]["phase"] in {"Pending", "Running"}:
            stage.report(pod["metadata"]["name"], phase)


@on_virtual_time
async def test_a_job_starts_on_time() -> None:
    with on_stage() as stage:
        owner = stage.add(CRON_JOB, "report", _spec("30 1 * * *"))
        await settle(1.5 * HOUR - 1)
        before = stage.names(JOB)
        await settle(2)

        (job,) = stage.all(JOB)
        meta = job["metadata"]
        assert before == []
        assert meta["name"] == f"report-{MIDNIGHT + 90}"
        assert meta["labels"]["app"] == "report"
        assert meta["annotations"] == {SCHEDULED_AT: "2026-01-01T01:30:00Z"}
        assert meta["ownerReferences"][0]["uid"] == owner["metadata"]["uid"]
        status = stage.status(CRON_JOB, "report")
        assert status["lastScheduleTime"] == "2026-01-01T01:30:00Z"
        assert [each["name"] for each in status["active"]] == [meta["name"]]
        assert stage.events("report") == [f"SuccessfulCreate: Created job {meta['name']} x1"]


@on_virtual_time
async def test_a_job_that_has_succeeded_is_noted() -> None:
    with on_stage() as stage:
        stage.add(CRON_JOB, "report", _spec())
        await settle(HOUR + 5)

        _end(stage)
        await settle(1)

        assert stage.status(CRON_JOB, "report") == {
            "lastScheduleTime": "2026-01-01T01:00:00Z",
            "lastSuccessfulTime": "2026-01-01T01:00:05Z",
        }
        assert stage.events("report")[-1] == (
            f"SawCompletedJob: Saw completed job: report-{MIDNIGHT + 60}, condition: Complete x1"
        )


@on_virtual_time
async def test_jobs_come_again_and_again_and_few_are_kept() -> None:
    with on_stage() as stage:
        stage.add(CRON_JOB, "report", _spec(successfulJobsHistoryLimit=2))
        await _hours(stage, 5, "Succeeded")

        assert stage.names(JOB) == [f"report-{MIDNIGHT + 240}", f"report-{MIDNIGHT + 300}"]
        assert len(stage.names(POD)) == 2


@on_virtual_time
async def test_failed_jobs_have_a_limit_of_their_own() -> None:
    with on_stage() as stage:
        spec = _spec()
        spec["jobTemplate"]["spec"]["backoffLimit"] = 0
        stage.add(CRON_JOB, "report", spec)
        await _hours(stage, 3, "Failed")

        assert stage.names(JOB) == [f"report-{MIDNIGHT + 180}"]


async def _hours(stage: Stage, hours: int, phase: str) -> None:
    for _ in range(hours):
        await settle(HOUR)
        await settle(2)
        _end(stage, phase)
        await settle(5)


@on_virtual_time
async def test_jobs_may_overlap() -> None:
    with on_stage() as stage:
        stage.add(CRON_JOB, "report", _spec())
        await settle(2 * HOUR + 5)

        assert len(stage.names(JOB)) == 2
        assert len(stage.status(CRON_JOB, "report")["active"]) == 2


@on_virtual_time
async def test_a_job_may_have_to_wait_for_the_last_one() -> None:
    with on_stage() as stage:
        stage.add(CRON_JOB, "report", _spec(concurrencyPolicy="Forbid"))
        await settle(2.5 * HOUR)
        before = stage.names(JOB)
        _end(stage)
        await settle(5)

        # What was missed is made up for as soon as the way is free.
        assert before == [f"report-{MIDNIGHT + 60}"]
        assert stage.names(JOB) == [f"report-{MIDNIGHT + 60}", f"report-{MIDNIGHT + 120}"]


@on_virtual_time
async def test_a_job_may_take_the_place_of_the_last_one() -> None:
    with on_stage() as stage:
        stage.add(CRON_JOB, "report", _spec(concurrencyPolicy="Replace"))
        await settle(2 * HOUR + 5)

        assert stage.names(JOB) == [f"report-{MIDNIGHT + 120}"]
        assert len(stage.status(CRON_JOB, "report")["active"]) == 1


@on_virtual_time
async def test_a_suspended_cron_job_starts_nothing_and_makes_up_for_the_last_time() -> None:
    with on_stage() as stage:
        stage.add(CRON_JOB, "report", _spec(suspend=True))
        await settle(3.5 * HOUR)
        before = stage.names(JOB)

        stage.patch(CRON_JOB, "report", {"spec": {"suspend": False}})
        await settle(5)

        assert before == []
        assert stage.names(JOB) == [f"report-{MIDNIGHT + 180}"]


@on_virtual_time
async def test_a_start_beyond_its_deadline_is_skipped() -> None:
    with on_stage() as stage:
        stage.add(CRON_JOB, "report", _spec(suspend=True, startingDeadlineSeconds=60))
        await settle(1.5 * HOUR)

        stage.patch(CRON_JOB, "report", {"spec": {"suspend": False}})
        await settle(5)
        before = stage.names(JOB)
        await settle(HOUR)

        assert before == []
        assert stage.names(JOB) == [f"report-{MIDNIGHT + 120}"]


@on_virtual_time
async def test_a_time_zone_moves_the_clock() -> None:
    with on_stage() as stage:
        stage.add(CRON_JOB, "report", _spec("0 3 * * *", timeZone="Europe/Helsinki"))
        await settle(HOUR + 5)

        (job,) = stage.all(JOB)
        assert job["metadata"]["annotations"][SCHEDULED_AT] == "2026-01-01T03:00:00+02:00"


@on_virtual_time
async def test_a_new_schedule_counts_at_once() -> None:
    with on_stage() as stage:
        stage.add(CRON_JOB, "report", _spec("0 12 * * *"))
        await settle(60)

        stage.patch(CRON_JOB, "report", {"spec": {"schedule": "*/5 * * * *"}})
        await settle(300)

        assert stage.names(JOB) == [f"report-{MIDNIGHT + 5}"]


@on_virtual_time
async def test_an_interval_counts_from_the_last_time() -> None:
    with on_stage() as stage:
        await settle(30)
        stage.add(CRON_JOB, "report", _spec("@every 10m"))
        await settle(1201)

        times = [each["metadata"]["annotations"][SCHEDULED_AT] for each in stage.all(JOB)]
        assert times == ["2026-01-01T00:10:30Z", "2026-01-01T00:20:30Z"]


@on_virtual_time
async def test_a_job_that_went_missing_is_struck_off() -> None:
    with on_stage() as stage:
        stage.add(CRON_JOB, "report", _spec())
        await settle(HOUR + 5)

        stage.delete(JOB, f"report-{MIDNIGHT + 60}", "Background")
        await settle(5)

        assert "active" not in stage.status(CRON_JOB, "report")
        assert stage.events("report")[-1] == (
            f"MissingJob: Active job went missing: report-{MIDNIGHT + 60} x1"
        )


@on_virtual_time
async def test_many_missed_times_cause_an_event_and_one_job() -> None:
    with on_stage() as stage:
        stage.add(CRON_JOB, "report", _spec("* * * * *", suspend=True))
        await settle(3 * HOUR)

        stage.patch(CRON_JOB, "report", {"spec": {"suspend": False}})
        await settle(5)

        assert stage.names(JOB) == [f"report-{MIDNIGHT + 180}"]
        assert stage.events("report")[0].startswith("TooManyMissedTimes: ")


@on_virtual_time
async def test_a_deleted_cron_job_deletes_its_jobs_and_pods() -> None:
    with on_stage() as stage:
        stage.add(CRON_JOB, "report", _spec())
        await settle(HOUR + 5)

        stage.delete(CRON_JOB, "report")
        await settle(5)

        assert stage.names(JOB) == []
        assert stage.names(POD) == []


@on_virtual_time
async def test_a_day_that_never_comes_starts_nothing() -> None:
    with on_stage() as stage:
        stage.add(CRON_JOB, "report", _spec("0 0 31 2 *"))
        await settle(HOUR)

        assert stage.names(JOB) == []
