import json

import pytest

from karpy.codec.catalogs import kwok_catalog
from karpy.codec.findings import is_partial
from karpy.codec.manifests import Reading, read_manifests
from karpy.model.labels import CAPACITY_TYPE
from karpy.model.pods import (
    DisruptionBudget,
    Service,
)
from karpy.model.pools import NodeOverlay
from karpy.model.requirements import Requirement
from karpy.model.settings import MinValuesPolicy, Settings
from karpy.model.snapshot import Snapshot
from karpy.model.storage import PersistentVolume, PersistentVolumeClaim, Storage, StorageClass
from tests.codec.plain import Json, Value, container, plain_pod, plain_pool, wants, workload
from tests.codec.reading import NOON, names, notes_of, obj, problem, read, read_texts


def test_an_empty_input_is_an_empty_snapshot() -> None:
    settings = Settings(min_values_policy=MinValuesPolicy.BEST_EFFORT)

    reading = read_manifests([], kwok_catalog(), settings, NOON)

    assert reading == Reading(Snapshot(now=NOON, catalog=kwok_catalog(), settings=settings))


@pytest.mark.parametrize(
    "text",
    [
        "kind: Pod\napiVersion: v1\nmetadata: {name: a}\nspec: {containers: [{name: c}]}\n",
        json.dumps(plain_pod("a")),
        json.dumps([plain_pod("a")]),
        json.dumps({"kind": "List", "apiVersion": "v1", "items": [plain_pod("a")]}),
        json.dumps(
            {
                "kind": "PodList",
                "apiVersion": "v1",
                "items": [{"metadata": {"name": "a"}, "spec": {"containers": [container()]}}],
            }
        ),
    ],
)
def test_a_pod_is_found_however_it_is_wrapped(text: str) -> None:
    reading = read_texts(text)

    assert [pod.key for pod in reading.snapshot.pods] == ["default/a"]
    assert (reading.problems, reading.notes) == ((), ())


def test_objects_of_every_kind_are_in_the_snapshot() -> None:
    selector = {"matchLabels": {"a": "b"}}
    wanted = (Requirement("a", frozenset({"b"})),)
    snapshot = read(
        obj("Namespace", "shop", meta={"labels": {"team": "x"}}),
        obj("Service", "s", spec={"selector": {"a": "b"}}),
        obj("PodDisruptionBudget", "b", spec={"selector": selector, "maxUnavailable": 1}),
        obj("PersistentVolumeClaim", "c", spec={}),
        obj("PersistentVolume", "pv", spec={"csi": {"driver": "d"}}),
        obj(
            "StorageClass",
            "sc",
            meta={"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
            provisioner="kubernetes.io/aws-ebs",
        ),
        obj("NodeOverlay", "o", spec={"requirements": [], "priceAdjustment": "-10%"}),
        workload("DaemonSet", "log"),
        plain_pool("default"),
    ).snapshot

    assert snapshot.namespaces == {
        "shop": {"kubernetes.io/metadata.name": "shop", "team": "x"},
    }
    assert snapshot.services == (Service("s", "default", {"a": "b"}),)
    assert snapshot.budgets == (DisruptionBudget("b", "default", wanted, None, "1"),)
    assert snapshot.storage == Storage(
        claims={"default/c": PersistentVolumeClaim("c", "default", storage_class="sc")},
        volumes={"pv": PersistentVolume("pv", "d")},
        classes={"sc": StorageClass("sc", "ebs.csi.aws.com", is_default=True)},
    )
    assert snapshot.overlays == (NodeOverlay("o", price_adjustment="-10%"),)
    assert [each.name for each in snapshot.daemons] == ["log"]
    assert [each.name for each in snapshot.pools] == ["default"]
    assert snapshot.pods == ()


def test_pods_to_be_named_by_the_api_server_get_names() -> None:
    pods = [{**plain_pod(), "metadata": {"generateName": "run-"}} for _ in range(2)]

    assert names(*pods) == ["run-1", "run-2"]


def test_of_two_objects_with_one_name_the_last_one_counts() -> None:
    reading = read(
        plain_pod("a"),
        plain_pod("a", nodeName="n", meta={"namespace": "default"}),
        obj("Node", "n"),
    )

    assert [pod.node_name for pod in reading.snapshot.pods] == ["n"]
    assert notes_of(reading) == [
        "note REPEATED: Pod default/a: is there 2 times; the last one counts"
    ]


def test_objects_without_an_effect_on_scheduling_are_noted() -> None:
    reading = read(
        obj("ConfigMap", "a"),
    )

    assert reading.snapshot == Snapshot(now=NOON, catalog=kwok_catalog())
    assert notes_of(reading) == [
        "note LEFT_ASIDE: left aside, since scheduling does not depend on them: 1 ConfigMap"
    ]


def test_a_misspelt_field_is_noted() -> None:
    reading = read(
        plain_pod("a", nodeSelectors={}),
        workload("Job", "j", pod={"colour": []}),
    )

    assert [(each.code, each.object, each.path) for each in reading.notes] == [
        ("KP1023", "Pod a", "spec.nodeSelectors"),
        ("KP1023", "Job j", "spec.template.spec.colour"),
    ]
    assert is_partial(reading.findings)


def test_pods_on_nodes_that_are_not_given_are_noted() -> None:
    pods = [plain_pod(f"p{number}", nodeName=f"n{number}") for number in range(5)]

    assert notes_of(read(*pods)) == [
        "note NODES_NOT_GIVEN: pods are bound to nodes that are not given: n0, n1, n2 and 2 more"
    ]


def bad_pod(**spec: Value) -> Json:
    return plain_pod("bad", meta={"namespace": "shop"}, **spec)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("just text", ": is the text `just text`, not an object"),
        ({}, ": `kind` is missing"),
        ({"kind": "Pod"}, ": `apiVersion` is missing"),
        ({"kind": 5, "apiVersion": "v1"}, ": `kind` is `5`, not text"),
        ({"kind": "List", "items": {}}, ": `items` is an object, not a list"),
        (
            {"kind": "Pod", "apiVersion": "v1"},
            ", Pod without a name: `metadata.name` is missing",
        ),
        (bad_pod(containers=[]), ", Pod shop/bad: `spec.containers` is empty"),
        (bad_pod(nodeName=5), ", Pod shop/bad: `spec.nodeName` is `5`, not text"),
        (
            bad_pod(overhead={"cpu": "-1"}),
            ", Pod shop/bad: `spec.overhead.cpu` is `-1`, less than nothing",
        ),
        (
            plain_pod("bad", meta={"labels": {"a": "b c"}}),
            ", Pod bad: `metadata.labels[a]` is `b c`, which is no label value",
        ),
        (
            workload("Deployment", pod={"tolerations": [{"operator": "Maybe"}]}),
            ", Deployment web: `spec.template.spec.tolerations[0].operator` is `Maybe`",
        ),
        (
            workload("DaemonSet", pod={"containers": [5]}),
            ", DaemonSet web: `spec.template.spec.containers[0]` is `5`, not an object",
        ),
        (
            plain_pool("p", wants("a", "In")),
            ", NodePool p: `spec.template.spec.requirements[0].values` is empty",
        ),
        (obj("Node", "", spec={}), ", Node without a name: `metadata.name` is missing"),
        (obj("CSINode", "", spec={}), ", CSINode without a name: `metadata.name` is missing"),
        (
            obj("Service", "s", spec={"selector": []}),
            ", Service s: `spec.selector` is a list, not an object",
        ),
        (
            obj("NodeOverlay", "o", spec={"requirements": [wants("a", "NotIn")]}),
            ", NodeOverlay o: `spec.requirements[0].values` is empty",
        ),
    ],
)
def test_a_fault_is_named_once_and_all_other_objects_are_read(value: Value, expected: str) -> None:
    reading = read(plain_pod("before"), value, plain_pod("after"))

    assert [each.message for each in reading.problems] == [f"`0.yaml` document 2{expected}"]
    assert [pod.name for pod in reading.snapshot.pods] == ["before", "after"]
    assert (reading.snapshot.pools, reading.snapshot.nodes, reading.snapshot.daemons) == (
        (),
        (),
        (),
    )


def test_a_bad_item_of_a_list_is_named_by_its_place() -> None:
    items = [plain_pod("before"), 5, bad_pod(affinity=[]), plain_pod("after")]
    reading = read({"kind": "List", "apiVersion": "v1", "items": items})

    assert [each.message for each in reading.problems] == [
        "`0.yaml` document 1: `items[1]` is `5`, not an object",
        "`0.yaml` document 1, Pod shop/bad: `items[2].spec.affinity` is a list, not an object",
    ]
    assert [pod.name for pod in reading.snapshot.pods] == ["before", "after"]


def test_a_file_that_cannot_be_parsed_does_not_prevent_reading_the_others() -> None:
    reading = read_texts("a: [", json.dumps(plain_pod("a")))

    assert [each.where for each in reading.problems] == ["`0.yaml` document 1"]
    assert [pod.name for pod in reading.snapshot.pods] == ["a"]


def test_a_pool_that_karpenter_would_not_call_ready_is_kept_and_named() -> None:
    reading = read(plain_pool("typo", wants(CAPACITY_TYPE, "In", "sopt")), plain_pool("fine"))

    assert [(pool.name, pool.is_ready) for pool in reading.snapshot.pools] == [
        ("typo", False),
        ("fine", True),
    ]
    assert [(each.path, each.hint) for each in reading.problems] == [
        (
            "spec.template.spec.requirements[0].values",
            "use one of: on-demand, reserved, spot",
        )
    ]


def test_a_selector_of_a_spread_with_bad_syntax_is_named() -> None:
    spread = {
        "topologyKey": "zone",
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app name": "web"}},
    }

    assert problem(bad_pod(topologySpreadConstraints=[spread])) == (
        "`0.yaml` document 1, Pod shop/bad:"
        " `spec.topologySpreadConstraints[0].labelSelector.matchLabels[app name]` is no label key"
    )


PROVISIONER = """\
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: batch}
spec:
  providerRef: {name: default}
  limits: {resources: {cpu: 10}}
"""


def test_an_old_pool_is_converted_and_planned_with_the_notes_of_the_conversion() -> None:
    reading = read_texts(PROVISIONER)

    (pool,) = reading.snapshot.pools
    assert (pool.name, pool.limits) == ("batch", {"cpu": 10_000})
    assert {each.key for each in pool.requirements} == {
        "karpenter.sh/capacity-type",
        "kubernetes.io/arch",
        "kubernetes.io/os",
        "karpenter.k8s.aws/instance-category",
        "karpenter.k8s.aws/instance-generation",
    }
    assert (
        "note CONVERTED: `0.yaml` document 1, Provisioner batch: `spec.limits.resources` "
        "is renamed: it is `spec.limits` today"
    ) in notes_of(reading)
    assert reading.problems == ()


def test_the_global_settings_of_the_old_version_count_for_its_node_classes() -> None:
    template = """\
apiVersion: karpenter.k8s.aws/v1alpha1
kind: AWSNodeTemplate
metadata: {name: batch}
spec: {subnetSelector: {a: b}, securityGroupSelector: {a: b}}
"""
    settings = """\
---
apiVersion: v1
kind: ConfigMap
metadata: {name: karpenter-global-settings}
data: {aws.defaultInstanceProfile: Usual}
"""

    (alone,) = read_texts(template).node_classes
    (both,) = read_texts(template + settings).node_classes

    assert "instanceProfile" not in alone.value["spec"]
    assert both.value["spec"]["instanceProfile"] == "Usual"


def test_a_pool_whose_provider_is_not_filled_in_is_planned_all_the_same() -> None:
    provider = "provider: {subnetSelector: {a: '${X}'}, securityGroupSelector: {a: b}}"
    reading = read_texts(PROVISIONER.replace("providerRef: {name: default}", provider))

    assert [each.name for each in reading.snapshot.pools] == ["batch"]
    assert [each.path for each in reading.problems] == ["spec.subnetSelectorTerms[0].tags.a"]


def test_a_workload_that_names_the_label_of_old_pools_gets_that_of_today() -> None:
    reading = read(plain_pod("a", nodeSelector={"karpenter.sh/provisioner-name": "batch"}))

    (pod,) = reading.snapshot.pods
    assert [term.key for term in pod.rules.node_selector] == ["karpenter.sh/nodepool"]
    assert notes_of(reading) == [
        (
            "note CONVERTED: `0.yaml` document 1, Pod a: "
            "`spec.nodeSelector[karpenter.sh/provisioner-name]` is renamed: "
            "it is `karpenter.sh/nodepool` today"
        )
    ]


def test_a_node_class_is_validated_by_its_definition() -> None:
    node_class = {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": "a"},
        "spec": {"role": "r", "instanceProfile": "p"},
    }

    assert [each.path for each in read(node_class).problems] == [
        "spec.amiSelectorTerms",
        "spec.securityGroupSelectorTerms",
        "spec.subnetSelectorTerms",
        "spec",
    ]


def test_a_workload_that_is_not_filled_in_is_refused() -> None:
    reading = read(plain_pod("a", nodeSelector={"pool": "${POOL}"}))

    assert (reading.snapshot.pods, [each.hint for each in reading.problems]) == (
        (),
        ["fill in `${POOL}` first, for example with `envsubst` or `helm template`"],
    )


def test_the_variables_of_a_container_are_no_placeholders() -> None:
    pod = plain_pod("a", containers=[container(args=["$(HOME)", "${HOME}"])])

    assert read(pod).problems == ()
