import pytest

from karpy.codec.fields import JsonObject
from karpy.model.kinds import DEPLOYMENT, POD, PRIORITY_CLASS, REPLICA_SET
from tests.sim.stories import on_virtual_time
from tests.sim.workloads.stage import Stage, on_stage, settle, with_image, workload

REVISION = "deployment.kubernetes.io/revision"
HASH = "pod-template-hash"
ROLLED_OUT = {
    "Available": ("True", "MinimumReplicasAvailable"),
    "Progressing": ("True", "NewReplicaSetAvailable"),
}


def _sizes(stage: Stage) -> dict[str, int]:
    """Return the sizes of the ReplicaSets by their revision."""
    return {
        each["metadata"]["annotations"][REVISION]: each["spec"]["replicas"]
        for each in sorted(stage.all(REPLICA_SET), key=lambda each: str(each["metadata"]))
    }


def _rolling(surge: int | str, unavailable: int | str) -> JsonObject:
    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    return {"type": "RollingUpdate", "rollingUpdate": rolling}


@on_virtual_time
async def test_a_deployment_makes_a_replica_set() -> None:
    with on_stage() as stage:
        owner = stage.add(DEPLOYMENT, "web", workload("web"), annotations={"team": "shop"})
        await settle(2)

        (made,) = stage.all(REPLICA_SET)
        meta, spec = made["metadata"], made["spec"]
        name_hash = meta["labels"][HASH]
        assert meta["name"] == f"web-{name_hash}"
        assert meta["labels"] == {"app": "web", HASH: name_hash}
        assert meta["annotations"] == {
            "team": "shop",
            REVISION: "1",
            "deployment.kubernetes.io/desired-replicas": "3",
            "deployment.kubernetes.io/max-replicas": "4",
        }
        assert meta["ownerReferences"][0]["uid"] == owner["metadata"]["uid"]
        assert spec["selector"] == {"matchLabels": {"app": "web", HASH: name_hash}}
        assert spec["template"]["metadata"]["labels"] == {"app": "web", HASH: name_hash}
        assert stage.pods()[0]["metadata"]["labels"] == {"app": "web", HASH: name_hash}


@on_virtual_time
async def test_a_deployment_says_that_it_is_rolled_out() -> None:
    with on_stage() as stage:
        stage.add(DEPLOYMENT, "web", workload("web"))
        await settle(2)

        obj = stage.get(DEPLOYMENT, "web")
        assert stage.status(DEPLOYMENT, "web") == {
            "observedGeneration": obj["metadata"]["generation"],
            "replicas": 3,
            "updatedReplicas": 3,
            "readyReplicas": 3,
            "availableReplicas": 3,
            "terminatingReplicas": 0,
        }
        assert stage.conditions(DEPLOYMENT, "web") == ROLLED_OUT
        assert obj["metadata"]["annotations"][REVISION] == "1"
        (made,) = stage.names(REPLICA_SET)
        assert obj["status"]["conditions"][1]["message"] == (
            f'ReplicaSet "{made}" has successfully progressed.'
        )


@on_virtual_time
async def test_a_deployment_without_ready_pods_is_progressing_and_unavailable() -> None:
    with on_stage(start=None) as stage:
        stage.add(DEPLOYMENT, "web", workload("web"))
        await settle()

        assert stage.conditions(DEPLOYMENT, "web") == {
            "Progressing": ("True", "ReplicaSetUpdated"),
            "Available": ("False", "MinimumReplicasUnavailable"),
        }
        assert stage.status(DEPLOYMENT, "web")["unavailableReplicas"] == 3


@on_virtual_time
async def test_a_new_template_is_rolled_out_step_by_step() -> None:
    with on_stage(start=2) as stage:
        stage.add(DEPLOYMENT, "web", workload("web", replicas=4))
        await settle(5)

        stage.patch(DEPLOYMENT, "web", with_image("app:2"))
        await settle(1)
        first = _sizes(stage)
        await settle(2)
        second = _sizes(stage)
        await settle(20)

        # One more and one fewer than four: a quarter, rounded up and down.
        assert first == {"1": 3, "2": 2}
        assert second == {"1": 1, "2": 4}
        assert _sizes(stage) == {"1": 0, "2": 4}
        assert stage.images() == ["app:2"] * 4
        assert stage.conditions(DEPLOYMENT, "web") == ROLLED_OUT


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        (10, "25%", "25%", {"1": 8, "2": 5}),
        (3, "25%", "25%", {"1": 3, "2": 1}),
        (10, 0, 3, {"1": 7, "2": 3}),
        (10, 3, 0, {"1": 10, "2": 3}),
        (10, "100%", 0, {"1": 10, "2": 10}),
        (2, "0%", "1%", {"1": 1, "2": 1}),
        (1, "1%", "25%", {"1": 1, "2": 1}),
    ],
)
@on_virtual_time
async def test_a_rollout_keeps_its_limits(
    replicas: int, surge: int | str, unavailable: int | str, expected: dict[str, int]
) -> None:
    with on_stage() as stage:
        strategy = _rolling(surge, unavailable)
        stage.add(DEPLOYMENT, "web", workload("web", replicas, strategy=strategy))
        await settle(2)

        # The new pods do not start within this time.
        stage.patch(DEPLOYMENT, "web", with_image("app:2"))
        await settle(0.9)

        assert _sizes(stage) == expected


@on_virtual_time
async def test_enough_pods_stay_available_all_the_time() -> None:
    with on_stage(start=2, stop=3) as stage:
        stage.add(DEPLOYMENT, "web", workload("web", replicas=8))
        await settle(5)
        seen = []
        stage.store.subscribe(
            POD, lambda *_: seen.append(stage.status(DEPLOYMENT, "web").get("availableReplicas"))
        )

        stage.patch(DEPLOYMENT, "web", with_image("app:2"))
        await settle(60)

        assert stage.images() == ["app:2"] * 8
        assert min(filter(None, seen)) >= 6


@on_virtual_time
async def test_pods_that_do_not_work_go_first() -> None:
    """A rollout to something better must not wait for something broken."""
    with on_stage(start=None) as stage:
        strategy = _rolling(0, 1)
        stage.add(DEPLOYMENT, "web", workload("web", replicas=3, strategy=strategy))
        await settle()
        well = stage.pod_names()[0]
        stage.run(well)
        await settle()

        stage.patch(DEPLOYMENT, "web", with_image("app:2"))
        await settle()

        assert _sizes(stage) == {"1": 2, "2": 1}
        assert well in stage.pod_names()


@on_virtual_time
async def test_recreate_waits_until_all_old_pods_are_gone() -> None:
    with on_stage(stop=10) as stage:
        spec = workload("web", strategy={"type": "Recreate"})
        stage.add(DEPLOYMENT, "web", spec)
        await settle(2)

        stage.patch(DEPLOYMENT, "web", with_image("app:2"))
        await settle(9)
        before = len(stage.names(REPLICA_SET)), stage.pods()
        await settle(5)

        assert before == (1, [])
        assert stage.images() == ["app:2"] * 3
        assert stage.conditions(DEPLOYMENT, "web") == ROLLED_OUT


@on_virtual_time
async def test_going_back_uses_the_old_replica_set_again() -> None:
    """What `kubectl rollout undo` does is to write the old template."""
    with on_stage() as stage:
        stage.add(DEPLOYMENT, "web", workload("web"))
        await settle(5)
        stage.patch(DEPLOYMENT, "web", with_image("app:2"))
        await settle(20)

        stage.patch(DEPLOYMENT, "web", with_image("app:1"))
        await settle(20)

        notes = [each["metadata"]["annotations"] for each in stage.all(REPLICA_SET)]
        assert stage.images() == ["app:1"] * 3
        assert _sizes(stage) == {"2": 0, "3": 3}
        assert stage.get(DEPLOYMENT, "web")["metadata"]["annotations"][REVISION] == "3"
        assert [
            each["deployment.kubernetes.io/revision-history"]
            for each in notes
            if "deployment.kubernetes.io/revision-history" in each
        ] == ["1"]


@on_virtual_time
async def test_a_rollout_overtaken_by_another_goes_straight_to_the_last() -> None:
    with on_stage(start=2) as stage:
        stage.add(DEPLOYMENT, "web", workload("web", replicas=4))
        await settle(5)

        stage.patch(DEPLOYMENT, "web", with_image("app:2"))
        await settle(1)
        stage.patch(DEPLOYMENT, "web", with_image("app:3"))
        await settle(30)

        assert _sizes(stage) == {"1": 0, "2": 0, "3": 4}
        assert stage.images() == ["app:3"] * 4


@on_virtual_time
async def test_only_so_many_old_replica_sets_are_kept() -> None:
    with on_stage() as stage:
        stage.add(DEPLOYMENT, "web", workload("web", replicas=1, revisionHistoryLimit=2))
        await settle(5)

        stage.patch(DEPLOYMENT, "web", with_image("app:2"))
        await settle(10)
        stage.patch(DEPLOYMENT, "web", with_image("app:3"))
        await settle(10)
        stage.patch(DEPLOYMENT, "web", with_image("app:4"))
        await settle(10)

        assert _sizes(stage) == {"2": 0, "3": 0, "4": 1}


@on_virtual_time
async def test_a_rollout_that_does_not_move_has_failed_after_its_deadline() -> None:
    with on_stage(start=None) as stage:
        stage.add(DEPLOYMENT, "web", workload("web", progressDeadlineSeconds=60))
        await settle(59)
        before = stage.conditions(DEPLOYMENT, "web")["Progressing"]
        await settle(5)
        after = stage.conditions(DEPLOYMENT, "web")["Progressing"]
        stage.run(stage.pod_names()[0])
        stage.run(stage.pod_names()[1])
        stage.run(stage.pod_names()[2])
        await settle(1)

        assert before == ("True", "ReplicaSetUpdated")
        assert after == ("False", "ProgressDeadlineExceeded")
        assert stage.conditions(DEPLOYMENT, "web") == ROLLED_OUT


@on_virtual_time
async def test_a_paused_deployment_is_scaled_and_not_rolled_out() -> None:
    with on_stage() as stage:
        stage.add(DEPLOYMENT, "web", workload("web"))
        await settle(5)

        stage.patch(DEPLOYMENT, "web", {"spec": {"paused": True}})
        stage.patch(DEPLOYMENT, "web", with_image("app:2"))
        stage.patch(DEPLOYMENT, "web", {"spec": {"replicas": 5}})
        await settle(5)
        paused = stage.images(), stage.conditions(DEPLOYMENT, "web")["Progressing"]
        stage.patch(DEPLOYMENT, "web", {"spec": {"paused": False}})
        await settle(30)

        assert paused == (["app:1"] * 5, ("Unknown", "DeploymentPaused"))
        assert stage.images() == ["app:2"] * 5
        assert stage.conditions(DEPLOYMENT, "web") == ROLLED_OUT


@on_virtual_time
async def test_scaling_amid_a_rollout_keeps_its_proportions() -> None:
    with on_stage() as stage:
        strategy = _rolling(3, 2)
        stage.add(DEPLOYMENT, "web", workload("web", replicas=10, strategy=strategy))
        await settle(5)
        stage.patch(DEPLOYMENT, "web", with_image("app:2"))
        await settle(0.5)
        before = _sizes(stage)

        stage.patch(DEPLOYMENT, "web", {"spec": {"replicas": 15}})
        await settle(0.3)

        assert before == {"1": 8, "2": 5}
        assert _sizes(stage) == {"1": 11, "2": 7}


@on_virtual_time
async def test_scaling_changes_the_only_replica_set() -> None:
    with on_stage() as stage:
        stage.add(DEPLOYMENT, "web", workload("web"))
        await settle(5)

        stage.patch(DEPLOYMENT, "web", {"spec": {"replicas": 5}})
        await settle(5)
        grown = len(stage.pods())
        stage.patch(DEPLOYMENT, "web", {"spec": {"replicas": 0}})
        await settle(5)

        assert grown == 5
        assert stage.all(POD) == []
        assert len(stage.names(REPLICA_SET)) == 1
        (made,) = stage.names(REPLICA_SET)
        assert stage.events("web") == [
            f"ScalingReplicaSet: Scaled up replica set {made} from 0 to 3 x1",
            f"ScalingReplicaSet: Scaled up replica set {made} from 3 to 5 x1",
            f"ScalingReplicaSet: Scaled down replica set {made} from 5 to 0 x1",
        ]


@on_virtual_time
async def test_a_name_that_is_taken_is_avoided() -> None:
    with on_stage() as stage:
        stage.add(DEPLOYMENT, "web", workload("web"))
        await settle(2)
        (taken,) = stage.names(REPLICA_SET)
        stage.delete(DEPLOYMENT, "web", "Foreground")
        await settle(5)
        stage.add(REPLICA_SET, taken, workload("other", replicas=0))

        stage.add(DEPLOYMENT, "web", workload("web"))
        await settle(2)

        assert len(stage.pods("app=web")) == 3
        assert stage.status(DEPLOYMENT, "web")["collisionCount"] == 1


@on_virtual_time
async def test_an_orphaned_replica_set_is_adopted() -> None:
    with on_stage() as stage:
        stage.add(DEPLOYMENT, "web", workload("web"))
        await settle(2)
        before = stage.pod_names(), stage.names(REPLICA_SET)
        stage.delete(DEPLOYMENT, "web", "Orphan")
        await settle(2)

        owner = stage.add(DEPLOYMENT, "web", workload("web"))
        await settle(2)

        (adopted,) = stage.all(REPLICA_SET)
        assert (stage.pod_names(), stage.names(REPLICA_SET)) == before
        assert adopted["metadata"]["ownerReferences"][0]["uid"] == owner["metadata"]["uid"]
        assert stage.conditions(DEPLOYMENT, "web") == ROLLED_OUT


@on_virtual_time
async def test_pods_that_cannot_be_made_show_in_the_deployment() -> None:
    with on_stage() as stage:
        spec = workload("web")
        spec["template"]["spec"]["priorityClassName"] = "urgent"
        stage.add(DEPLOYMENT, "web", spec)
        await settle(5)
        before = stage.conditions(DEPLOYMENT, "web")

        stage.store.create(PRIORITY_CLASS, {"metadata": {"name": "urgent"}, "value": 7})
        await settle(60)

        assert before["ReplicaFailure"] == ("True", "FailedCreate")
        assert stage.conditions(DEPLOYMENT, "web") == ROLLED_OUT


@on_virtual_time
async def test_min_ready_seconds_slow_a_rollout_down() -> None:
    with on_stage() as stage:
        spec = workload("web", replicas=2, minReadySeconds=60, strategy=_rolling(1, 0))
        stage.add(DEPLOYMENT, "web", spec)
        await settle(70)

        stage.patch(DEPLOYMENT, "web", with_image("app:2"))
        await settle(50)
        before = _sizes(stage)
        await settle(100)

        assert before == {"1": 2, "2": 1}
        assert _sizes(stage) == {"1": 0, "2": 2}


@on_virtual_time
async def test_annotations_reach_the_replica_set_without_a_rollout() -> None:
    with on_stage() as stage:
        stage.add(DEPLOYMENT, "web", workload("web"))
        await settle(5)

        note = {"kubernetes.io/change-cause": "because"}
        stage.patch(DEPLOYMENT, "web", {"metadata": {"annotations": note}})
        await settle(5)

        (made,) = stage.all(REPLICA_SET)
        assert made["metadata"]["annotations"]["kubernetes.io/change-cause"] == "because"


@on_virtual_time
async def test_a_deployment_takes_everything_with_it() -> None:
    with on_stage() as stage:
        stage.add(DEPLOYMENT, "web", workload("web"))
        await settle(5)

        stage.delete(DEPLOYMENT, "web")
        await settle(5)

        assert stage.names(REPLICA_SET) == []
        assert stage.names(POD) == []


@on_virtual_time
async def test_a_deployment_at_rest_writes_nothing() -> None:
    with on_stage() as stage:
        stage.add(DEPLOYMENT, "web", workload("web"))
        await settle(10)
        before = stage.store.version

        await settle(3600)

        assert stage.store.version == before
