import pytest

from karpy.codec.fields import JsonObject
from karpy.errors import Forbidden
from karpy.model.kinds import (
    POD,
    PRIORITY_CLASS,
)
from karpy.sim.store.store import Store
from tests.sim.store.worlds import (
    NOW,
    a_pod,
    with_spec,
)

PATIENCE = [
    {
        "key": f"node.kubernetes.io/{trouble}",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 300,
    }
    for trouble in ("not-ready", "unreachable")
]


def spec_of(store: Store, **spec: object) -> JsonObject:
    made: JsonObject = store.create(POD, with_spec(a_pod(), **spec))["spec"]
    return made


def container_of(store: Store, **container: object) -> JsonObject:
    given = {"name": "c", "image": "i:1", **container}
    made: JsonObject = spec_of(store, containers=[given])["containers"][0]
    return made


def test_a_pod_is_filled_in(store: Store) -> None:
    pod = store.create(POD, a_pod())

    assert pod["spec"] == {
        "containers": [
            {
                "name": "c",
                "image": "i:1",
                "imagePullPolicy": "IfNotPresent",
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }
        ],
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "priority": 0,
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "serviceAccount": "default",
        "serviceAccountName": "default",
        "terminationGracePeriodSeconds": 30,
        "tolerations": PATIENCE,
    }
    assert pod["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


def test_pods_with_equal_specs_share_one(store: Store) -> None:
    one, two = store.create(POD, a_pod("one")), store.create(POD, a_pod("two"))

    assert one["spec"] is two["spec"]


def test_a_pod_that_tolerates_trouble_itself_is_left_alone(store: Store) -> None:
    everything = [{"operator": "Exists"}]

    assert spec_of(store, tolerations=everything)["tolerations"] == everything


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("web", "Always"),
        ("web:latest", "Always"),
        ("web:1", "IfNotPresent"),
        ("host:5000/web", "Always"),
        ("web@sha256:0123", "IfNotPresent"),
    ],
)
def test_an_image_without_a_version_is_always_pulled(store: Store, image: str, policy: str) -> None:
    assert container_of(store, image=image)["imagePullPolicy"] == policy


def test_limits_are_requests_unless_there_are_some(store: Store) -> None:
    limits = {"cpu": "1", "memory": "1Gi"}

    container = container_of(store, resources={"limits": limits, "requests": {"cpu": "500m"}})

    assert container["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}


def test_quantities_are_written_one_way(store: Store) -> None:
    container = container_of(
        store, resources={"requests": {"cpu": 0.5, "memory": "1024Mi", "ephemeral-storage": 1000}}
    )

    assert container["resources"]["requests"] == {
        "cpu": "500m",
        "memory": "1Gi",
        "ephemeral-storage": "1k",
    }


def test_probes_and_ports_are_filled_in(store: Store) -> None:
    container = container_of(
        store, ports=[{"containerPort": 80}], livenessProbe={"httpGet": {"port": 80}}
    )

    assert container["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert container["livenessProbe"] == {
        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }


def test_ports_of_a_pod_on_the_host_are_the_hosts(store: Store) -> None:
    ports = [{"containerPort": 80}]
    spec = spec_of(
        store, hostNetwork=True, containers=[{"name": "c", "image": "i:1", "ports": ports}]
    )

    assert spec["containers"][0]["ports"][0]["hostPort"] == 80


def test_volumes_are_filled_in(store: Store) -> None:
    volumes = [{"name": "a"}, {"name": "b", "secret": {"secretName": "s"}}]

    assert spec_of(store, volumes=volumes)["volumes"] == [
        {"name": "a", "emptyDir": {}},
        {"name": "b", "secret": {"secretName": "s", "defaultMode": 420}},
    ]


def test_nulls_are_left_out(store: Store) -> None:
    assert "nodeSelector" not in spec_of(store, nodeSelector=None, affinity=None)


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
    ],
)
def test_a_pod_knows_its_class(store: Store, resources: JsonObject, expected: str) -> None:
    pod = store.create(POD, a_pod(containers=[{"name": "c", "image": "i", "resources": resources}]))

    assert pod["status"]["qosClass"] == expected


def test_a_gated_pod_says_what_it_waits_for(store: Store) -> None:
    pod = store.create(POD, a_pod(schedulingGates=[{"name": "wait"}]))

    assert pod["status"]["conditions"] == [
        {
            "type": "PodScheduled",
            "status": "False",
            "lastTransitionTime": NOW,
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }
    ]


def test_a_class_gives_a_pod_its_priority(store: Store) -> None:
    never = {"metadata": {"name": "low"}, "value": -5, "preemptionPolicy": "Never"}
    store.create(PRIORITY_CLASS, never)

    spec = spec_of(store, priorityClassName="low")

    assert (spec["priority"], spec["preemptionPolicy"]) == (-5, "Never")


def test_the_default_class_is_for_pods_that_name_none(store: Store) -> None:
    before = spec_of(store)
    store.create(PRIORITY_CLASS, {"metadata": {"name": "usual"}, "value": 7, "globalDefault": True})
    store.delete(POD, "web", namespace="default")

    after = spec_of(store)

    assert (before["priority"], after["priority"]) == (0, 7)
    assert after["priorityClassName"] == "usual"


def test_a_class_that_is_not_there_keeps_a_pod_out(store: Store) -> None:
    with pytest.raises(Forbidden) as error:
        spec_of(store, priorityClassName="high")

    assert error.value.message == (
        'pods "web" is forbidden: no PriorityClass with name high was found'
    )


def test_a_pod_cannot_set_its_own_priority(store: Store) -> None:
    with pytest.raises(
        Forbidden, match=r"the integer value of priority \(5\) must not be provided"
    ):
        spec_of(store, priority=5)


def test_an_account_that_is_not_there_keeps_a_pod_out(store: Store) -> None:
    with pytest.raises(Forbidden, match='serviceaccount "robot" not found'):
        spec_of(store, serviceAccountName="robot")


def test_less_than_no_time_to_stop_is_a_second(store: Store) -> None:
    assert spec_of(store, terminationGracePeriodSeconds=-5)["terminationGracePeriodSeconds"] == 1


def test_empty_lists_are_left_out(store: Store) -> None:
    assert "schedulingGates" not in spec_of(store, schedulingGates=[])
