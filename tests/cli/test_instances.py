"""The instance selector, offline."""

import json

import pytest
import yaml

from tests.cli.conftest import Karpy

POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: arm
spec:
  template:
    metadata:
      labels: {team: a}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
        - {key: kubernetes.io/arch, operator: In, values: [arm64]}
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
"""
ANOTHER = POOL.replace("name: arm", "name: other")
TABLE = """\
6 instance types, the cheapest first

instance type  vcpu  memory  gpu   arch   pods  on-demand $/h  spot $/h
g4dn.xlarge       4    16Gi  1 t4  amd64    29         0.5839    0.2919
g4dn.2xlarge      8    32Gi  1 t4  amd64    29         0.8347    0.4174
g4dn.4xlarge     16    64Gi  1 t4  amd64    29         1.3320    0.6660
g4dn.8xlarge     32   128Gi  1 t4  amd64    58         2.4198    1.2099
and 2 more (--limit 6)

From  catalog ec2:eu-west-1 (estimated prices)
"""
REQUIREMENTS = """\
requirements:
  - key: karpenter.k8s.aws/instance-cpu
    operator: Gt
    values: ["3"]
  - key: karpenter.k8s.aws/instance-cpu
    operator: Lt
    values: ["9"]
  - key: karpenter.k8s.aws/instance-generation
    operator: Gt
    values: ["6"]
  - key: karpenter.k8s.aws/instance-category
    operator: In
    values: ["c", "m"]
  - key: kubernetes.io/arch
    operator: In
    values: ["arm64"]
"""


def names(out: str) -> list[str]:
    return [each["name"] for each in json.loads(out)["instances"]]


def test_types_are_listed_with_their_prices(karpy: Karpy) -> None:
    words = ("--gpu-name", "t4", "--zone", "eu-west-1a", "--gpus", "1-4", "--limit", "4")

    run = karpy("instances", *words)

    assert (run.code, run.out) == (0, TABLE)
    assert "note: instance types and prices of eu-west-1 are those of a table" in run.err


def test_requirements_can_be_pasted_into_a_pool(karpy: Karpy) -> None:
    words = ("--vcpus", "4-8", "--generation", "7-", "--category", "c,m", "--arch", "arm64")

    run = karpy("instances", *words, "--output", "requirements")

    assert (run.code, run.out) == (0, REQUIREMENTS)


def test_pasted_requirements_select_the_listed_types(karpy: Karpy) -> None:
    words = ("--vcpus", "4-8", "--memory", "16-64", "--gpus", "0", "--no-burstable", "--generation")
    listed = karpy("instances", *words, "6", "--output", "json")
    pasted = karpy("instances", *words, "6", "--output", "requirements")
    pool = yaml.safe_load(POOL)
    pool["spec"]["template"]["spec"]["requirements"] = yaml.safe_load(pasted.out)["requirements"]

    again = karpy("instances", "-", "--output", "json", stdin=yaml.safe_dump(pool))

    assert names(again.out) == names(listed.out)


def test_a_pool_narrows_what_is_listed(karpy: Karpy) -> None:
    run = karpy("instances", "-", "--family", "m7g", "--vcpus", "4", "--output", "json", stdin=POOL)

    (only,) = json.loads(run.out)["instances"]
    assert (only["name"], only["memoryMiB"], only["gpus"]) == ("m7g.xlarge", 16384, 0)
    assert only["allocatable"]["pods"] == "58"
    assert {each["capacityType"] for each in only["offerings"]} == {"on-demand"}
    assert json.loads(run.out)["catalog"] == {"name": "ec2:us-east-1", "isEstimate": True}


def test_requirements_of_the_pool_stay_and_its_labels_are_none(karpy: Karpy) -> None:
    run = karpy("instances", "-", "--family", "m7g", "--output", "requirements", stdin=POOL)

    keys = [each["key"] for each in yaml.safe_load(run.out)["requirements"]]
    assert keys == [
        "karpenter.sh/capacity-type",
        "kubernetes.io/arch",
        "karpenter.k8s.aws/instance-family",
    ]


def test_a_zone_says_the_region_for_a_pool_that_does_not(karpy: Karpy) -> None:
    run = karpy("instances", "-", "--zone", "eu-north-1a", "--output", "json", stdin=POOL)

    assert json.loads(run.out)["catalog"]["name"] == "ec2:eu-north-1"


def test_one_of_several_pools_is_named(karpy: Karpy) -> None:
    both = f"{POOL}---\n{ANOTHER}"

    named = karpy("instances", "-", "--pool", "other", "--family", "m7g", stdin=both)
    unnamed = karpy("instances", "-", stdin=both)
    unknown = karpy("instances", "-", "--pool", "third", stdin=both)

    assert named.code == 0
    assert (unnamed.code, unknown.code) == (1, 1)
    assert "name one of: arm, other, with `--pool NAME`" in unnamed.err
    assert "there is no NodePool `third`" in unknown.err


@pytest.mark.parametrize("output", ["table", "json", "requirements"])
def test_no_matching_type_is_a_no(karpy: Karpy, output: str) -> None:
    assert karpy("instances", "--vcpus", "3", "--output", output).code == 3


def test_a_price_names_the_types(karpy: Karpy) -> None:
    words = ("--max-price", "0.01", "--family", "t4g,t3", "--output", "requirements")

    (only,) = yaml.safe_load(karpy("instances", *words).out)["requirements"]

    assert only["key"] == "node.kubernetes.io/instance-type"
    assert only["values"] == [
        f"{family}.{size}" for family in ("t3", "t4g") for size in ("micro", "nano", "small")
    ]


def test_other_catalogs_can_be_chosen_from(karpy: Karpy) -> None:
    run = karpy("instances", "--catalog", "kwok", "--vcpus", "4", "--arch", "arm64")

    assert run.code == 0
    assert "c-4x-arm64-linux" in run.out
    assert run.out.endswith("From  catalog kwok\n")


@pytest.mark.parametrize(
    "words",
    [
        ("--vcpus", "many"),
        ("--memory", "16Xi"),
        ("--limit", "0"),
        ("--output", "yaml"),
        ("--max-price", "0"),
    ],
)
def test_invalid_values_are_misuse(karpy: Karpy, words: tuple[str, ...]) -> None:
    assert karpy("instances", *words).code == 2


@pytest.mark.parametrize(("memory", "found"), [("16", True), ("16Gi", True), ("512Mi", False)])
def test_memory_is_gibibytes_or_has_a_unit(karpy: Karpy, memory: str, *, found: bool) -> None:
    run = karpy("instances", "--family", "m5", "--memory", memory, "--output", "json")

    assert ("m5.xlarge" in names(run.out)) is found
