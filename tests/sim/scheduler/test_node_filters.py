"""Filters that ask the node alone: taints, affinity, ports, resources."""

import pytest

from karpy.codec.fields import JsonObject
from karpy.model.kinds import POD
from tests.sim.scheduler.stage import (
    HELPLESS,
    NO_VICTIMS,
    JsonValue,
    Stage,
    expression,
    node,
    on_nodes,
    placed,
    play,
    pod,
)

NO_SCHEDULE = {"key": "team", "value": "a", "effect": "NoSchedule"}
FIVE = {"generation": "5"}
TAKES_80 = {"containerPort": 80, "hostPort": 80}


def _refused(stage_message: str, reason: str, afterwards: str = HELPLESS) -> bool:
    return stage_message == f"0/1 nodes are available: 1 {reason}.{afterwards}"


def test_a_pod_is_bound_with_an_event() -> None:
    stage = play(node("n1"), pod("a", cpu="1"))

    assert stage.node_of("a") == "n1"
    assert [each["message"] for each in stage.events("Scheduled")] == [
        "Successfully assigned default/a to n1"
    ]


def test_without_nodes_nothing_is_scheduled() -> None:
    stage = play(pod("a"))

    assert stage.message("a") == "no nodes available to schedule pods"


def test_equal_workloads_get_equal_messages() -> None:
    small = node("n1", cpu="1")

    stage = play(small, *(pod(name, cpu="2", labels={"app": name}) for name in ("a", "b")))

    assert _refused(stage.message("a"), "Insufficient cpu", HELPLESS)
    assert stage.message("b") == stage.message("a")


def test_a_cordoned_node_takes_no_pod() -> None:
    stage = play(node("n1", spec={"unschedulable": True}), pod("a"))

    assert _refused(stage.message("a"), "node(s) were unschedulable")


def test_a_cordoned_node_takes_a_pod_that_tolerates_it() -> None:
    tolerance = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}

    stage = play(node("n1", spec={"unschedulable": True}), pod("a", tolerations=[tolerance]))

    assert stage.node_of("a") == "n1"


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_a_taint_keeps_a_pod_away(effect: str) -> None:
    stage = play(node("n1", spec={"taints": [{**NO_SCHEDULE, "effect": effect}]}), pod("a"))

    assert _refused(stage.message("a"), "node(s) had untolerated taint(s)")


@pytest.mark.parametrize(
    "toleration",
    [
        {"key": "team", "operator": "Exists"},
        {"key": "team", "operator": "Equal", "value": "a", "effect": "NoSchedule"},
        {"operator": "Exists"},
    ],
)
def test_a_tolerated_taint_keeps_no_pod_away(toleration: JsonObject) -> None:
    stage = play(node("n1", spec={"taints": [NO_SCHEDULE]}), pod("a", tolerations=[toleration]))

    assert stage.node_of("a") == "n1"


@pytest.mark.parametrize(
    "rule",
    [
        expression("generation", "In", "4", "5"),
        expression("generation", "NotIn", "4"),
        expression("generation", "Exists"),
        expression("other", "DoesNotExist"),
        expression("other", "NotIn", "5"),
        expression("generation", "Gt", "4"),
        expression("generation", "Lt", "6"),
    ],
    ids=lambda rule: f"{rule['key']}-{rule['operator']}",
)
def test_node_affinity_finds_its_node(rule: JsonObject) -> None:
    wanted = on_nodes({"matchExpressions": [rule]})

    stage = play(node("n1", labels=FIVE), pod("a", affinity=wanted))

    assert stage.node_of("a") == "n1"


@pytest.mark.parametrize(
    "rule",
    [
        expression("generation", "In", "4"),
        expression("generation", "NotIn", "5"),
        expression("other", "Exists"),
        expression("generation", "DoesNotExist"),
        expression("generation", "Gt", "5"),
        expression("generation", "Lt", "5"),
        expression("other", "Gt", "1"),
    ],
    ids=lambda rule: f"{rule['key']}-{rule['operator']}",
)
def test_node_affinity_refuses_other_nodes(rule: JsonObject) -> None:
    wanted = on_nodes({"matchExpressions": [rule]})

    stage = play(node("n1", labels=FIVE), pod("a", affinity=wanted))

    assert _refused(stage.message("a"), "node(s) didn't match Pod's node affinity/selector")


def test_one_of_several_terms_is_enough() -> None:
    other, this = expression("generation", "In", "4"), expression("generation", "In", "5")
    wanted = on_nodes({"matchExpressions": [other]}, {"matchExpressions": [this]})

    stage = play(node("n1", labels=FIVE), pod("a", affinity=wanted))

    assert stage.node_of("a") == "n1"


def test_an_empty_term_matches_no_node() -> None:
    stage = play(node("n1"), pod("a", affinity=on_nodes({})))

    assert _refused(stage.message("a"), "node(s) didn't match Pod's node affinity/selector")


@pytest.mark.parametrize(("wanted", "where"), [("5", "n1"), ("4", None)])
def test_a_node_selector_must_match(wanted: str, where: str | None) -> None:
    stage = play(node("n1", labels=FIVE), pod("a", nodeSelector={"generation": wanted}))

    assert stage.node_of("a") == where


def test_a_pod_may_name_its_node_as_those_of_daemons_do() -> None:
    here = on_nodes({"matchFields": [expression("metadata.name", "In", "n2")]})

    stage = play(node("n1"), node("n2", cpu="1"), pod("a", affinity=here))

    assert stage.node_of("a") == "n2"


def test_nodes_that_a_pod_does_not_name_are_not_looked_at() -> None:
    here = on_nodes({"matchFields": [expression("metadata.name", "In", "n2")]})

    stage = play(node("n1"), node("n2", cpu="1"), pod("a", cpu="2", affinity=here))

    assert stage.message("a") == (
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't satisfy plugin(s) "
        "[NodeAffinity]. no new claims to deallocate, preemption: 0/2 nodes are available: "
        "2 Preemption is not helpful for scheduling."
    )


def test_a_pod_that_names_two_nodes_at_once_contradicts_itself() -> None:
    names = [expression("metadata.name", "In", each) for each in ("n1", "n2")]

    stage = play(node("n1"), pod("a", affinity=on_nodes({"matchFields": names})))

    assert stage.message("a") == ("0/1 nodes are available: pod affinity terms conflict. not found")


def _with_port(name: str, *, where: str = "", **port: JsonValue) -> JsonObject:
    made = pod(name)
    made["spec"]["containers"][0]["ports"] = [{**TAKES_80, **port}]
    if where:
        made["spec"]["nodeName"] = where
    return made


def test_a_port_of_the_node_is_given_away_once() -> None:
    stage = play(node("n1"), _with_port("first", where="n1"), _with_port("second"))

    reason = "node(s) didn't have free ports for the requested pod ports"
    assert _refused(stage.message("second"), reason, NO_VICTIMS)


@pytest.mark.parametrize("port", [{"protocol": "UDP"}, {"hostPort": 81}])
def test_another_port_or_protocol_does_not_clash(port: JsonObject) -> None:
    stage = play(node("n1"), _with_port("first", where="n1"), _with_port("second", **port))

    assert stage.node_of("second") == "n1"


def test_a_port_on_another_address_does_not_clash() -> None:
    first = _with_port("first", where="n1", hostIP="10.0.0.1")

    stage = play(node("n1"), first, _with_port("second", hostIP="10.0.0.2"))

    assert stage.node_of("second") == "n1"


def test_a_port_on_all_addresses_clashes_with_each() -> None:
    first = _with_port("first", where="n1", hostIP="10.0.0.1")

    stage = play(node("n1"), first, _with_port("second"))

    assert stage.node_of("second") is None


def test_what_is_taken_may_be_given_back_but_a_node_does_not_grow() -> None:
    stage = play(node("n1", cpu="4"), placed("old", "n1", cpu="3"), pod("a", cpu="2"))

    assert _refused(stage.message("a"), "Insufficient cpu", NO_VICTIMS)


def test_more_than_a_node_has_is_never_to_be_had() -> None:
    stage = play(node("n1", cpu="4"), pod("a", cpu="5"))

    assert _refused(stage.message("a"), "Insufficient cpu")


def test_everything_that_is_short_is_named() -> None:
    small = node("n1", cpu="1", memory="1Gi", allocatable={"pods": "0"})
    large = pod("a")
    requests = {"cpu": "2", "memory": "2Gi", "example.com/gpu": "1", "ephemeral-storage": "1Gi"}
    resources = {"requests": requests, "limits": {"example.com/gpu": "1"}}
    large["spec"]["containers"][0]["resources"] = resources

    stage = play(small, large)

    assert stage.message("a") == (
        "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient ephemeral-storage, "
        "1 Insufficient example.com/gpu, 1 Insufficient memory, 1 Too many pods." + HELPLESS
    )


def test_an_extended_resource_is_counted() -> None:
    has_one = node("n1", allocatable={"example.com/gpu": "1"})
    first, second = pod("first"), pod("second")
    first["spec"]["containers"][0]["resources"] = {"limits": {"example.com/gpu": "1"}}
    second["spec"]["containers"][0]["resources"] = {"limits": {"example.com/gpu": "1"}}

    stage = play(has_one, first, second)

    assert stage.node_of("first") == "n1"
    assert _refused(stage.message("second"), "Insufficient example.com/gpu", NO_VICTIMS)


def test_a_node_takes_so_many_pods_and_no_more() -> None:
    stage = play(node("n1", allocatable={"pods": "1"}), pod("first"), pod("second"))

    assert stage.node_of("first") == "n1"
    assert _refused(stage.message("second"), "Too many pods", NO_VICTIMS)


def test_a_pod_that_is_done_takes_nothing() -> None:
    done = placed("done", "n1", cpu="4")

    def finish(stage: Stage) -> None:
        finished = {**stage.pod("done"), "status": {"phase": "Succeeded"}}
        stage.store.replace(POD, finished, subresource="status")

    stage = play(node("n1", cpu="4"), done, finish, pod("a", cpu="4"))

    assert stage.node_of("a") == "n1"


def test_a_disk_is_used_by_one_pod_at_a_time() -> None:
    disk = [{"name": "data", "awsElasticBlockStore": {"volumeID": "vol-1"}}]

    stage = play(node("n1"), placed("first", "n1", volumes=disk), pod("second", volumes=disk))

    assert _refused(stage.message("second"), "node(s) had no available disk", NO_VICTIMS)


def test_reasons_are_counted_over_all_nodes() -> None:
    stage = play(
        node("n1", cpu="1"),
        node("n2", spec={"taints": [NO_SCHEDULE]}),
        node("n3", cpu="1"),
        pod("a", cpu="2"),
    )

    assert stage.message("a") == (
        "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. "
        "no new claims to deallocate, preemption: 0/3 nodes are available: "
        "3 Preemption is not helpful for scheduling."
    )
