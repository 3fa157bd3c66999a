import pytest

from karpy.codec.fields import JsonObject
from karpy.model.kinds import CONTROLLER_REVISION, DAEMON_SET, NODE, POD
from karpy.sim.workloads.eligibility import (
    target_of,
)
from tests.sim.stories import on_virtual_time
from tests.sim.workloads.stage import Stage, on_stage, settle, template, with_image

HASH = "controller-revision-hash"


def _spec(**spec: object) -> JsonObject:
    selector = {"matchLabels": {"app": "agent"}}
    return {"selector": selector, "template": template("agent"), **spec}


def _rolling(**rolling: int | str) -> JsonObject:
    return {"type": "RollingUpdate", "rollingUpdate": rolling}


def _three_nodes(stage: Stage) -> None:
    stage.node("n1")
    stage.node("n2")
    stage.node("n3")


def _where(stage: Stage) -> dict[str, str]:
    """Return the node that each pod is meant for, with its image."""
    return {target_of(pod): pod["spec"]["containers"][0]["image"] for pod in stage.pods()}


async def _everyone_runs(stage: Stage) -> None:
    """Run each pod on the node it is meant for."""
    for pod in stage.pods():
        stage.run(pod["metadata"]["name"], target_of(pod))
    await settle()


@on_virtual_time
async def test_every_node_gets_a_pod() -> None:
    with on_stage(start=None) as stage:
        _three_nodes(stage)
        stage.add(DAEMON_SET, "agent", _spec())
        await settle()

        assert sorted(_where(stage)) == ["n1", "n2", "n3"]
        assert stage.status(DAEMON_SET, "agent") == {
            "observedGeneration": 1,
            "desiredNumberScheduled": 3,
            "currentNumberScheduled": 3,
            "updatedNumberScheduled": 3,
            "numberMisscheduled": 0,
            "numberReady": 0,
            "numberUnavailable": 3,
        }


@on_virtual_time
async def test_a_pod_is_created_for_one_node_with_the_tolerations_of_daemons() -> None:
    with on_stage(start=None) as stage:
        stage.node("n1")
        stage.add(DAEMON_SET, "agent", _spec())
        await settle()

        (pod,) = stage.pods()
        (revision,) = stage.all(CONTROLLER_REVISION)
        required = pod["spec"]["affinity"]["nodeAffinity"][
            "requiredDuringSchedulingIgnoredDuringExecution"
        ]
        field = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
        assert required == {"nodeSelectorTerms": [{"matchFields": [field]}]}
        assert pod["metadata"]["labels"][HASH] == revision["metadata"]["labels"][HASH]
        assert revision["metadata"]["name"] == f"agent-{pod['metadata']['labels'][HASH]}"
        assert [(each["key"], each["effect"]) for each in pod["spec"]["tolerations"]] == [
            ("node.kubernetes.io/not-ready", "NoExecute"),
            ("node.kubernetes.io/unreachable", "NoExecute"),
            ("node.kubernetes.io/disk-pressure", "NoSchedule"),
            ("node.kubernetes.io/memory-pressure", "NoSchedule"),
            ("node.kubernetes.io/pid-pressure", "NoSchedule"),
            ("node.kubernetes.io/unschedulable", "NoSchedule"),
        ]


@on_virtual_time
async def test_ready_pods_are_counted() -> None:
    with on_stage(start=None) as stage:
        _three_nodes(stage)
        stage.add(DAEMON_SET, "agent", _spec(minReadySeconds=30))
        await settle()

        await _everyone_runs(stage)
        before = stage.status(DAEMON_SET, "agent")
        await settle(30)
        after = stage.status(DAEMON_SET, "agent")

        assert (before["numberReady"], before["numberUnavailable"]) == (3, 3)
        assert (after["numberReady"], after["numberAvailable"]) == (3, 3)


@on_virtual_time
async def test_a_node_that_comes_later_gets_a_pod_too() -> None:
    with on_stage(start=None) as stage:
        stage.add(DAEMON_SET, "agent", _spec())
        await settle()

        stage.node("n1")
        await settle()

        assert list(_where(stage)) == ["n1"]


@on_virtual_time
async def test_a_node_is_chosen_by_its_labels_as_they_are_now() -> None:
    with on_stage(start=None) as stage:
        spec = _spec()
        spec["template"]["spec"]["nodeSelector"] = {"disk": "ssd"}
        stage.node("n1", labels={"disk": "ssd"})
        stage.node("n2", labels={"disk": "hdd"})
        stage.add(DAEMON_SET, "agent", spec)
        await settle()
        before = list(_where(stage))

        stage.patch(NODE, "n1", {"metadata": {"labels": {"disk": "hdd"}}})
        stage.patch(NODE, "n2", {"metadata": {"labels": {"disk": "ssd"}}})
        await settle()

        assert before == ["n1"]
        assert list(_where(stage)) == ["n2"]


@on_virtual_time
async def test_a_taint_keeps_pods_away_and_no_execute_evicts_them() -> None:
    with on_stage(start=None) as stage:
        _three_nodes(stage)
        stage.add(DAEMON_SET, "agent", _spec())
        await settle()
        await _everyone_runs(stage)

        stage.patch(NODE, "n1", {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}})
        stage.patch(NODE, "n2", {"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}})
        await settle()

        status = stage.status(DAEMON_SET, "agent")
        assert sorted(_where(stage)) == ["n1", "n3"]
        assert (status["desiredNumberScheduled"], status["numberMisscheduled"]) == (1, 2)


@on_virtual_time
async def test_a_pod_for_a_node_that_is_gone_is_deleted() -> None:
    with on_stage(start=None) as stage:
        _three_nodes(stage)
        stage.add(DAEMON_SET, "agent", _spec())
        await settle()

        stage.delete(NODE, "n2")
        await settle()

        assert sorted(_where(stage)) == ["n1", "n3"]
        assert stage.status(DAEMON_SET, "agent")["desiredNumberScheduled"] == 2


@on_virtual_time
async def test_a_lost_pod_is_replaced_once_it_is_gone() -> None:
    with on_stage(start=None, stop=10) as stage:
        stage.node("n1")
        stage.add(DAEMON_SET, "agent", _spec())
        await settle()
        await _everyone_runs(stage)

        stage.delete(POD, stage.pod_names()[0])
        await settle(5)
        before = stage.pods()
        await settle(6)

        assert before == []
        assert list(_where(stage)) == ["n1"]


@on_virtual_time
async def test_a_failed_pod_is_replaced_ever_more_slowly() -> None:
    with on_stage(start=None) as stage:
        stage.node("n1")
        stage.add(DAEMON_SET, "agent", _spec())
        await settle()

        stage.report(stage.pod_names()[0], "Failed")
        await settle(0.1)
        second = stage.pod_names()[0]
        stage.report(second, "Failed")
        await settle(0.5)
        waits = stage.pod_names()
        await settle(1)

        assert waits == [second]
        assert stage.pod_names() != [second]
        assert stage.events("agent")[1].startswith("FailedDaemonPod: Found failed daemon pod ")


@on_virtual_time
async def test_a_pod_that_is_done_is_replaced() -> None:
    with on_stage(start=None) as stage:
        stage.node("n1")
        stage.add(DAEMON_SET, "agent", _spec())
        await settle()
        before = stage.pod_names()

        stage.report(before[0], "Succeeded")
        await settle()

        assert len(stage.pods()) == 1
        assert stage.pod_names() != before


@on_virtual_time
async def test_an_update_takes_one_node_after_the_other() -> None:
    with on_stage(start=None) as stage:
        _three_nodes(stage)
        stage.add(DAEMON_SET, "agent", _spec())
        await settle()
        await _everyone_runs(stage)

        stage.patch(DAEMON_SET, "agent", with_image("app:2"))
        await settle(2)
        first = sorted(_where(stage).values())
        await settle(600)
        waiting = sorted(_where(stage).values())
        await _everyone_runs(stage)
        await settle(2)

        assert first == waiting == ["app:1", "app:1", "app:2"]
        assert sorted(_where(stage).values()) == ["app:1", "app:2", "app:2"]
        assert stage.status(DAEMON_SET, "agent")["updatedNumberScheduled"] == 2


@pytest.mark.parametrize(("unavailable", "updated"), [(2, 2), ("50%", 2), ("100%", 3), ("1%", 1)])
@on_virtual_time
async def test_max_unavailable_limits_how_many_nodes_are_updated_at_a_time(
    unavailable: int | str, updated: int
) -> None:
    with on_stage(start=None) as stage:
        _three_nodes(stage)
        strategy = _rolling(maxUnavailable=unavailable)
        stage.add(DAEMON_SET, "agent", _spec(updateStrategy=strategy))
        await settle()
        await _everyone_runs(stage)

        stage.patch(DAEMON_SET, "agent", with_image("app:2"))
        await settle(2)

        assert list(_where(stage).values()).count("app:2") == updated


@on_virtual_time
async def test_a_surge_makes_the_new_pod_before_the_old_one_goes() -> None:
    with on_stage(start=None) as stage:
        stage.node("n1")
        strategy = _rolling(maxSurge=1, maxUnavailable=0)
        stage.add(DAEMON_SET, "agent", _spec(updateStrategy=strategy))
        await settle()
        await _everyone_runs(stage)

        stage.patch(DAEMON_SET, "agent", with_image("app:2"))
        await settle(2)
        both = stage.images()
        await _everyone_runs(stage)
        await settle(2)

        assert both == ["app:1", "app:2"]
        assert stage.images() == ["app:2"]


@on_virtual_time
async def test_on_delete_updates_only_deleted_pods() -> None:
    with on_stage(start=None) as stage:
        stage.node("n1")
        stage.add(DAEMON_SET, "agent", _spec(updateStrategy={"type": "OnDelete"}))
        await settle()
        await _everyone_runs(stage)

        stage.patch(DAEMON_SET, "agent", with_image("app:2"))
        await settle(5)
        before = stage.images()
        stage.delete(POD, stage.pod_names()[0])
        await settle(5)

        assert before == ["app:1"]
        assert stage.images() == ["app:2"]


@on_virtual_time
async def test_old_revisions_are_deleted_beyond_the_history_limit() -> None:
    with on_stage(start=None) as stage:
        stage.add(DAEMON_SET, "agent", _spec(revisionHistoryLimit=1))
        await settle()

        stage.patch(DAEMON_SET, "agent", with_image("app:2"))
        await settle()
        stage.patch(DAEMON_SET, "agent", with_image("app:3"))
        await settle()

        assert sorted(each["revision"] for each in stage.all(CONTROLLER_REVISION)) == [2, 3]


@on_virtual_time
async def test_a_deleted_daemon_set_deletes_its_pods_and_revisions() -> None:
    with on_stage(start=None) as stage:
        _three_nodes(stage)
        stage.add(DAEMON_SET, "agent", _spec())
        await settle()

        stage.delete(DAEMON_SET, "agent")
        await settle(5)

        assert stage.names(POD) == []
        assert stage.names(CONTROLLER_REVISION) == []


@on_virtual_time
async def test_a_heartbeat_of_a_node_changes_nothing() -> None:
    with on_stage(start=None) as stage:
        stage.node("n1")
        stage.add(DAEMON_SET, "agent", _spec())
        await settle()
        await _everyone_runs(stage)
        await settle(5)

        stage.patch(NODE, "n1", {"status": {"phase": "Running"}}, "status")
        before = stage.store.version
        await settle(60)

        assert stage.store.version == before
