from karpy.model.kinds import (
    NAMESPACE,
    POD,
    PRIORITY_CLASS,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
)
from karpy.sim.workloads.workloads import Workloads
from tests.sim.stories import on_virtual_time
from tests.sim.workloads.stage import on_stage, settle, template, workload


@on_virtual_time
async def test_a_replica_set_makes_its_pods() -> None:
    with on_stage(start=None) as stage:
        owner = stage.add(REPLICA_SET, "web", workload("web"))
        await settle()

        pod = stage.pods()[0]
        assert len(stage.pods()) == 3
        assert pod["metadata"]["name"].startswith("web-")
        assert len(pod["metadata"]["name"]) == len("web-") + 5
        assert pod["metadata"]["labels"] == {"app": "web"}
        assert pod["metadata"]["generateName"] == "web-"
        assert pod["metadata"]["ownerReferences"] == [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": "web",
                "uid": owner["metadata"]["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
        assert stage.status(REPLICA_SET, "web") == {
            "observedGeneration": 1,
            "replicas": 3,
            "fullyLabeledReplicas": 3,
            "terminatingReplicas": 0,
        }


@on_virtual_time
async def test_ready_pods_are_counted() -> None:
    with on_stage() as stage:
        stage.add(REPLICA_SET, "web", workload("web"))
        await settle(2)

        assert stage.status(REPLICA_SET, "web") == {
            "observedGeneration": 1,
            "replicas": 3,
            "fullyLabeledReplicas": 3,
            "readyReplicas": 3,
            "availableReplicas": 3,
            "terminatingReplicas": 0,
        }


@on_virtual_time
async def test_a_pod_is_available_once_it_was_ready_for_long_enough() -> None:
    with on_stage() as stage:
        stage.add(REPLICA_SET, "web", workload("web", minReadySeconds=30))
        await settle(30)
        before = stage.status(REPLICA_SET, "web")
        await settle(2)
        after = stage.status(REPLICA_SET, "web")

        assert (before["readyReplicas"], before.get("availableReplicas")) == (3, None)
        assert (after["readyReplicas"], after["availableReplicas"]) == (3, 3)


@on_virtual_time
async def test_a_lost_pod_is_replaced_while_it_stops() -> None:
    with on_stage(stop=5) as stage:
        stage.add(REPLICA_SET, "web", workload("web"))
        await settle(2)

        stage.delete(POD, stage.pod_names()[0])
        await settle(2)

        assert len(stage.pods()) == 3
        assert len(stage.all(POD)) == 4
        assert stage.status(REPLICA_SET, "web")["terminatingReplicas"] == 1


@on_virtual_time
async def test_a_failed_pod_is_replaced_and_stays() -> None:
    with on_stage() as stage:
        stage.add(REPLICA_SET, "web", workload("web", replicas=1))
        await settle(2)

        stage.report(stage.pod_names()[0], "Failed")
        await settle(2)

        assert len(stage.pods()) == 2
        assert stage.status(REPLICA_SET, "web")["replicas"] == 1


@on_virtual_time
async def test_a_matching_orphan_is_adopted() -> None:
    with on_stage() as stage:
        stage.add(POD, "lone", template("web")["spec"], labels={"app": "web"})
        await settle(2)

        owner = stage.add(REPLICA_SET, "web", workload("web"))
        await settle(2)

        adopted = stage.get(POD, "lone")["metadata"]["ownerReferences"][0]
        assert len(stage.pods()) == 3
        assert (adopted["uid"], adopted["controller"]) == (owner["metadata"]["uid"], True)


@on_virtual_time
async def test_an_orphan_that_comes_late_makes_one_too_many() -> None:
    with on_stage() as stage:
        stage.add(REPLICA_SET, "web", workload("web"))
        await settle(2)

        stage.add(POD, "lone", template("web")["spec"], labels={"app": "web"})
        await settle()

        assert "lone" not in stage.pod_names()
        assert len(stage.pods()) == 3


@on_virtual_time
async def test_a_pod_of_another_owner_is_left_alone() -> None:
    with on_stage() as stage:
        stage.add(REPLICA_SET, "a", workload("web", replicas=1))
        await settle(2)
        stage.add(REPLICA_SET, "b", workload("web", replicas=1))
        await settle(2)

        owners = sorted(pod["metadata"]["ownerReferences"][0]["name"] for pod in stage.pods())
        assert owners == ["a", "b"]


@on_virtual_time
async def test_a_pod_that_ceases_to_match_is_released_and_replaced() -> None:
    with on_stage() as stage:
        stage.add(REPLICA_SET, "web", workload("web", replicas=1))
        await settle(2)
        pod = stage.pod_names()[0]

        stage.patch(POD, pod, {"metadata": {"labels": {"app": "debug"}}})
        await settle(2)

        assert "ownerReferences" not in stage.get(POD, pod)["metadata"]
        assert len(stage.pods("app=web")) == 1


@on_virtual_time
async def test_pods_that_lack_a_label_of_the_template_are_counted_apart() -> None:
    with on_stage() as stage:
        spec = workload("web", replicas=1)
        spec["template"]["metadata"]["labels"]["tier"] = "front"
        stage.add(POD, "lone", template("web")["spec"], labels={"app": "web"})

        stage.add(REPLICA_SET, "web", spec)
        await settle(2)

        status = stage.status(REPLICA_SET, "web")
        assert (status["replicas"], status.get("fullyLabeledReplicas")) == (1, None)


@on_virtual_time
async def test_scaling_down_spares_the_pods_that_work() -> None:
    with on_stage(start=None) as stage:
        stage.add(REPLICA_SET, "web", workload("web", replicas=3))
        await settle()
        first, second, third = stage.pod_names()
        stage.bind(first)
        stage.run(second)

        stage.patch(REPLICA_SET, "web", {"spec": {"replicas": 1}})
        await settle()

        assert stage.pod_names() == [second]
        assert not stage.exists(POD, third)


@on_virtual_time
async def test_scaling_down_thins_out_the_node_with_most_pods_of_the_deployment() -> None:
    with on_stage(start=None) as stage:
        stage.add(REPLICA_SET, "web", workload("web", replicas=3))
        await settle()
        first, second, third = stage.pod_names()
        stage.run(first, "n1")
        stage.run(second, "n2")
        stage.run(third, "n2")

        stage.patch(REPLICA_SET, "web", {"spec": {"replicas": 2}})
        await settle()

        assert first in stage.pod_names()


@on_virtual_time
async def test_a_replica_set_without_size_has_one_pod_and_with_zero_none() -> None:
    with on_stage() as stage:
        spec = workload("web")
        del spec["replicas"]
        stage.add(REPLICA_SET, "web", spec)
        stage.add(REPLICA_SET, "idle", workload("idle", replicas=0))
        await settle(2)

        assert len(stage.pods("app=web")) == 1
        assert stage.pods("app=idle") == []
        assert stage.status(REPLICA_SET, "idle") == {
            "observedGeneration": 1,
            "replicas": 0,
            "terminatingReplicas": 0,
        }


@on_virtual_time
async def test_more_than_a_batch_of_pods_are_made_in_turns() -> None:
    with on_stage(start=None) as stage:
        stage.add(REPLICA_SET, "web", workload("web", replicas=1_100))
        await settle()

        assert stage.status(REPLICA_SET, "web")["replicas"] == 1_100


@on_virtual_time
async def test_pods_that_cannot_be_made_are_reported_and_tried_again() -> None:
    with on_stage() as stage:
        spec = workload("web", replicas=2)
        spec["template"]["spec"]["priorityClassName"] = "urgent"
        stage.add(REPLICA_SET, "web", spec)
        await settle(5)
        before = stage.conditions(REPLICA_SET, "web"), stage.events("web")

        stage.store.create(PRIORITY_CLASS, {"metadata": {"name": "urgent"}, "value": 7})
        await settle(60)

        assert before[0] == {"ReplicaFailure": ("True", "FailedCreate")}
        assert before[1][0].startswith("FailedCreate: Error creating: pods ")
        assert "no PriorityClass with name urgent was found" in before[1][0]
        assert stage.conditions(REPLICA_SET, "web") == {}
        assert len(stage.pods()) == 2


@on_virtual_time
async def test_creations_and_deletions_cause_events() -> None:
    with on_stage(start=None) as stage:
        stage.add(REPLICA_SET, "web", workload("web", replicas=1))
        await settle()
        pod = stage.pod_names()[0]
        stage.patch(REPLICA_SET, "web", {"spec": {"replicas": 0}})
        await settle()

        assert stage.events("web") == [
            f"SuccessfulCreate: Created pod: {pod} x1",
            f"SuccessfulDelete: Deleted pod: {pod} x1",
        ]


@on_virtual_time
async def test_pods_go_with_their_replica_set() -> None:
    with on_stage() as stage:
        stage.add(REPLICA_SET, "web", workload("web"))
        await settle(2)

        stage.delete(REPLICA_SET, "web")
        await settle(2)

        assert stage.all(POD) == []


@on_virtual_time
async def test_a_deleting_replica_set_creates_no_pods() -> None:
    with on_stage(stop=30) as stage:
        stage.add(REPLICA_SET, "web", workload("web"))
        await settle(2)

        stage.delete(REPLICA_SET, "web", "Foreground")
        await settle(10)

        assert stage.pods() == []
        assert stage.exists(REPLICA_SET, "web")


@on_virtual_time
async def test_a_deleted_namespace_deletes_everything_in_it() -> None:
    with on_stage() as stage:
        stage.store.create(NAMESPACE, {"metadata": {"name": "shop"}})
        meta = {"name": "web", "namespace": "shop"}
        stage.store.create(REPLICA_SET, {"metadata": meta, "spec": workload("web")})
        await settle()

        stage.store.delete(NAMESPACE, "shop")
        await settle(300)

        assert stage.all(POD) == []
        assert stage.store.find(NAMESPACE, "shop") is None


@on_virtual_time
async def test_a_replication_controller_does_the_same() -> None:
    with on_stage() as stage:
        spec = {"replicas": 2, "selector": {"app": "old"}, "template": template("old")}
        stage.add(REPLICATION_CONTROLLER, "old", spec)
        await settle(2)

        owner = stage.pods()[0]["metadata"]["ownerReferences"][0]
        assert (owner["apiVersion"], owner["kind"]) == ("v1", "ReplicationController")
        assert stage.status(REPLICATION_CONTROLLER, "old") == {
            "observedGeneration": 1,
            "replicas": 2,
            "fullyLabeledReplicas": 2,
            "readyReplicas": 2,
            "availableReplicas": 2,
        }


@on_virtual_time
async def test_controllers_that_start_late_find_what_there_is() -> None:
    with on_stage() as stage:
        stage.workloads.stop()
        stage.add(REPLICA_SET, "web", workload("web"))
        stage.add(POD, "lone", template("web")["spec"], labels={"app": "web"})
        await settle(2)

        late = Workloads(stage.store, stage.clock)
        late.start()
        await settle(2)
        late.stop()

        assert len(stage.pods()) == 3
        assert "lone" in stage.pod_names()


@on_virtual_time
async def test_nothing_is_written_when_nothing_changes() -> None:
    with on_stage() as stage:
        stage.add(REPLICA_SET, "web", workload("web"))
        await settle(10)
        before = stage.store.version

        await settle(3600)

        assert stage.store.version == before
