from karpy.model.kinds import DEPLOYMENT, POD, PRIORITY_CLASS, REPLICA_SET
from tests.sim.stories import on_virtual_time
from tests.sim.workloads.fleets import REVISION, ROLLED_OUT, rolling, sizes
from tests.sim.workloads.stage import on_stage, settle, with_image, workload

HASH = "pod-template-hash"


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
        strategy = rolling(3, 2)
        stage.add(DEPLOYMENT, "web", workload("web", replicas=10, strategy=strategy))
        await settle(5)
        stage.patch(DEPLOYMENT, "web", with_image("app:2"))
        await settle(0.5)
        before = sizes(stage)

        stage.patch(DEPLOYMENT, "web", {"spec": {"replicas": 15}})
        await settle(0.3)

        assert before == {"1": 8, "2": 5}
        assert sizes(stage) == {"1": 11, "2": 7}


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
async def test_a_deleted_deployment_deletes_its_replica_sets_and_pods() -> None:
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
