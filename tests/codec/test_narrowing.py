"""Requirements on labels that nothing has: each has a finding with its path and a hint."""

import pytest
from msgspec.structs import replace

from karpy.adapters.clouds.aws.builtin import builtin_region
from karpy.codec.catalogs import kwok_catalog
from karpy.codec.findings import Finding
from karpy.codec.narrowing import Supply, find_narrowing
from karpy.core.aws.catalog import CatalogMaker
from karpy.model.ec2 import InstanceSettings
from karpy.model.instances import Catalog
from tests.codec.plain import Json, Value, plain_pod, plain_pool, workload
from tests.codec.reading import obj, read

KWOK = Supply("kwok", kwok_catalog())
CATEGORY = "karpenter.k8s.aws/instance-category"
FIRST = "spec.template.spec.requirements[0]"


def ec2_catalog() -> Catalog:
    return CatalogMaker().make(builtin_region("eu-west-1"), {}, usual=InstanceSettings())


def find(*objects: Value, supply: Supply = KWOK) -> list[Finding]:
    reading = read(*objects)
    snapshot = replace(reading.snapshot, catalog=supply.catalog)
    return find_narrowing(snapshot, supply, reading.origins)


def findings_of(*objects: Value) -> list[tuple[str, str, str, str]]:
    return [(each.severity.value, each.code, each.object, each.path) for each in find(*objects)]


def asking(key: str, operator: str = "In", *values: str) -> Json:
    """Make a NodePool with one requirement."""
    return plain_pool("p", {"key": key, "operator": operator, "values": list(values)})


@pytest.mark.parametrize(
    "key",
    [
        CATEGORY,
        "eks.amazonaws.com/instance-family",
        "karpenter.azure.com/sku-family",
        "kubernetes.azure.com/sku-cpu",
        "topology.k8s.aws/zone-id",
    ],
)
def test_a_label_of_a_provider_whose_catalog_is_not_loaded_is_an_error(key: str) -> None:
    assert findings_of(asking(key, "In", "g")) == [("error", "KP1021", "NodePool p", FIRST)]


def test_a_label_of_managed_node_groups_is_no_label_of_a_catalog() -> None:
    found = findings_of(asking("eks.amazonaws.com/nodegroup", "In", "systems"))

    assert found == [("note", "OWN_LABEL", "NodePool p", FIRST)]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("node.kubernetes.io/instance-type", "m5.large"),
        ("topology.kubernetes.io/zone", "us-east-1a"),
    ],
)
def test_types_and_zones_that_the_catalog_does_not_have_are_an_error(key: str, value: str) -> None:
    assert findings_of(asking(key, "In", value)) == [("error", "KP1021", "NodePool p", FIRST)]


def test_some_unknown_values_among_known_ones_are_noted() -> None:
    pool = asking("topology.kubernetes.io/zone", "In", "test-zone-a", "us-east-1a")

    assert findings_of(pool) == [("note", "VALUE_UNKNOWN", "NodePool p", FIRST)]


@pytest.mark.parametrize(
    ("key", "operator", "values", "hint"),
    [
        ("instance-catgory", "In", ["c"], f"write `{CATEGORY}` if that is meant"),
        ("arch", "In", ["arm64"], "write `kubernetes.io/arch` if that is meant"),
        (
            "topology.kubernetes.io/zones",
            "In",
            ["test-zone-a"],
            "write `topology.kubernetes.io/zone` if that is meant",
        ),
        ("example.com/gpu", "Exists", [], "name the values that nodes shall have, or remove it"),
        ("kubernetes.io/arch", "In", ["x86_64"], "write `amd64`"),
        ("kubernetes.io/os", "In", ["plan9"], "use one of: `linux`, `windows`"),
    ],
)
def test_a_label_that_nothing_has_is_a_warning_with_a_hint(
    key: str, operator: str, values: list[str], hint: str
) -> None:
    (found,) = find(asking(key, operator, *values))

    assert (found.severity.value, found.code, found.hint) == ("warning", "KP1022", hint)


def test_a_misspelt_label_of_a_provider_is_corrected() -> None:
    # The definition of NodePools has no such label, so that only pods may name one.
    (found,) = find(plain_pod("a", nodeSelector={"karpenter.k8s.aws/instance-catgory": "c"}))

    assert found.hint.startswith(f"write `{CATEGORY}` if that is meant, and name a catalog")


def test_a_label_that_a_pool_gives_its_nodes_is_noted() -> None:
    pod = plain_pod("a", nodeSelector={"capacity-spread": "1"})

    assert findings_of(asking("capacity-spread", "In", "1", "2"), pod) == [
        ("note", "OWN_LABEL", "NodePool p", FIRST)
    ]


def test_pods_are_checked_once_for_each_workload() -> None:
    wanted = {"nodeSelector": {CATEGORY: "g"}}

    assert findings_of(
        workload("Deployment", "web", replicas=3, pod=wanted), plain_pod("a", **wanted)
    ) == [
        ("error", "KP1021", "Pod a", f"spec.nodeSelector[{CATEGORY}]"),
        ("error", "KP1021", "Deployment web", f"spec.template.spec.nodeSelector[{CATEGORY}]"),
    ]


def test_a_pod_may_require_labels_of_existing_nodes() -> None:
    node = obj("Node", "n", meta={"labels": {"topology.kubernetes.io/zone": "z", "tier": "a"}})
    pod = plain_pod("a", nodeSelector={"topology.kubernetes.io/zone": "z", "tier": "a"})

    assert findings_of(node, pod) == []


def test_a_pod_that_requires_a_label_nothing_has_is_a_warning() -> None:
    assert findings_of(plain_pool("p"), plain_pod("a", nodeSelector={"tier": "a"})) == [
        ("warning", "KP1022", "Pod a", "spec.nodeSelector[tier]")
    ]


def test_running_pods_and_negative_requirements_have_no_findings() -> None:
    away = {"key": "eks.amazonaws.com/compute-type", "operator": "NotIn", "values": ["fargate"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [away]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}

    assert (
        findings_of(
            plain_pod("runs", nodeName="n", nodeSelector={CATEGORY: "g"}),
            plain_pod("waits", affinity=affinity),
            workload("DaemonSet", "log", pod={"affinity": affinity}),
        )
        == []
    )


def test_an_overlay_is_checked_against_catalog_and_pools() -> None:
    requirements = [
        {"key": "karpenter.sh/nodepool", "operator": "In", "values": ["genral"]},
        {"key": "karpenter.k8s.aws/instance-generation", "operator": "In", "values": ["5"]},
    ]
    overlay = obj("NodeOverlay", "o", spec={"requirements": requirements, "price": "1"})

    found = find(plain_pool("general"), overlay)

    assert [(each.code, each.path, each.hint[:9]) for each in found] == [
        ("KP1022", "spec.requirements[0]", "write `ge"),
        ("KP1021", "spec.requirements[1]", "name a ca"),
    ]


@pytest.mark.parametrize(
    ("group", "kind"),
    [("karpenter.k8s.aws", "EC2NodeClass"), ("karpenter.lambda.cloud", "LambdaNodeClass")],
)
def test_pools_of_another_cloud_are_errors_unless_a_catalog_was_chosen(
    group: str, kind: str
) -> None:
    ref = {"group": group, "kind": kind, "name": "d"}
    pool = plain_pool("p", template={"spec": {"nodeClassRef": ref, "requirements": []}})

    (found,) = find(pool, supply=Supply("kwok", kwok_catalog(), is_asked_for=False))

    assert (found.severity.value, found.path) == ("error", "spec.template.spec.nodeClassRef")
    assert find(pool) == []


def test_labels_of_ec2_are_known_to_its_catalog() -> None:
    # Types of EC2 say which of the labels they lack, too.
    supply = Supply("ec2:eu-west-1", ec2_catalog())
    pool = plain_pool(
        "p",
        {"key": CATEGORY, "operator": "In", "values": ["g", "zz"]},
        {"key": "karpenter.k8s.aws/instance-gpu-count", "operator": "Exists"},
        {"key": "karpenter.k8s.aws/instance-cpu", "operator": "Gt", "values": ["4"]},
        {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["m99"]},
        {"key": "karpenter.k8s.aws/capacity-reservation-id", "operator": "In", "values": ["cr-1"]},
    )

    found = find(pool, supply=supply)

    assert [(each.severity.value, each.code, each.path[-3:]) for each in found] == [
        ("warning", "KP1022", "[3]"),
        ("error", "KP1021", "[4]"),
    ]
    assert "asks for nodes with `karpenter.k8s.aws/capacity-reservation-id`" in found[1].message


def test_a_label_of_ec2_names_the_catalog_that_has_it() -> None:
    (found,) = find(asking(CATEGORY, "In", "g"))

    assert found.hint == "name a catalog that has them: `--catalog ec2:REGION`"
