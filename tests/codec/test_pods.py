import json
from datetime import UTC, datetime, timedelta

import pytest

from karpy.codec.fields import FieldInvalid
from karpy.codec.pods import EPOCH, PodReader
from karpy.model.constraints import (
    AffinityTerm,
    LabelSelector,
    NodeTerm,
    SpreadConstraint,
    Toleration,
    WeightedNodeTerm,
    WeightedTerm,
)
from karpy.model.labels import ARCH, HOSTNAME, ZONE
from karpy.model.pods import (
    ANY_ADDRESS,
    HostPort,
    Owner,
    Pod,
    PodDisruption,
    PodRules,
    PodVolume,
)
from karpy.model.requirements import Requirement, one_of
from tests.codec.plain import Json, Value, container, plain_pod, wants

UNSCHEDULABLE = {
    "phase": "Pending",
    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
}


def read(obj: Json) -> Pod:
    return PodReader().read(obj)


def fault(obj: Value) -> tuple[str, str]:
    with pytest.raises(FieldInvalid) as raised:
        PodReader().read(obj)
    return raised.value.path, raised.value.problem


def test_a_pod_is_read_whole() -> None:
    obj = plain_pod(
        "web-1",
        meta={
            "namespace": "shop",
            "uid": "u1",
            "labels": {"app": "web"},
            "creationTimestamp": "2026-01-02T03:04:05Z",
            "deletionTimestamp": "2026-01-03T00:00:00Z",
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": "web",
                    "uid": "u0",
                    "controller": True,
                }
            ],
        },
        containers=[container(requests={"cpu": "1"})],
        nodeName="n1",
        status={"phase": "Running", "nominatedNodeName": "n2"},
    )

    assert read(obj) == Pod(
        name="web-1",
        namespace="shop",
        uid="u1",
        created=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        labels={"app": "web"},
        requests={"cpu": 1000, "pods": 1},
        rules=PodRules(),
        node_name="n1",
        nominated_node="n2",
        phase="Running",
        is_unschedulable=False,
        is_deleting=True,
        deleted=datetime(2026, 1, 3, tzinfo=UTC),
        owners=(Owner("apps/v1", "ReplicaSet", "web", "u0", True),),
    )


def test_a_pod_is_read_with_the_fields_for_drain_and_disruption() -> None:
    obj = plain_pod(
        "db-0",
        meta={
            "namespace": "shop",
            "uid": "u1",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "annotations": {
                "karpenter.sh/do-not-disrupt": "4h",
                "karpenter.sh/disruption-cost": "7",
                "controller.kubernetes.io/pod-deletion-cost": "-3",
                "note": "x",
            },
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"}],
        },
        nodeName="n1",
        priority=100,
        priorityClassName="system-node-critical",
        terminationGracePeriodSeconds=120,
        tolerations=[{"operator": "Exists"}],
        volumes=[
            {"name": "data", "persistentVolumeClaim": {"claimName": "db"}},
            {"name": "tmp", "ephemeral": {}},
            {"name": "config", "configMap": {"name": "c"}},
        ],
        status={
            "phase": "Running",
            "startTime": "2026-01-01T12:00:00Z",
            "conditions": [{"type": "Ready", "status": "False"}],
        },
    )

    assert read(obj) == Pod(
        name="db-0",
        namespace="shop",
        uid="u1",
        created=datetime(2026, 1, 1, tzinfo=UTC),
        labels={},
        requests={"pods": 1},
        rules=PodRules(
            tolerations=(Toleration(operator="Exists"),),
            volumes=(PodVolume("data", "db"), PodVolume("tmp")),
        ),
        node_name="n1",
        phase="Running",
        owners=(Owner("apps/v1", "StatefulSet", "db"),),
        disruption=PodDisruption(
            do_not_disrupt="4h",
            disruption_cost="7",
            deletion_cost="-3",
            priority=100,
            priority_class="system-node-critical",
            grace=timedelta(minutes=2),
        ),
        started=datetime(2026, 1, 1, 12, tzinfo=UTC),
        is_unready=True,
    )


@pytest.mark.parametrize(
    ("spec", "grace"),
    [
        ({}, timedelta(seconds=30)),
        ({"terminationGracePeriodSeconds": 0}, timedelta()),
    ],
)
def test_no_grace_period_at_all_is_not_the_default_one(spec: Json, grace: timedelta) -> None:
    assert read(plain_pod(**spec)).disruption.grace == grace


def test_a_bare_pod_gets_defaults_and_counts_as_unschedulable() -> None:
    """It was written by hand: no kube-scheduler has set a condition yet."""
    assert read(plain_pod("web")) == Pod(
        name="web",
        namespace="default",
        uid="default/web",
        created=EPOCH,
        labels={},
        requests={"pods": 1},
        rules=PodRules(),
        is_unschedulable=True,
    )


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, True),
        (UNSCHEDULABLE, True),
        ({"phase": "Pending"}, False),
        ({"conditions": [{"type": "Ready", "reason": "Unschedulable"}]}, False),
        ({"conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}, False),
    ],
)
def test_the_condition_of_kube_scheduler_says_whether_a_pod_is_unschedulable(
    status: Json, *, expected: bool
) -> None:
    assert read(plain_pod(status=status)).is_unschedulable is expected


def test_a_gated_pod_is_not_unschedulable_though_written_by_hand() -> None:
    assert not read(plain_pod(schedulingGates=[{"name": "example.com/quota"}])).is_unschedulable


def test_a_benchmark_takes_every_pending_pod_for_unschedulable() -> None:
    reader = PodReader(is_pending_unschedulable=True)

    assert reader.read(plain_pod(status={"phase": "Pending"})).is_unschedulable
    assert not reader.read(plain_pod(nodeName="n", status={"phase": "Running"})).is_unschedulable


def test_a_pod_without_a_time_is_as_old_as_the_reader_says() -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)

    assert PodReader(created=noon).read(plain_pod()).created == noon


def test_all_rules_are_read() -> None:
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"a": "b"}}}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    weighted = {"weight": 5, "podAffinityTerm": term}
    node = {"matchExpressions": [wants(ZONE, "In", "z")]}
    obj = plain_pod(
        nodeSelector={"beta.kubernetes.io/arch": "arm64", "a": "b"},
        affinity={
            "nodeAffinity": {
                required: {"nodeSelectorTerms": [node]},
                preferred: [{"weight": 1, "preference": node}],
            },
            "podAffinity": {required: [term], preferred: [weighted]},
            "podAntiAffinity": {required: [term], preferred: [weighted]},
        },
        tolerations=[{"operator": "Exists"}],
        topologySpreadConstraints=[
            {"topologyKey": HOSTNAME, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
        ],
        volumes=[
            {"name": "token", "projected": {}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "c"}},
            {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}},
        ],
        resourceClaims=[{"name": "gpu"}],
        containers=[container(ports=[{"containerPort": 80, "hostPort": 8080}])],
    )
    near = AffinityTerm(ZONE, LabelSelector((Requirement("a", frozenset({"b"})),)))
    there = NodeTerm((one_of(ZONE, "z"),))

    assert read(obj).rules == PodRules(
        node_selector=(one_of("a", "b"), one_of(ARCH, "arm64")),
        required_node_terms=(there,),
        preferred_node_terms=(WeightedNodeTerm(1, there),),
        tolerations=(Toleration(operator="Exists"),),
        spreads=(SpreadConstraint(HOSTNAME, 1),),
        affinity=(near,),
        preferred_affinity=(WeightedTerm(5, near),),
        anti_affinity=(near,),
        preferred_anti_affinity=(WeightedTerm(5, near),),
        ports=(HostPort(8080),),
        volumes=(PodVolume("data", "c"), PodVolume("scratch")),
        claims_devices=True,
    )


def test_only_host_ports_of_containers_count() -> None:
    obj = plain_pod(
        containers=[
            container("a", ports=[{"containerPort": 80}]),
            container(
                "b", ports=[{"hostPort": 53, "protocol": "UDP", "hostIP": "::"}, {"hostPort": 53}]
            ),
        ],
        initContainers=[container("c", ports=[{"hostPort": 99}])],
    )

    assert read(obj).rules.ports == (
        HostPort(53, "UDP", "::"),
        HostPort(53, "TCP", ANY_ADDRESS),
    )


def test_on_the_host_network_every_port_is_a_host_port() -> None:
    obj = plain_pod(hostNetwork=True, containers=[container(ports=[{"containerPort": 80}])])

    assert read(obj).rules.ports == (HostPort(80),)


def copies(**spec: Value) -> tuple[Pod, Pod]:
    reader = PodReader()
    obj = plain_pod("a", meta={"labels": {"app": "a"}}, **spec)
    other = json.loads(json.dumps(obj))
    other["metadata"]["name"] = "b"
    return reader.read(obj), reader.read(other)


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"nodeName": "n"},
        {"nodeSelector": {"a": "b"}, "tolerations": [{"operator": "Exists"}]},
        {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]},
        {"containers": [container(requests={"cpu": "1"}, ports=[{"hostPort": 1}])]},
        {"containers": [container("a"), container("b", requests={"cpu": "1"})]},
        {"initContainers": [container(requests={"cpu": "1"})]},
        {"overhead": {"cpu": "1"}},
        {"resources": {"requests": {"cpu": "1"}}},
    ],
)
def test_pods_of_one_workload_share_their_common_parts(spec: Json) -> None:
    first, second = copies(**spec)

    assert (first.name, second.name) == ("a", "b")
    assert first.rules is second.rules
    assert first.labels is second.labels
    assert first.requests is second.requests


def test_a_volume_with_a_random_name_that_does_not_count_is_no_difference() -> None:
    reader = PodReader()
    first, second = (
        reader.read(plain_pod(volumes=[{"name": f"kube-api-access-{end}", "projected": {}}]))
        for end in ("x7f2k", "9qz4m")
    )

    assert first.rules is second.rules


def test_equal_rules_in_different_words_are_one_object() -> None:
    reader = PodReader()
    first = reader.read(plain_pod(containers=[container(requests={"cpu": "1000m"})]))
    second = reader.read(
        plain_pod(containers=[container(requests={"cpu": "1"})], nodeSelector={}, tolerations=[])
    )

    assert first.requests is second.requests
    assert first.rules is second.rules


def test_different_pods_are_distinguished() -> None:
    reader = PodReader()
    first = reader.read(plain_pod(containers=[container(requests={"cpu": "1"})]))
    second = reader.read(plain_pod(containers=[container(limits={"cpu": "2"})]))
    third = reader.read(plain_pod(overhead={"cpu": "1"}))
    resized = reader.read(
        plain_pod(
            containers=[container(requests={"cpu": "1"})],
            status={
                "containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": "3"}}}]
            },
        )
    )

    assert [each.requests.get("cpu") for each in (first, second, third, resized)] == [
        1000,
        2000,
        1000,
        3000,
    ]


def test_the_youngest_pod_is_known() -> None:
    reader = PodReader()
    reader.read(plain_pod(meta={"creationTimestamp": "2026-01-01T00:00:00Z"}))
    reader.read(plain_pod(meta={"creationTimestamp": "2025-01-01T00:00:00Z"}))

    assert reader.latest == datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        ([], ("", "is a list, not an object")),
        ({}, ("metadata.name", "is missing")),
        ({"metadata": {"name": "a"}}, ("spec.containers", "is missing")),
        ({"metadata": [], "spec": {}}, ("metadata", "is a list, not an object")),
        (plain_pod(containers=[]), ("spec.containers", "is empty")),
        (plain_pod(containers={}), ("spec.containers", "is an object, not a list")),
        (plain_pod(containers=[5]), ("spec.containers[0]", "is `5`, not an object")),
        (plain_pod(affinity=5), ("spec.affinity", "is `5`, not an object")),
        (plain_pod(volumes=["x"]), ("spec.volumes[0]", "is the text `x`, not an object")),
        (plain_pod(nodeSelector={"a": 1}), ("spec.nodeSelector[a]", "is `1`, not text")),
        (
            plain_pod(nodeSelector={"a": "b c"}),
            ("spec.nodeSelector[a]", "is `b c`, which is no label value"),
        ),
        (
            plain_pod(volumes=[{"name": "v", "persistentVolumeClaim": {}}]),
            ("spec.volumes[0].persistentVolumeClaim.claimName", "is missing"),
        ),
        (
            plain_pod(containers=[container(requests={"cpu": "x"})]),
            ("spec.containers[0].resources.requests.cpu", "is `x`, not a quantity"),
        ),
        (
            plain_pod(containers=[container(ports=[{"hostPort": 70000}])]),
            ("spec.containers[0].ports[0].hostPort", "is 70000"),
        ),
        (
            plain_pod(containers=[container(ports=[{"hostPort": 1, "hostIP": "x"}])]),
            ("spec.containers[0].ports[0].hostIP", "is `x`, which is no address"),
        ),
        (
            plain_pod(containers=[container(ports=[{"hostPort": 1, "protocol": "ICMP"}])]),
            ("spec.containers[0].ports[0].protocol", "is `ICMP`"),
        ),
        (plain_pod(meta={"labels": {"a": 1}}), ("metadata.labels[a]", "is `1`, not text")),
        (
            plain_pod(meta={"creationTimestamp": "noon"}),
            ("metadata.creationTimestamp", "is `noon`, not a time"),
        ),
        (
            plain_pod(meta={"creationTimestamp": {}}),
            ("metadata.creationTimestamp", "is an object, not text"),
        ),
        (
            plain_pod(meta={"ownerReferences": [{}]}),
            ("metadata.ownerReferences[0].kind", "is missing"),
        ),
        (
            plain_pod(status={"conditions": ["x"]}),
            ("status.conditions[0]", "is the text `x`, not an object"),
        ),
    ],
)
def test_a_fault_of_a_pod_is_reported_with_its_path(obj: Value, expected: tuple[str, str]) -> None:
    assert fault(obj) == expected


def test_an_unprintable_value_is_still_an_input_error() -> None:
    path, problem = fault(plain_pod(affinity={"x": object()}))

    assert (path, problem[:15]) == ("", "cannot be read:")
