import pytest

from karpy.codec.admission import (
    AdmissionRules,
    LimitRange,
    RuntimeClass,
    read_limit_range,
    read_runtime_class,
)
from karpy.codec.fields import FieldInvalid, Fields
from karpy.codec.workloads import HASH_LABEL
from karpy.model.resources import Resources
from karpy.model.snapshot import Snapshot
from tests.codec.plain import Json, Value, container, plain_pod, workload
from tests.codec.reading import obj, read

GI = 2**30


def limit_range(*items: Json, name: str = "usual", namespace: str = "default") -> Json:
    meta = {"name": name, "namespace": namespace}
    return obj("LimitRange", name, meta=meta, spec={"limits": list(items)})


def of_containers(**amounts: Value) -> Json:
    return {"type": "Container", **amounts}


def runtime_class(name: str = "sandboxed", **fields: Value) -> Json:
    return {**obj("RuntimeClass", name, handler="runsc", **fields), "apiVersion": "node.k8s.io/v1"}


def admission(*ranges: Json, runtime: Json | None = None) -> AdmissionRules:
    return AdmissionRules(
        [read_limit_range(Fields(each)) for each in ranges],
        [read_runtime_class(Fields(runtime))] if runtime else [],
    )


def resources_of(given: Json, *ranges: Json) -> Json:
    """Return what a container has after admission."""
    spec = {"containers": [{"name": "c", "resources": given}]}
    made: Json = admission(*ranges).admitted(spec, "default")["containers"][0]["resources"]
    return made


@pytest.mark.parametrize(
    ("item", "limits", "requests"),
    [
        ({"default": {"cpu": "2"}}, {"cpu": "2"}, {"cpu": "2"}),
        ({"defaultRequest": {"cpu": "1"}}, {}, {"cpu": "1"}),
        ({"default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}}, {"cpu": "2"}, {"cpu": "1"}),
        ({"max": {"cpu": "4"}}, {"cpu": "4"}, {"cpu": "4"}),
        ({"min": {"cpu": "1"}}, {}, {"cpu": "1"}),
        ({"min": {"cpu": "1"}, "max": {"cpu": "4"}}, {"cpu": "4"}, {"cpu": "4"}),
        ({"max": {"cpu": "4"}, "default": {"cpu": "2"}}, {"cpu": "2"}, {"cpu": "2"}),
    ],
)
def test_one_bound_of_a_limit_range_stands_in_for_another(
    item: Json, limits: Json, requests: Json
) -> None:
    found = read_limit_range(Fields(limit_range(of_containers(**item))))

    assert found == LimitRange("usual", "default", limits, requests)


def test_bounds_of_pods_and_volumes_fill_nothing_in() -> None:
    pods = {"type": "Pod", "max": {"cpu": "4"}, "min": {"cpu": "1"}}
    claims = {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}

    found = read_limit_range(Fields(limit_range(pods, claims)))

    assert found == LimitRange("usual", "default", {}, {})


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({}, {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}),
        (
            {"requests": {"cpu": "100m"}},
            {"limits": {"cpu": "2"}, "requests": {"cpu": "100m"}},
        ),
        # Requests are made of limits before LimitRanges are looked at.
        ({"limits": {"cpu": "500m"}}, {"limits": {"cpu": "500m"}, "requests": {"cpu": "500m"}}),
        (
            {"limits": {"memory": "1Gi"}},
            {
                "limits": {"cpu": "2", "memory": "1Gi"},
                "requests": {"cpu": "1", "memory": "1Gi"},
            },
        ),
    ],
)
def test_amounts_of_a_container_override_the_defaults(given: Json, made: Json) -> None:
    usual = limit_range(of_containers(default={"cpu": "2"}, defaultRequest={"cpu": "1"}))

    assert resources_of(given, usual) == made


def test_the_first_of_two_limit_ranges_by_name_counts() -> None:
    second = limit_range(of_containers(default={"cpu": "2", "memory": "1Gi"}), name="b")
    first = limit_range(of_containers(defaultRequest={"cpu": "1"}), name="a")

    made = resources_of({}, second, first)

    assert made == {
        "limits": {"cpu": "2", "memory": "1Gi"},
        "requests": {"cpu": "1", "memory": "1Gi"},
    }


def test_the_last_of_two_items_of_a_limit_range_counts() -> None:
    items = [of_containers(default={"cpu": "1"}), of_containers(default={"cpu": "2"})]

    made = resources_of({}, limit_range(*items))

    assert made == {"limits": {"cpu": "2"}, "requests": {"cpu": "2"}}


def test_init_containers_count_and_other_namespaces_do_not() -> None:
    spec = {"containers": [{"name": "c"}], "initContainers": [{"name": "i"}]}
    usual = admission(limit_range(of_containers(defaultRequest={"cpu": "1"})))
    resources = {"requests": {"cpu": "1"}}

    assert usual.admitted(spec, "default") == {
        "containers": [{"name": "c", "resources": resources}],
        "initContainers": [{"name": "i", "resources": resources}],
    }
    assert usual.admitted(spec, "shop") == spec


SANDBOX = runtime_class(
    overhead={"podFixed": {"cpu": "250m"}},
    scheduling={
        "nodeSelector": {"sandbox": "yes"},
        "tolerations": [{"key": "sandbox", "operator": "Exists"}],
    },
)


def test_a_runtime_class_adds_overhead_and_scheduling() -> None:
    spec = {"runtimeClassName": "sandboxed", "nodeSelector": {"disk": "ssd"}}

    assert admission(runtime=SANDBOX).admitted(spec, "default") == {
        "runtimeClassName": "sandboxed",
        "overhead": {"cpu": "250m"},
        "nodeSelector": {"disk": "ssd", "sandbox": "yes"},
        "tolerations": [{"key": "sandbox", "operator": "Exists"}],
    }


def test_an_admitted_pod_is_admitted_as_it_is() -> None:
    rules = admission(limit_range(of_containers(default={"cpu": "2"})), runtime=SANDBOX)
    spec = {"runtimeClassName": "sandboxed", "containers": [{"name": "c"}]}

    once = rules.admitted(spec, "default")

    assert rules.admitted(once, "default") == once


def test_a_runtime_class_that_is_not_there_adds_nothing() -> None:
    spec = {"runtimeClassName": "other"}

    assert admission(runtime=SANDBOX).admitted(spec, "default") == spec


def test_a_runtime_class_without_scheduling_is_empty() -> None:
    found = read_runtime_class(Fields(runtime_class()))

    assert found == RuntimeClass("sandboxed", {}, {}, ())


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (limit_range(of_containers(default={"cpu": "much"})), "spec.limits[0].default.cpu"),
        (limit_range(of_containers(min={"cpu": "-1"})), "spec.limits[0].min.cpu"),
        (runtime_class(overhead={"podFixed": {"cpu": "x"}}), "overhead.podFixed.cpu"),
        (
            runtime_class(scheduling={"tolerations": [{"operator": "Like"}]}),
            "scheduling.tolerations[0].operator",
        ),
        (
            runtime_class(scheduling={"nodeSelector": {"a b": "c"}}),
            "scheduling.nodeSelector[a b]",
        ),
    ],
)
def test_an_unreadable_field_is_named(value: Json, path: str) -> None:
    kind = Fields(value).text("kind")
    reader = {"LimitRange": read_limit_range, "RuntimeClass": read_runtime_class}[kind]

    with pytest.raises(FieldInvalid) as raised:
        reader(Fields(value))

    assert raised.value.path == path


# --- in manifests --------------------------------------------------------------------------------

USUAL = limit_range(of_containers(default={"cpu": "2", "memory": "1Gi"}))
OPEN = [container()]
FILLED = {"cpu": 2000, "memory": GI, "pods": 1}


def requests(*objects: Json) -> dict[str, Resources]:
    """Return the requests of pods and DaemonSets, by name."""
    snapshot: Snapshot = read(*objects).snapshot
    pods = {each.name: each.requests for each in snapshot.pods}
    return pods | {each.name: each.pod.requests for each in snapshot.daemons}


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "Job", "DaemonSet"])
def test_pods_of_a_template_request_the_amounts_after_admission(kind: str) -> None:
    made = workload(kind, "web", pod={"containers": OPEN})

    assert list(requests(made, USUAL).values()) == [FILLED]


def test_only_a_pod_that_is_not_in_the_cluster_is_changed_by_admission() -> None:
    there = {**plain_pod("there", containers=OPEN), "status": {"phase": "Pending"}}

    assert requests(there, plain_pod("new", containers=OPEN), USUAL) == {
        "there": {"pods": 1},
        "new": FILLED,
    }


def test_a_limit_range_leaves_the_revision_of_a_deployment_as_it_is() -> None:
    web = workload("Deployment", "web", pod={"containers": OPEN})

    before, after = read(web).snapshot.pods[0], read(web, USUAL).snapshot.pods[0]

    assert before.labels[HASH_LABEL] == after.labels[HASH_LABEL]


def test_a_daemon_set_has_the_requests_of_its_pods() -> None:
    """A webhook may have changed them; the node that a pod is made for does not count."""
    field = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    pinned = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": pinned}}
    agent = workload("DaemonSet", "agent", meta={"uid": "u"})
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "u"}
    pod = plain_pod(
        "agent-x",
        containers=[container(requests={"cpu": "3"})],
        affinity=affinity,
        meta={"ownerReferences": [{**owner, "controller": True}]},
    )

    made = read(agent, pod).snapshot.daemons[0].pod

    assert (made.requests, made.rules.required_node_terms) == ({"cpu": 3000, "pods": 1}, ())
