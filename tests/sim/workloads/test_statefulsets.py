import pytest

from karpy.codec.fields import JsonObject
from karpy.model.kinds import (
    CONTROLLER_REVISION,
    POD,
    PRIORITY_CLASS,
    STATEFUL_SET,
)
from tests.sim.stories import on_virtual_time
from tests.sim.workloads.stage import Stage, on_stage, settle, template, with_image, workload

HASH = "controller-revision-hash"


def _spec(replicas: int = 3, **spec: object) -> JsonObject:
    return workload("db", replicas, serviceName="db", **spec)


def _images(stage: Stage) -> list[str]:
    """Return the image of each pod, in the order of names."""
    return [pod["spec"]["containers"][0]["image"] for pod in stage.pods()]


@on_virtual_time
async def test_pods_come_one_after_the_other() -> None:
    with on_stage(start=None) as stage:
        stage.add(STATEFUL_SET, "db", _spec())
        await settle()
        first = stage.pod_names()
        stage.run("db-0")
        await settle()
        second = stage.pod_names()
        stage.run("db-1")
        await settle()

        assert first == ["db-0"]
        assert second == ["db-0", "db-1"]
        assert stage.pod_names() == ["db-0", "db-1", "db-2"]


@on_virtual_time
async def test_a_pod_has_identity_labels() -> None:
    with on_stage() as stage:
        owner = stage.add(STATEFUL_SET, "db", _spec(1))
        await settle(2)

        pod = stage.get(POD, "db-0")
        (revision,) = stage.names(CONTROLLER_REVISION)
        assert pod["metadata"]["labels"] == {
            "app": "db",
            HASH: revision,
            "statefulset.kubernetes.io/pod-name": "db-0",
            "apps.kubernetes.io/pod-index": "0",
        }
        assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("db-0", "db")
        assert pod["metadata"]["ownerReferences"][0]["uid"] == owner["metadata"]["uid"]


@on_virtual_time
async def test_the_status_counts_pods_and_names_revisions() -> None:
    with on_stage() as stage:
        stage.add(STATEFUL_SET, "db", _spec())
        await settle(5)

        (revision,) = stage.names(CONTROLLER_REVISION)
        assert stage.status(STATEFUL_SET, "db") == {
            "observedGeneration": 1,
            "replicas": 3,
            "readyReplicas": 3,
            "availableReplicas": 3,
            "currentReplicas": 3,
            "updatedReplicas": 3,
            "currentRevision": revision,
            "updateRevision": revision,
            "collisionCount": 0,
        }


@on_virtual_time
async def test_parallel_pods_come_at_once() -> None:
    with on_stage(start=None) as stage:
        stage.add(STATEFUL_SET, "db", _spec(podManagementPolicy="Parallel"))
        await settle()

        assert stage.pod_names() == ["db-0", "db-1", "db-2"]


@on_virtual_time
async def test_numbers_may_start_elsewhere() -> None:
    with on_stage() as stage:
        stage.add(STATEFUL_SET, "db", _spec(2, ordinals={"start": 5}))
        await settle(5)

        assert stage.pod_names() == ["db-5", "db-6"]


@on_virtual_time
async def test_scaling_down_takes_the_highest_number_first_and_waits() -> None:
    with on_stage(stop=10) as stage:
        stage.add(STATEFUL_SET, "db", _spec())
        await settle(5)

        stage.patch(STATEFUL_SET, "db", {"spec": {"replicas": 1}})
        await settle(5)
        first = stage.pod_names()
        await settle(20)

        assert first == ["db-0", "db-1"]
        assert stage.pod_names() == ["db-0"]


@on_virtual_time
async def test_parallel_pods_go_at_once() -> None:
    with on_stage(stop=10) as stage:
        stage.add(STATEFUL_SET, "db", _spec(podManagementPolicy="Parallel"))
        await settle(5)

        stage.patch(STATEFUL_SET, "db", {"spec": {"replicas": 1}})
        await settle(5)

        assert stage.pod_names() == ["db-0"]


@on_virtual_time
async def test_a_lost_pod_comes_back_under_its_name_once_it_is_gone() -> None:
    with on_stage(stop=10) as stage:
        stage.add(STATEFUL_SET, "db", _spec())
        await settle(5)
        before = stage.get(POD, "db-1")["metadata"]["uid"]

        stage.delete(POD, "db-1")
        await settle(5)
        meanwhile = stage.pod_names()
        await settle(10)

        assert meanwhile == ["db-0", "db-2"]
        assert stage.get(POD, "db-1")["metadata"]["uid"] != before


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
@on_virtual_time
async def test_a_pod_that_has_ended_is_replaced(phase: str) -> None:
    with on_stage() as stage:
        stage.add(STATEFUL_SET, "db", _spec(2))
        await settle(5)
        before = stage.get(POD, "db-0")["metadata"]["uid"]

        stage.report("db-0", phase)
        await settle(5)

        assert stage.get(POD, "db-0")["metadata"]["uid"] != before
        assert stage.status(STATEFUL_SET, "db")["readyReplicas"] == 2


@on_virtual_time
async def test_an_update_goes_from_the_highest_number_down() -> None:
    with on_stage(start=5) as stage:
        stage.add(STATEFUL_SET, "db", _spec())
        await settle(20)

        stage.patch(STATEFUL_SET, "db", with_image("app:2"))
        await settle(3)
        first = _images(stage)
        await settle(6)
        second = _images(stage)
        await settle(20)

        old, new = sorted(stage.all(CONTROLLER_REVISION), key=lambda each: int(each["revision"]))
        status = stage.status(STATEFUL_SET, "db")
        assert first == ["app:1", "app:1", "app:2"]
        assert second == ["app:1", "app:2", "app:2"]
        assert _images(stage) == ["app:2"] * 3
        assert (old["revision"], new["revision"]) == (1, 2)
        assert status["currentRevision"] == status["updateRevision"] == new["metadata"]["name"]
        assert status["updatedReplicas"] == 3


@on_virtual_time
async def test_an_update_leaves_pods_below_the_partition_alone() -> None:
    with on_stage() as stage:
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
        stage.add(STATEFUL_SET, "db", _spec(updateStrategy=strategy))
        await settle(5)

        stage.patch(STATEFUL_SET, "db", with_image("app:2"))
        await settle(20)
        stage.delete(POD, "db-0")
        await settle(5)

        status = stage.status(STATEFUL_SET, "db")
        assert _images(stage) == ["app:1", "app:1", "app:2"]
        assert (status["currentReplicas"], status["updatedReplicas"]) == (2, 1)
        assert status["currentRevision"] != status["updateRevision"]


@on_virtual_time
async def test_an_update_waits_for_a_pod_that_does_not_get_ready() -> None:
    with on_stage(start=None) as stage:
        stage.add(STATEFUL_SET, "db", _spec(2, podManagementPolicy="Parallel"))
        await settle()
        stage.run("db-0")
        stage.run("db-1")

        stage.patch(STATEFUL_SET, "db", with_image("app:2"))
        await settle(600)

        assert _images(stage) == ["app:1", "app:2"]


@on_virtual_time
async def test_on_delete_updates_only_deleted_pods() -> None:
    with on_stage() as stage:
        stage.add(STATEFUL_SET, "db", _spec(updateStrategy={"type": "OnDelete"}))
        await settle(5)

        stage.patch(STATEFUL_SET, "db", with_image("app:2"))
        await settle(20)
        stage.delete(POD, "db-1")
        await settle(5)

        assert _images(stage) == ["app:1", "app:2", "app:1"]


@on_virtual_time
async def test_a_rollback_makes_the_old_revision_the_latest() -> None:
    with on_stage() as stage:
        stage.add(STATEFUL_SET, "db", _spec(1))
        await settle(5)
        stage.patch(STATEFUL_SET, "db", with_image("app:2"))
        await settle(5)

        stage.patch(STATEFUL_SET, "db", with_image("app:1"))
        await settle(5)

        numbers = sorted(each["revision"] for each in stage.all(CONTROLLER_REVISION))
        assert _images(stage) == ["app:1"]
        assert numbers == [2, 3]


@on_virtual_time
async def test_old_revisions_are_deleted_beyond_the_history_limit() -> None:
    with on_stage() as stage:
        stage.add(STATEFUL_SET, "db", _spec(1, revisionHistoryLimit=1))
        await settle(5)

        stage.patch(STATEFUL_SET, "db", with_image("app:2"))
        await settle(5)
        stage.patch(STATEFUL_SET, "db", with_image("app:3"))
        await settle(5)
        stage.patch(STATEFUL_SET, "db", with_image("app:4"))
        await settle(5)

        numbers = sorted(each["revision"] for each in stage.all(CONTROLLER_REVISION))
        assert numbers == [3, 4]


@on_virtual_time
async def test_the_next_pod_waits_until_the_last_was_ready_for_long_enough() -> None:
    with on_stage() as stage:
        stage.add(STATEFUL_SET, "db", _spec(2, minReadySeconds=30))
        await settle(25)
        before = stage.pod_names()
        await settle(10)

        assert before == ["db-0"]
        assert stage.pod_names() == ["db-0", "db-1"]


@on_virtual_time
async def test_an_orphan_joins_only_under_the_right_name() -> None:
    with on_stage(start=None) as stage:
        spec = template("db")["spec"]
        stage.add(POD, "db-0", spec, labels={"app": "db"})
        stage.add(POD, "stray", spec, labels={"app": "db"})
        stage.run("db-0")

        stage.add(STATEFUL_SET, "db", _spec(1))
        await settle()

        labels = stage.get(POD, "db-0")["metadata"]["labels"]
        assert stage.get(POD, "db-0")["metadata"]["ownerReferences"][0]["name"] == "db"
        assert labels.get("statefulset.kubernetes.io/pod-name") in {"db-0", None}
        assert "ownerReferences" not in stage.get(POD, "stray")["metadata"]


@on_virtual_time
async def test_a_pod_that_cannot_be_made_is_reported_and_tried_again() -> None:
    with on_stage() as stage:
        spec = _spec(1)
        spec["template"]["spec"]["priorityClassName"] = "urgent"
        stage.add(STATEFUL_SET, "db", spec)
        await settle(5)
        before = stage.events("db")

        stage.store.create(PRIORITY_CLASS, {"metadata": {"name": "urgent"}, "value": 7})
        await settle(60)

        assert before[0].startswith(
            "FailedCreate: Create Pod db-0 in StatefulSet db failed error: pods "
        )
        assert stage.pod_names() == ["db-0"]


@on_virtual_time
async def test_creations_and_deletions_cause_events() -> None:
    with on_stage() as stage:
        stage.add(STATEFUL_SET, "db", _spec(1))
        await settle(5)
        stage.patch(STATEFUL_SET, "db", {"spec": {"replicas": 0}})
        await settle(5)

        assert stage.events("db") == [
            "SuccessfulCreate: Create Pod db-0 in StatefulSet db successful x1",
            "SuccessfulDelete: Delete Pod db-0 in StatefulSet db successful x1",
        ]


@on_virtual_time
async def test_a_stateful_set_at_rest_writes_nothing() -> None:
    with on_stage() as stage:
        stage.add(STATEFUL_SET, "db", _spec())
        await settle(10)
        before = stage.store.version

        await settle(3600)

        assert stage.store.version == before
