"""Kinds that no decision reads: those without effect are counted, all others are named."""

import pytest

from karpy.codec.findings import is_partial
from tests.codec.plain import Json, Value, container, plain_pool, workload
from tests.codec.reading import obj, read


def other(api_version: str, kind: str, name: str = "a", **fields: Value) -> Json:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


TEMPLATE = {"spec": {"containers": [container()]}}


@pytest.mark.parametrize(
    ("obj", "paths"),
    [
        (
            other("batch/v1", "CronJob", spec={"jobTemplate": {"spec": {"template": TEMPLATE}}}),
            "its pod template (`spec.jobTemplate.spec.template`)",
        ),
        (
            other("argoproj.io/v1alpha1", "Rollout", spec={"template": TEMPLATE}),
            "its pod template (`spec.template`)",
        ),
        (
            other(
                "ray.io/v1",
                "RayCluster",
                spec={
                    "headGroupSpec": {"template": TEMPLATE},
                    "workerGroupSpecs": [{"template": TEMPLATE}],
                },
            ),
            "its 2 pod templates (`spec.headGroupSpec.template`, `spec.workerGroupSpecs",
        ),
    ],
)
def test_pod_templates_of_other_kinds_are_named_and_counted(obj: Json, paths: str) -> None:
    (found,) = read(obj).findings

    assert (found.severity.value, found.code, found.is_left_out) == ("warning", "KP1023", True)
    assert paths in found.message


def test_creators_of_pods_and_unknown_kinds_are_named() -> None:
    reading = read(
        other("sparkoperator.k8s.io/v1beta2", "SparkApplication", "pi"),
        other("example.com/v1", "Widget", "w1"),
        other("example.com/v1", "Widget", "w2"),
    )

    spark, widgets = reading.findings
    assert spark.object == "SparkApplication pi"
    assert spark.message.endswith("it would make pods that the answer knows nothing of")
    assert widgets.message.startswith("Widget of example.com (2: w1, w2) is not read")
    assert is_partial([spark])
    assert is_partial([widgets])


def test_kinds_without_an_effect_on_scheduling_are_one_note() -> None:
    reading = read(
        other("rbac.authorization.k8s.io/v1", "RoleBinding"),
        other("networking.k8s.io/v1", "Ingress"),
        other("autoscaling/v2", "HorizontalPodAutoscaler"),
        obj("Secret", "a"),
        obj("Secret", "b"),
    )

    assert [(each.severity.value, each.code) for each in reading.findings] == [
        ("note", "SCALER"),
        ("note", "LEFT_ASIDE"),
    ]
    assert reading.findings[1].message.endswith(": 1 Ingress, 1 RoleBinding, 2 Secret")
    assert not is_partial(reading.findings)


def test_a_node_class_says_which_of_its_fields_matter() -> None:
    spec = {
        "role": "r",
        "tags": {},
        "kubelet": {"maxPods": 20},
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": [{"id": "subnet-1"}],
        "securityGroupSelectorTerms": [{"id": "sg-1"}],
    }

    (found,) = read(other("karpenter.k8s.aws/v1", "EC2NodeClass", spec=spec)).findings

    assert found.is_left_out
    assert "`spec.subnetSelectorTerms`" in found.message
    assert "`spec.kubelet.maxPods`" in found.message
    assert "role" not in found.message


def test_a_node_class_without_such_fields_is_a_note() -> None:
    (found,) = read(other("eks.amazonaws.com/v1", "NodeClass", spec={"role": "r"})).findings

    assert (found.severity.value, found.code) == ("note", "CLASS_NOT_READ")


def test_workloads_without_replicas_are_mentioned() -> None:
    (found,) = read(workload("Deployment", "web", replicas=0)).findings

    assert (found.code, found.is_left_out) == ("NO_REPLICAS", False)
    assert "Deployment default/web" in found.message


def test_static_pools_are_mentioned() -> None:
    (found,) = read(plain_pool("p", replicas=3)).findings

    assert (found.code, found.object, found.path) == ("STATIC_POOL", "NodePool p", "spec.replicas")


def test_claims_take_a_usual_class_where_none_is_given() -> None:
    template = {"metadata": {"name": "data"}, "spec": {}}

    reading = read(workload("StatefulSet", "db", replicas=1, volumeClaimTemplates=[template]))

    assert [each.code for each in reading.findings] == ["USUAL_STORAGE_CLASS"]
    assert [each.storage_class for each in reading.snapshot.storage.claims.values()] == ["default"]
    assert list(reading.snapshot.storage.classes) == ["default"]


def test_a_refused_node_class_is_kept_for_its_nodes_and_reported_once() -> None:
    spec = {
        "role": "${ROLE}",
        "kubelet": {"maxPods": 20},
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": [{"id": "subnet-1"}],
        "securityGroupSelectorTerms": [{"id": "sg-1"}],
    }

    reading = read(other("karpenter.k8s.aws/v1", "EC2NodeClass", spec=spec))

    (kept,) = reading.node_classes
    assert (kept.name, kept.is_refused) == ("a", True)
    assert kept.value["spec"]["kubelet"] == {"maxPods": 20}
    assert [each.path for each in reading.findings] == ["spec.role"]


def test_a_node_class_that_the_catalog_reads_has_no_finding() -> None:
    reading = read(other("eks.amazonaws.com/v1", "NodeClass", spec={"role": "r"}))

    assert reading.findings_beside({("eks.amazonaws.com", "NodeClass")}) == ()
