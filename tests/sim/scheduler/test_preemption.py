"""Who goes to make room for whom."""

from karpy.codec.fields import JsonObject
from karpy.model.kinds import DISRUPTION_BUDGET, POD
from karpy.ports.objects import Removal
from karpy.sim.store.conditions import condition_of
from tests.sim.scheduler.stage import AFTERWARDS, JsonValue, Stage, node, placed, play, pod

WEB = {"app": "web"}


def _class(name: str, value: int, **parts: JsonValue) -> JsonObject:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **parts,
    }


LOW, HIGH = _class("low", 10), _class("high", 1000)
POLITE = _class("polite", 1000, preemptionPolicy="Never")


def _high(cpu: str = "3") -> JsonObject:
    return pod("high", cpu=cpu, priorityClassName="high")


def _low(name: str, where: str, cpu: str = "3", labels: JsonObject | None = None) -> JsonObject:
    return placed(name, where, cpu=cpu, labels=labels, priorityClassName="low")


def _kubelet(stage: Stage) -> None:
    """End the pods whose time has come, as a kubelet would."""
    going = [each for each in stage.store.list(POD) if "deletionTimestamp" in each["metadata"]]
    for each in going:
        name = each["metadata"]["name"]
        stage.store.delete(POD, name, namespace="default", removal=Removal(grace_seconds=0))


def _going(stage: Stage) -> list[str]:
    return [
        each["metadata"]["name"]
        for each in stage.store.list(POD)
        if "deletionTimestamp" in each["metadata"]
    ]


def test_a_pod_of_lower_priority_is_deleted_gracefully() -> None:
    stage = play(LOW, HIGH, node("n1"), _low("low", "n1"), _high())

    condition = condition_of(stage.pod("low"), "DisruptionTarget")
    assert _going(stage) == ["low"]
    assert stage.pod("high")["status"]["nominatedNodeName"] == "n1"
    assert stage.message("high") == "0/1 nodes are available: 1 Insufficient cpu."
    assert condition is not None
    assert condition["reason"] == "PreemptionByScheduler"
    assert stage.events("Preempted")[0]["message"] == (
        f"Preempted by pod {stage.pod('high')['metadata']['uid']} on node n1"
    )


def test_the_pod_is_bound_once_the_victim_is_gone() -> None:
    stage = play(LOW, HIGH, node("n1"), _low("low", "n1"), _high(), 2.0, _kubelet)

    assert stage.nodes() == {"high": "n1"}
    assert "nominatedNodeName" not in stage.pod("high")["status"]


def test_no_further_pod_is_preempted_while_a_victim_terminates() -> None:
    stage = play(
        LOW,
        HIGH,
        node("n1"),
        _low("low", "n1"),
        _low("bye", "n1", "100m"),
        _high(),
        2.0,
        lambda stage: stage.end("bye"),
    )

    assert stage.message("high") == (
        "0/1 nodes are available: 1 Insufficient cpu."
        + AFTERWARDS
        + "not eligible due to a terminating pod on the nominated node."
    )


def test_a_pod_with_preemption_policy_never_waits() -> None:
    stage = play(
        LOW,
        POLITE,
        node("n1"),
        _low("low", "n1"),
        pod("polite", cpu="3", priorityClassName="polite"),
    )

    assert _going(stage) == []
    assert stage.message("polite") == (
        "0/1 nodes are available: 1 Insufficient cpu."
        + AFTERWARDS
        + "not eligible due to preemptionPolicy=Never."
    )


def test_pods_of_equal_priority_do_not_preempt_each_other() -> None:
    stage = play(node("n1"), placed("one", "n1", cpu="3"), pod("two", cpu="3"))

    assert _going(stage) == []


def test_no_pod_is_preempted_if_the_preemptor_still_does_not_fit() -> None:
    stage = play(LOW, HIGH, node("n1"), _low("low", "n1"), _high("5"))

    assert _going(stage) == []


def test_no_more_pods_are_preempted_than_necessary() -> None:
    stage = play(
        LOW,
        HIGH,
        node("n1", cpu="4"),
        _low("small", "n1", "1"),
        _low("large", "n1", "3"),
        _high("1"),
    )

    assert _going(stage) == ["small"]


def test_the_pods_of_lowest_priority_are_preempted() -> None:
    middle = _class("middle", 100)

    stage = play(
        LOW,
        middle,
        HIGH,
        node("n1"),
        node("n2"),
        placed("middle", "n1", cpu="3", priorityClassName="middle"),
        _low("low", "n2"),
        _high(),
    )

    assert _going(stage) == ["low"]


def test_budgets_are_kept_if_possible() -> None:
    budget: JsonObject = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": WEB}},
    }

    def forbid(stage: Stage) -> None:
        there = stage.store.get(DISRUPTION_BUDGET, "web", "default")
        status = {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1}
        status["expectedPods"] = 1
        changed = {**there, "status": status}
        stage.store.replace(DISRUPTION_BUDGET, changed, subresource="status")

    stage = play(
        LOW,
        HIGH,
        budget,
        forbid,
        node("n1"),
        node("n2"),
        _low("web", "n1", labels=WEB),
        _low("other", "n2"),
        _high(),
    )

    assert _going(stage) == ["other"]


def test_room_made_for_a_pod_is_kept_for_it() -> None:
    stage = play(
        LOW,
        HIGH,
        node("n1"),
        _low("low", "n1"),
        _high(),
        1.0,
        pod("sneaky", cpu="1"),
        _kubelet,
        pod("late", cpu="2"),
    )

    assert stage.nodes() == {"high": "n1", "late": None, "sneaky": "n1"}


def test_fewer_victims_are_better() -> None:
    stage = play(
        LOW,
        HIGH,
        node("n1"),
        node("n2"),
        _low("one", "n1", "2"),
        _low("two", "n1", "2"),
        _low("three", "n2", "4"),
        _high("4"),
    )

    assert _going(stage) == ["three"]
