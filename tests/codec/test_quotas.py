"""ResourceQuotas and PriorityClasses: pods of manifests are admitted as by an API server."""

import pytest

from karpy.codec.manifests import Reading
from tests.codec.plain import Json, Value, container, plain_pod, workload
from tests.codec.reading import obj, problem, read


def quota(hard: Json, **fields: Value) -> Json:
    return obj("ResourceQuota", "q", spec={"hard": hard, **fields})


def asking(name: str = "a", **fields: Value) -> Json:
    requests = fields.pop("requests", {"cpu": "1"})
    limits = fields.pop("limits", {})
    return plain_pod(name, containers=[container(requests=requests, limits=limits)], **fields)


def refused(reading: Reading) -> list[str]:
    return [each.message for each in reading.findings if each.code == "KP1024"]


def created(reading: Reading) -> list[str]:
    return [pod.name for pod in reading.snapshot.pods]


@pytest.mark.parametrize(
    ("hard", "why"),
    [
        ({"pods": "2"}, "pods: 1 asked, 0 left of 2"),
        ({"count/pods": "2"}, "count/pods: 1 asked, 0 left of 2"),
        ({"requests.cpu": "2500m"}, "requests.cpu: 1 asked, 500m left of 2500m"),
        ({"cpu": "2"}, "cpu: 1 asked, 0 left of 2"),
    ],
)
def test_pods_beyond_a_quota_are_named_and_take_no_part(hard: Json, why: str) -> None:
    reading = read(workload("Deployment", "web", replicas=4), quota(hard))

    assert created(reading) == ["web-0", "web-1"]
    assert refused(reading) == [
        f"keeps 2 pods from being created (default/web-2, default/web-3): {why}"
    ]
    assert reading.findings[0].object == "ResourceQuota q"


def test_existing_pods_count_for_the_quota() -> None:
    runs = asking("runs", nodeName="n", status={"phase": "Running"})
    ended = asking("ended", nodeName="n", status={"phase": "Succeeded"})

    reading = read(obj("Node", "n"), runs, ended, asking("new"), quota({"requests.cpu": "1"}))

    assert created(reading) == ["runs", "ended"]


def test_the_usage_in_the_status_counts() -> None:
    full = {**quota({"pods": "5"}), "status": {"used": {"pods": "5"}}}

    assert created(read(asking(), full)) == []


def test_a_pod_must_set_the_amounts_that_a_quota_bounds() -> None:
    reading = read(plain_pod("a"), quota({"limits.memory": "1Gi"}))

    assert refused(reading) == [
        "keeps 1 pod from being created (default/a): a pod must say its limits.memory"
    ]


def test_a_limit_range_sets_the_amounts_that_a_quota_bounds() -> None:
    limits = {"limits": [{"type": "Container", "default": {"memory": "1Gi"}}]}

    reading = read(plain_pod("a"), obj("LimitRange", "d", spec=limits), quota({"memory": "1Gi"}))

    assert created(reading) == ["a"]


@pytest.mark.parametrize(
    ("scopes", "names"),
    [
        ({"scopes": ["BestEffort"]}, ["asks", "urgent"]),
        ({"scopes": ["NotBestEffort"]}, ["idle"]),
        (
            {
                "scopeSelector": {
                    "matchExpressions": [
                        {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
                    ]
                }
            },
            ["idle", "asks"],
        ),
    ],
)
def test_a_quota_is_about_the_pods_of_its_scopes(scopes: Json, names: list[str]) -> None:
    pods = [plain_pod("idle"), asking("asks"), asking("urgent", priorityClassName="high")]

    assert created(read(*pods, quota({"pods": "0"}, **scopes))) == names


def test_an_unsupported_scope_is_reported() -> None:
    (found,) = read(quota({"pods": "0"}, scopes=["Terminating"])).findings

    assert (found.code, found.path, found.is_left_out) == ("KP1023", "spec.scopes", True)


def test_a_bad_amount_is_named() -> None:
    assert problem(quota({"requests.cpu": "many"})) == (
        "`0.yaml` document 1, ResourceQuota q: `spec.hard.cpu` is `many`, not a quantity"
    )


def priority(name: str, value: int, **fields: Value) -> Json:
    made = obj("PriorityClass", name, value=value, **fields)
    return {**made, "apiVersion": "scheduling.k8s.io/v1"}


def test_a_priority_class_gives_its_value_to_pods_that_name_it_or_none() -> None:
    reading = read(
        priority("high", 1000),
        priority("usual", 10, globalDefault=True),
        plain_pod("a", priorityClassName="high"),
        plain_pod("b"),
        plain_pod("c", status={"phase": "Pending"}),
    )

    assert [
        (each.disruption.priority_class, each.disruption.priority) for each in reading.snapshot.pods
    ] == [("high", 1000), ("usual", 10), ("", 0)]
    assert reading.findings == ()


def test_running_pods_that_may_be_preempted_are_mentioned() -> None:
    reading = read(
        obj("Node", "n"),
        priority("high", 1000),
        plain_pod("a", priorityClassName="high"),
        plain_pod("runs", nodeName="n", status={"phase": "Running"}),
    )

    assert [(each.code, each.severity.value) for each in reading.findings] == [("PRIORITY", "note")]
