"""What pods are admitted with: LimitRanges of their namespace, and their RuntimeClass."""

import pytest

from karpy.codec.fields import JsonObject
from karpy.errors import Forbidden, Invalid
from karpy.model.kinds import LIMIT_RANGE, NAMESPACE, POD, RUNTIME_CLASS, Kind
from karpy.sim.store.store import Store

LIMITS = {"type": "Container", "default": {"cpu": "2"}, "min": {"memory": "1Mi"}}
SANDBOX = {
    "metadata": {"name": "sandboxed"},
    "handler": "runsc",
    "overhead": {"podFixed": {"cpu": 0.25}},
    "scheduling": {
        "nodeSelector": {"sandbox": "yes"},
        "tolerations": [{"key": "sandbox", "operator": "Exists"}],
    },
}


def a_pod(name: str = "web", namespace: str = "default", **spec: object) -> JsonObject:
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": [{"name": "main", "image": "i"}], **spec},
    }


def limit_range(*items: JsonObject, name: str = "usual") -> JsonObject:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"limits": list(items)},
    }


def resources(pod: JsonObject) -> JsonObject:
    made: JsonObject = pod["spec"]["containers"][0]["resources"]
    return made


def test_a_limit_range_says_in_full_what_it_gives_containers(store: Store) -> None:
    made = store.create(LIMIT_RANGE, limit_range({**LIMITS, "max": {"cpu": 4, "memory": "1Gi"}}))

    assert made["spec"]["limits"] == [
        {
            "type": "Container",
            "min": {"memory": "1Mi"},
            "max": {"cpu": "4", "memory": "1Gi"},
            "default": {"cpu": "2", "memory": "1Gi"},
            "defaultRequest": {"cpu": "2", "memory": "1Gi"},
        }
    ]


def test_containers_get_what_they_leave_open_and_the_pod_notes_it(store: Store) -> None:
    store.create(LIMIT_RANGE, limit_range(LIMITS))
    given = {"requests": {"cpu": "1"}}
    spec: JsonObject = {
        "containers": [{"name": "main", "image": "i", "resources": given}],
        "initContainers": [{"name": "first", "image": "i"}],
    }

    made = store.create(POD, a_pod(**spec))

    filled = {"limits": {"cpu": "2"}, "requests": {"cpu": "2", "memory": "1Mi"}}
    assert resources(made) == {**filled, "requests": {"cpu": "1", "memory": "1Mi"}}
    assert made["spec"]["initContainers"][0]["resources"] == filled
    assert made["metadata"]["annotations"] == {
        "kubernetes.io/limit-ranger": (
            "LimitRanger plugin set: memory request for container main; cpu limit for container "
            "main; cpu, memory request for init container first; cpu limit for init container first"
        )
    }
    assert made["status"]["qosClass"] == "Burstable"


def test_a_limit_range_counts_in_its_namespace_and_as_long_as_it_is_there(store: Store) -> None:
    store.create(NAMESPACE, {"metadata": {"name": "shop"}})
    store.create(LIMIT_RANGE, limit_range(LIMITS))
    elsewhere = store.create(POD, a_pod(namespace="shop"))
    store.delete(LIMIT_RANGE, "usual", namespace="default")

    later = store.create(POD, a_pod())

    assert (resources(elsewhere), resources(later)) == ({}, {})


def test_pods_of_one_workload_get_what_was_said_in_between(store: Store) -> None:
    given = a_pod()
    given["metadata"] = {"generateName": "web-", "namespace": "default"}
    first = store.create(POD, given)

    store.create(LIMIT_RANGE, limit_range(LIMITS))

    assert resources(first) == {}
    assert resources(store.create(POD, given))["limits"] == {"cpu": "2"}


def test_a_runtime_class_adds_its_overhead_and_its_nodes(store: Store) -> None:
    store.create(RUNTIME_CLASS, SANDBOX)

    made = store.create(POD, a_pod(runtimeClassName="sandboxed", nodeSelector={"a": "b"}))["spec"]

    assert (made["overhead"], made["nodeSelector"]) == (
        {"cpu": "250m"},
        {"a": "b", "sandbox": "yes"},
    )
    assert {"key": "sandbox", "operator": "Exists"} in made["tolerations"]


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"runtimeClassName": "other"}, 'pod rejected: RuntimeClass "other" not found'),
        (
            {"runtimeClassName": "sandboxed", "overhead": {"cpu": "1"}},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        (
            {"overhead": {"cpu": "1"}},
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
        (
            {"runtimeClassName": "sandboxed", "nodeSelector": {"sandbox": "no"}},
            (
                "conflict: runtimeClass.scheduling.nodeSelector[sandbox] = yes; "
                "pod.spec.nodeSelector[sandbox] = no"
            ),
        ),
    ],
)
def test_a_pod_against_its_runtime_class_is_refused(
    store: Store, spec: JsonObject, problem: str
) -> None:
    store.create(RUNTIME_CLASS, SANDBOX)

    with pytest.raises(Forbidden) as raised:
        store.create(POD, a_pod(**spec))

    assert raised.value.message == f'pods "web" is forbidden: {problem}'


@pytest.mark.parametrize(
    ("kind", "obj", "problem"),
    [
        (
            LIMIT_RANGE,
            limit_range({"max": {"cpu": "-1"}}),
            (
                'LimitRange "usual" is invalid: [spec.limits[0].type: Required value, '
                'spec.limits[0].max[cpu]: Invalid value: "-1": must be greater than or equal to 0]'
            ),
        ),
        (
            RUNTIME_CLASS,
            {"metadata": {"name": "a"}, "overhead": {"podFixed": {"cpu": "-1"}}},
            (
                'RuntimeClass.node.k8s.io "a" is invalid: [handler: Required value, '
                "overhead.podFixed.cpu: Invalid value: is `-1`, less than nothing]"
            ),
        ),
        (
            RUNTIME_CLASS,
            {**SANDBOX, "scheduling": {"nodeSelector": {"sandbox": "no one"}}},
            (
                'RuntimeClass.node.k8s.io "sandboxed" is invalid: scheduling.nodeSelector[sandbox]:'
                " Invalid value: is `no one`, which is no label value"
            ),
        ),
        (
            RUNTIME_CLASS,
            {**SANDBOX, "scheduling": {"tolerations": [{"operator": "Like"}]}},
            (
                'RuntimeClass.node.k8s.io "sandboxed" is invalid: '
                "scheduling.tolerations[0].operator: Invalid value: is `Like`"
            ),
        ),
    ],
)
def test_what_pods_could_not_be_admitted_with_is_refused(
    store: Store, kind: Kind, obj: JsonObject, problem: str
) -> None:
    with pytest.raises(Invalid) as raised:
        store.create(kind, obj)

    assert raised.value.message == problem


def test_a_runtime_class_keeps_its_handler(store: Store) -> None:
    made = store.create(RUNTIME_CLASS, SANDBOX)

    with pytest.raises(Invalid, match="handler: Invalid value"):
        store.replace(RUNTIME_CLASS, {**made, "handler": "kata"})


@pytest.mark.parametrize("spec", [None, {}])
def test_a_change_that_takes_the_spec_away_is_invalid(
    store: Store, spec: JsonObject | None
) -> None:
    store.create(LIMIT_RANGE, limit_range(LIMITS))
    made = store.create(POD, {**a_pod(), "spec": {**a_pod()["spec"], "priority": 0}})

    with pytest.raises(Invalid, match="containers"):
        store.replace(POD, {**made, "spec": spec})
