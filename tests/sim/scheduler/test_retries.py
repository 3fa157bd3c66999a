"""When pods that failed are tried again, and who is tried first."""

from karpy.codec.fields import JsonObject
from karpy.model.kinds import NODE, POD
from karpy.model.labels import ZONE
from karpy.sim.store.conditions import condition_of
from tests.sim.scheduler.stage import Stage, Step, node, perform, placed, play, pod

WEB = {"app": "web"}
TAINT = {"key": "team", "effect": "NoSchedule"}
ALONE: JsonObject = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": ZONE, "labelSelector": {"matchLabels": WEB}}
        ]
    }
}
WITH_WEB: JsonObject = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": ZONE, "labelSelector": {"matchLabels": WEB}}
        ]
    }
}


def _tries(stage: Stage) -> int:
    events = stage.events("FailedScheduling")
    return sum((each.get("series") or {}).get("count", 1) for each in events)


def _high(name: str, value: int) -> JsonObject:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def test_a_new_node_activates_a_pod() -> None:
    stage = play(pod("a", cpu="2"), 2.0, node("n1"))

    assert stage.node_of("a") == "n1"


def test_a_new_node_that_is_too_small_activates_no_pod() -> None:
    stage = play(node("n0", cpu="1"), pod("a", cpu="2"), 20.0, node("n1", cpu="1"), seconds=20)

    assert _tries(stage) == 1


def test_a_node_that_loses_its_taint_activates_a_pod() -> None:
    def clean(stage: Stage) -> None:
        stage.change(NODE, "n1", spec={"taints": []})

    stage = play(node("n1", spec={"taints": [TAINT]}), pod("a"), 2.0, clean)

    assert stage.node_of("a") == "n1"


def test_a_heartbeat_of_a_node_activates_no_pod() -> None:
    def live(stage: Stage) -> None:
        there = stage.store.get(NODE, "n1")
        status = {**there["status"], "conditions": [{"type": "Ready", "status": "True"}]}
        stage.store.replace(NODE, {**there, "status": status}, subresource="status")

    stage = play(node("n1", cpu="1"), pod("a", cpu="2"), 20.0, live, seconds=20)

    assert _tries(stage) == 1


def test_the_room_of_a_deleted_pod_is_used() -> None:
    stage = play(
        node("n1"),
        placed("old", "n1", cpu="3"),
        pod("a", cpu="2"),
        2.0,
        lambda stage: stage.end("old"),
    )

    assert stage.node_of("a") == "n1"


def test_the_deletion_of_a_pod_that_anti_affinity_selects_activates_a_pod() -> None:
    stage = play(
        node("n1"),
        placed("old", "n1", labels=WEB),
        pod("a", affinity=ALONE),
        2.0,
        lambda stage: stage.end("old"),
    )

    assert stage.node_of("a") == "n1"


def test_a_new_pod_that_affinity_selects_activates_a_pod() -> None:
    stage = play(node("n1"), pod("a", affinity=WITH_WEB), 2.0, pod("web", labels=WEB), 0.1)

    assert stage.nodes() == {"a": "n1", "web": "n1"}


def test_a_new_pod_that_affinity_does_not_select_activates_no_pod() -> None:
    stage = play(node("n1"), pod("a", affinity=WITH_WEB), 20.0, pod("db"), seconds=20)

    assert _tries(stage) == 1


def test_pauses_grow_from_one_second_to_ten() -> None:
    """Each second a pod goes, which concerns the one that waits for room."""
    leaving = [placed(f"old-{each}", "n1") for each in range(40)]
    steps: list[Step] = [step for each in range(40) for step in (1.0, _ending(f"old-{each}"))]

    stage = play(node("n1"), placed("big", "n1", cpu="3"), *leaving, pod("a", cpu="2"), *steps)

    assert _tries(stage) == 7


def _ending(name: str) -> Step:
    return lambda stage: stage.end(name)


def test_every_pod_is_retried_within_five_minutes() -> None:
    stage = play(node("n1", cpu="1"), pod("a", cpu="2"), seconds=301)

    assert _tries(stage) == 2


def test_a_repeated_failure_is_one_event() -> None:
    stage = play(node("n1", cpu="1"), pod("a", cpu="2"), seconds=901)

    events = stage.events("FailedScheduling")
    assert [each["series"]["count"] for each in events] == [4]


def test_a_failure_is_a_condition_and_an_event() -> None:
    stage = play(node("n1", cpu="1"), pod("a", cpu="2"))

    condition = condition_of(stage.pod("a"), "PodScheduled")
    event = stage.events("FailedScheduling")[0]
    assert condition is not None
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    assert (event["type"], event["message"]) == ("Warning", condition["message"])
    assert event["involvedObject"]["name"] == "a"


def test_the_same_failure_is_not_written_twice() -> None:
    stage = play(node("n1", cpu="1"), pod("a", cpu="2"))
    once = stage.pod("a")["metadata"]["resourceVersion"]
    again = play(node("n1", cpu="1"), pod("a", cpu="2"), seconds=400)

    assert again.pod("a")["metadata"]["resourceVersion"] == once


def test_a_gated_pod_waits_and_says_so() -> None:
    stage = play(node("n1"), pod("a", schedulingGates=[{"name": "example.com/wait"}]))

    condition = condition_of(stage.pod("a"), "PodScheduled")
    assert condition is not None
    assert condition["reason"] == "SchedulingGated"
    assert condition["message"] == "Scheduling is blocked due to non-empty scheduling gates"


def test_a_pod_without_its_gates_is_scheduled() -> None:
    def open_gate(stage: Stage) -> None:
        waiting = stage.pod("a")
        spec = {key: value for key, value in waiting["spec"].items() if key != "schedulingGates"}
        stage.store.replace(POD, {**waiting, "spec": spec})

    gated = pod("a", schedulingGates=[{"name": "example.com/wait"}])

    stage = play(node("n1"), gated, 1.0, open_gate)

    assert stage.node_of("a") == "n1"


def test_a_pod_of_another_scheduler_is_left_alone() -> None:
    stage = play(node("n1"), pod("a", schedulerName="other"))

    assert stage.node_of("a") is None
    assert condition_of(stage.pod("a"), "PodScheduled") is None


def test_a_pod_that_was_deleted_is_forgotten() -> None:
    stage = play(pod("a"), 1.0, lambda stage: stage.end("a"), node("n1"), seconds=600)

    assert stage.nodes() == {}


def test_the_pod_of_higher_priority_is_scheduled_first() -> None:
    stage = play(
        _high("high", 1000),
        pod("low", cpu="3"),
        pod("high", cpu="3", priorityClassName="high"),
        node("n1"),
    )

    assert stage.nodes() == {"high": "n1", "low": None}


def test_among_equals_the_first_comes_first() -> None:
    stage = play(pod("z", cpu="3"), pod("a", cpu="3"), node("n1"))

    assert stage.nodes() == {"a": None, "z": "n1"}


def test_pods_created_before_the_start_are_scheduled() -> None:
    stage = Stage()
    stage.create(node("n1"))
    stage.create(placed("old", "n1", cpu="3"))
    stage.create(pod("a", cpu="2"))
    stage.create(pod("b", cpu="1"))

    perform(stage)

    assert stage.nodes() == {"a": None, "b": "n1", "old": "n1"}


def test_nothing_happens_after_the_stop() -> None:
    stage = play(node("n1"))

    stage.create(pod("late"))

    assert stage.node_of("late") is None


def test_an_unreadable_pod_is_reported() -> None:
    broken = pod("a")
    ports = [{"containerPort": 80, "hostPort": 80, "hostIP": "nonsense"}]
    broken["spec"]["containers"][0]["ports"] = ports

    stage = play(node("n1"), broken, pod("b"))

    condition = condition_of(stage.pod("a"), "PodScheduled")
    assert condition is not None
    assert condition["reason"] == "SchedulerError"
    assert "`nonsense`, which is no address" in condition["message"]
    assert stage.node_of("b") == "n1"


def test_a_node_that_goes_while_a_pod_waits_for_volumes_is_given_up() -> None:
    later: JsonObject = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "later"},
        "provisioner": "disk.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    claim: JsonObject = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "later",
        },
    }
    volumes: list[JsonObject] = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]

    stage = play(
        later,
        claim,
        node("n1"),
        pod("a", volumes=volumes),
        1.0,
        lambda stage: stage.store.delete(NODE, "n1"),
    )

    assert stage.message("a") == (
        'running PreBind plugin "VolumeBinding": binding volumes: failed to get node "n1": '
        'node "n1" not found'
    )
