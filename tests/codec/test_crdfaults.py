"""Custom kinds, validated by their definitions: all faults, each with its path and a hint."""

import copy
import time
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karpy.codec.crdfaults import custom_faults, validator_of
from karpy.codec.crdhints import PATTERN_HINTS, rule_hint
from karpy.codec.fields import JsonObject
from karpy.codec.schemas.definitions import CUSTOM_KINDS, CustomKind
from karpy.model.labels import WELL_KNOWN
from tests.codec.plain import Json, Value, plain_pool, wants
from tests.codec.reading import obj, read
from tests.codec.test_robustness import RICH_POOL, changed, odd_values, places

NODE_CLASS: Final[Json] = {
    "apiVersion": "karpenter.k8s.aws/v1",
    "kind": "EC2NodeClass",
    "metadata": {"name": "default"},
    "spec": {
        "role": "nodes",
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": [{"tags": {"a": "b"}}],
        "securityGroupSelectorTerms": [{"tags": {"a": "b"}}],
    },
}
UNDERUTILIZED: Final = "WhenEmptyOrUnderutilized"
FAMILIES: Final = "'al2', 'al2023', 'bottlerocket', 'windows2019', 'windows2022', 'windows2025'"
INNER: Final = "spec.template.spec"
UBUNTU_HINT: Final = (
    "name the images by `name` and `owner` in `amiSelectorTerms`, and write `amiFamily: AL2`, "
    "which starts them alike"
)


def faults_of(value: Json) -> list[tuple[str, str, str]]:
    """Return path, problem and hint of each fault."""
    return [(each.path, each.problem, each.hint) for each in custom_faults(value, WELL_KNOWN)]


def pool_with(path: str, value: Value) -> Json:
    """Build a NodePool with one field set, by its path."""
    made: Any = copy.deepcopy(plain_pool("p"))
    *above, last = path.split(".")
    target = made
    for key in above:
        target = target.setdefault(key, {})
    target[last] = value
    return dict(made)


def class_with(**fields: Value) -> Json:
    return {**NODE_CLASS, "spec": {**NODE_CLASS["spec"], **fields}}


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("karpenter.k8s.aws/instance-catgory", "karpenter.k8s.aws/instance-category"),
        ("karpenter.k8s.aws/instance-type", "node.kubernetes.io/instance-type"),
        ("karpenter.k8s.aws/capacity-type", "karpenter.sh/capacity-type"),
        ("karpenter.sh/instance-family", "karpenter.k8s.aws/instance-family"),
    ],
)
def test_a_restricted_label_has_the_one_that_is_meant_as_its_hint(key: str, meant: str) -> None:
    (fault,) = faults_of(pool_with(f"{INNER}.requirements", [wants(key, "In", "c")]))

    assert (fault[0], fault[2]) == (f"{INNER}.requirements[0].key", f"write `{meant}`")


@pytest.mark.parametrize(
    ("fields", "path", "hint"),
    [
        (
            {"blockDeviceMappings": [{"deviceName": "a", "ebs": {"volumeSize": 100}}]},
            "spec.blockDeviceMappings[0].ebs.volumeSize",
            "write a size such as `100Gi`",
        ),
        (
            {"kubelet": {"evictionHard": {"memory.available": 5}}},
            "spec.kubelet.evictionHard[memory.available]",
            "write a share such as `5%` or a quantity such as `100Mi`",
        ),
        (
            {"amiFamily": "Ubuntu", "amiSelectorTerms": [{"id": "ami-0a1"}]},
            "spec.amiFamily",
            UBUNTU_HINT,
        ),
    ],
)
def test_a_field_of_an_older_version_has_a_hint(fields: Json, path: str, hint: str) -> None:
    assert [(each[0], each[2]) for each in faults_of(class_with(**fields))] == [(path, hint)]


@pytest.mark.parametrize("key", ["role", "instanceProfile"])
def test_a_role_is_a_name(key: str) -> None:
    """IAM takes no ARN for a name, and the machines would never come."""
    without = {name: each for name, each in NODE_CLASS["spec"].items() if name != "role"}
    node_class = {**NODE_CLASS, "spec": {**without, key: "arn:aws:iam::123456789012:x/path/nodes"}}

    assert faults_of(node_class) == [
        (
            f"spec.{key}",
            "is the ARN `arn:aws:iam::123456789012:x/path/nodes`, not a name",
            "write `nodes`",
        )
    ]


@pytest.mark.parametrize("value", [plain_pool("p"), RICH_POOL, NODE_CLASS])
def test_a_valid_object_has_no_faults(value: Json) -> None:
    assert faults_of(value) == []


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        (
            f"{INNER}.nodeClassRef",
            {"kind": "EC2NodeClass", "name": "a"},
            (
                f"{INNER}.nodeClassRef.group",
                "is missing",
                "add the group of the node class, such as `group: karpenter.k8s.aws`",
            ),
        ),
        (
            "spec.disruption.consolidationPolicy",
            "WhenUnderutilized",
            (
                "spec.disruption.consolidationPolicy",
                "is `WhenUnderutilized`",
                f"write `{UNDERUTILIZED}`; known are: Balanced, WhenEmpty, {UNDERUTILIZED}",
            ),
        ),
        (
            "spec.disruption.consolidateAfter",
            "abc",
            (
                "spec.disruption.consolidateAfter",
                "is `abc`",
                "write a duration such as `30s` or `1h30m`, or `Never`",
            ),
        ),
        (
            "spec.disruption.budgets",
            [{"nodes": "200%"}],
            (
                "spec.disruption.budgets[0].nodes",
                "is `200%`",
                "write a number of nodes or a share up to `100%`",
            ),
        ),
        (
            "spec.disruption.budgets",
            [{"nodes": "1"}, {"schedule": "@daily"}],
            (
                "spec.disruption.budgets[1]",
                "is wrong: 'schedule' must be set with 'duration'",
                "write both, or neither",
            ),
        ),
        ("spec.weight", 500, ("spec.weight", "is `500`", "write a number from 1 to 100")),
        (
            "spec.weight",
            "5",
            ("spec.weight", "is the text `5`, not a whole number", "write a whole number"),
        ),
        (
            "spec.replicas",
            -1,
            ("spec.replicas", "is `-1`", "write 0 or more"),
        ),
        (
            f"{INNER}.requirements",
            {"key": "a"},
            (f"{INNER}.requirements", "is an object, not a list", "write it as a list, `- ...`"),
        ),
        (
            f"{INNER}.requirements",
            [wants("karpenter.k8s.aws/instance-category", "In", "C")],
            (
                f"{INNER}.requirements[0].values[0]",
                "is `C`, and `karpenter.k8s.aws/instance-category` has no such value",
                "write `c`",
            ),
        ),
        (
            f"{INNER}.requirements",
            [wants("karpenter.k8s.aws/instance-catgory", "In", "c")],
            (
                f"{INNER}.requirements[0].key",
                (
                    "is `karpenter.k8s.aws/instance-catgory`: "
                    'label domain "karpenter.k8s.aws" is restricted'
                ),
                "write `karpenter.k8s.aws/instance-category`",
            ),
        ),
        (
            f"{INNER}.requirements",
            [{**wants("kubernetes.io/arch", "In", "arm64"), "minvalues": 1}],
            (f"{INNER}.requirements[0].minvalues", "is not known here", "write `minValues`"),
        ),
        (
            f"{INNER}.nodeClassRef.apiVersion",
            "karpenter.k8s.aws/v1",
            (
                f"{INNER}.nodeClassRef.apiVersion",
                "is not known here",
                "write `group: karpenter.k8s.aws` instead",
            ),
        ),
        (
            "spec.disruption.expireAfter",
            "1h",
            (
                "spec.disruption.expireAfter",
                "is not known here",
                "move it to `spec.template.spec.expireAfter`",
            ),
        ),
        (
            f"{INNER}.kubelet",
            {"maxPods": 5},
            (
                f"{INNER}.kubelet",
                "is not known here",
                "move it to the node class, whose `spec.kubelet` it is today",
            ),
        ),
        (
            "spec.template.metadata.lables",
            {"a": "b"},
            ("spec.template.metadata.lables", "is no field of metadata", "write `labels`"),
        ),
        (
            "metadata.team",
            "shop",
            (
                "metadata.team",
                "is no field of metadata",
                "indent it below `labels`, if `team` is to be a label; otherwise remove it",
            ),
        ),
        ("Spec", {}, ("Spec", "is no field of a NodePool", "write `spec`")),
        (
            "limits",
            {},
            ("limits", "is no field of a NodePool", "indent it: it belongs below `spec`"),
        ),
        (
            "metadata.name",
            "Pool A",
            (
                "metadata.name",
                "is `Pool A`, which is no name",
                "use lower-case letters, digits, `-` and `.`, as in `web-1`",
            ),
        ),
        (
            "metadata.labels",
            {"my team": "x"},
            (
                "metadata.labels[my team]",
                "is no label key",
                "use letters, digits, `-`, `_` and `.`, as in `example.com/name`",
            ),
        ),
        (
            f"{INNER}.expireAfter",
            "\u201c720h\u201d",
            (
                f"{INNER}.expireAfter",
                "is `\u201c720h\u201d`",
                'write plain quotation marks, `"`, or none',
            ),
        ),
        (
            f"{INNER}.nodeClassRef",
            {"group": "compute.k8s.aws", "kind": "EC2NodeClass", "name": "a"},
            (
                f"{INNER}.nodeClassRef.group",
                "is `compute.k8s.aws`, which has no EC2NodeClass",
                "write `karpenter.k8s.aws`",
            ),
        ),
        (
            f"{INNER}.nodeClassRef",
            {"group": "karpenter.k8s.aws", "kind": "AWSNodeTemplate", "name": "a"},
            (
                f"{INNER}.nodeClassRef.kind",
                "is `AWSNodeTemplate`, which karpenter.k8s.aws does not have",
                "write `EC2NodeClass`",
            ),
        ),
        (
            "spec.template.metadata.labels",
            {"team": "${TEAM}"},
            (
                "spec.template.metadata.labels.team",
                "is `${TEAM}`, which is not filled in",
                "fill in `${TEAM}` first, for example with `envsubst` or `helm template`",
            ),
        ),
        (
            "spec.limits",
            {"cpu": "${CPU}"},
            (
                "spec.limits.cpu",
                "is `${CPU}`, which is not filled in",
                "fill in `${CPU}` first, for example with `envsubst` or `helm template`",
            ),
        ),
        (
            f"{INNER}.requirements",
            [wants("a", "In", "<<ZONE>>")],
            (
                f"{INNER}.requirements[0].values[0]",
                "is `<<ZONE>>`, which is not filled in",
                "fill in `<<ZONE>>` first, for example with `envsubst` or `helm template`",
            ),
        ),
    ],
)
def test_a_fault_of_a_pool_is_named_with_a_hint(
    path: str, value: Value, expected: tuple[str, str, str]
) -> None:
    assert faults_of(pool_with(path, value)) == [expected]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            class_with(amiSelectorTerms={"id": "ami-1"}),
            ("spec.amiSelectorTerms", "is an object, not a list", "write it as a list, `- ...`"),
        ),
        (
            class_with(subnetSelectorTerms=[{"id": "subnet-1", "tags": {"a": "b"}}]),
            (
                "spec.subnetSelectorTerms[0]",
                "is wrong: 'id' cannot be set together with 'tags'",
                "keep one of them",
            ),
        ),
        (
            class_with(
                amiFamily="AL2",
                amiSelectorTerms=[
                    {"id": "ami-0123456789"},
                    {"id": "ami-1", "name": "a", "tags": {"a": "b"}},
                ],
            ),
            (
                "spec.amiSelectorTerms[1]",
                "is wrong: 'id' cannot be set together with 'alias', 'tags', 'name', 'owner'",
                "keep one of them",
            ),
        ),
        (
            class_with(instanceProfile="nodes"),
            (
                "spec",
                "is wrong: must specify exactly one of 'role', 'instanceProfile'",
                "write exactly one of them",
            ),
        ),
        (
            class_with(instanceStorePolicy="NVME"),
            ("spec.instanceStorePolicy", "is `NVME`", "write one of: RAID0"),
        ),
        (
            class_with(amiSelectorTerms=[{"alias": "ubuntu@latest"}]),
            (
                "spec.amiSelectorTerms[0].alias",
                f"is `ubuntu@latest`: the family of 'alias' must be one of {FAMILIES}",
                UBUNTU_HINT,
            ),
        ),
        (
            class_with(tags={"kubernetes.io/cluster/shop": "owned"}),
            (
                "spec.tags[kubernetes.io/cluster/shop]",
                "is wrong: tag contains a restricted tag matching kubernetes.io/cluster/",
                "remove it: the autoscaler sets this tag itself",
            ),
        ),
    ],
)
def test_a_fault_of_a_node_class_is_named_with_a_hint(
    value: Json, expected: tuple[str, str, str]
) -> None:
    assert faults_of(value) == [expected]


def test_all_faults_are_reported_together_including_those_of_rules() -> None:
    faults = faults_of(
        plain_pool(
            "p",
            wants("karpenter.sh/x", "Exists"),
            wants("a", "In"),
            wants("b", "Gt", "many"),
            weight="heavy",
            lables={},
            disruption={"consolidateAfter": 5},
            labels={"kubernetes.io/hostname": "n", "karpenter.sh/y": "z"},
        )
    )

    assert [path for path, _, _ in faults] == [
        "spec.lables",
        "spec.template.metadata.labels[karpenter.sh/y]",
        "spec.template.metadata.labels[kubernetes.io/hostname]",
        f"{INNER}.requirements[0].key",
        f"{INNER}.requirements[1].values",
        f"{INNER}.requirements[2].values",
        "spec.weight",
        "spec.disruption.consolidateAfter",
    ]


def test_shell_variables_of_user_data_are_no_placeholders() -> None:
    assert faults_of(class_with(userData="#!/bin/sh\necho ${HOME} $(date)\n")) == []


def test_a_wrong_status_is_no_fault_of_the_manifest() -> None:
    assert faults_of({**plain_pool("p"), "status": {"nodes": "many", "colour": 1}}) == []


def test_keys_that_are_no_text_are_named() -> None:
    pool = pool_with("spec.limits", {1: 2})

    assert faults_of(pool) == [("spec.limits", "has the key `1`, not text", 'quote it: `"1"`')]


@given(st.data(), odd_values)
def test_a_pool_without_faults_is_admitted(data: st.DataObject, odd: Value) -> None:
    path = data.draw(st.sampled_from(places(RICH_POOL["spec"])))
    pool = {key: each for key, each in RICH_POOL.items() if key != "status"}
    value = changed(pool, ("spec", *path), odd)

    faults = custom_faults(value, WELL_KNOWN)

    assert all(each.hint for each in faults)
    assert faults or validator_of("karpenter.sh/v1", "NodePool").admit(value, None)


def test_a_thousand_pools_compile_their_definition_once() -> None:
    validator_of.cache_clear()

    reading = read([plain_pool(f"p{number}") for number in range(1000)])

    assert (len(reading.snapshot.pools), reading.problems) == (1000, ())
    assert validator_of.cache_info().misses == 1


def test_a_thousand_pools_are_validated_within_a_second() -> None:
    pools = [{**RICH_POOL, "metadata": {"name": f"p{number}"}} for number in range(1000)]
    custom_faults(pools[0], WELL_KNOWN)
    started = time.process_time()

    faults = [fault for each in pools for fault in custom_faults(each, WELL_KNOWN)]

    assert faults == []
    assert time.process_time() - started < 1


@pytest.mark.parametrize("kind", CUSTOM_KINDS, ids=lambda each: each.kind.name)
def test_every_pattern_and_rule_has_a_hint(kind: CustomKind) -> None:
    spec = kind.schema()["properties"]["spec"]

    assert [each for each in patterns(spec, "spec") if each not in PATTERN_HINTS] == []
    assert [each for each in rules(spec) if not rule_hint(each)] == []


def parts(schema: JsonObject, path: str) -> list[tuple[str, JsonObject]]:
    """List the schemas directly below a schema, with their paths."""
    below = [(f"{path}.{key}", each) for key, each in schema.get("properties", {}).items()]
    entries = [schema.get("items"), schema.get("additionalProperties")]
    return below + [(f"{path}[]", each) for each in entries if isinstance(each, dict)]


def patterns(schema: JsonObject, path: str) -> list[str]:
    """List the paths of fields with a pattern."""
    found = [path] if "pattern" in schema else []
    return found + [each for at, below in parts(schema, path) for each in patterns(below, at)]


def rules(schema: JsonObject) -> list[str]:
    """List the messages of all rules."""
    found = [each["message"] for each in schema.get("x-kubernetes-validations", ())]
    return found + [each for _, below in parts(schema, "") for each in rules(below)]


def test_an_overlay_is_validated_by_its_definition() -> None:
    overlay = obj("NodeOverlay", "o", spec={"requirements": [], "price": "1", "cost": "2"})

    assert faults_of(overlay) == [
        (
            "spec.cost",
            "is not known here",
            "remove it, or write one of: capacity, price, priceAdjustment, requirements, weight",
        )
    ]
