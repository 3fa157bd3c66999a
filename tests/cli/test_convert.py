import json
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.cli.conftest import Karpy
from tests.cli.manifests import POOL, stream

PROVISIONER = """\
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: web, namespace: karpenter}
spec:
  ttlSecondsUntilExpired: 604800
  provider:
    subnetSelector: {karpenter.sh/discovery: shop}
    securityGroupSelector: {karpenter.sh/discovery: shop}
    userData: "#!/bin/sh\\n\\techo hello\\n"
"""
LAUNCH_TEMPLATE = """\
apiVersion: karpenter.k8s.aws/v1alpha1
kind: AWSNodeTemplate
metadata: {name: web}
spec: {launchTemplate: mine}
"""


def test_objects_go_to_stdout_and_notes_to_stderr(
    karpy: Karpy, snapshot: SnapshotAssertion
) -> None:
    run = karpy("convert", "-", stdin=stream(PROVISIONER, LAUNCH_TEMPLATE, POOL))

    assert run.code == 1
    assert run == snapshot


def test_what_was_converted_passes_unchanged(karpy: Karpy) -> None:
    first = karpy("convert", "-", "--role", "Nodes", stdin=PROVISIONER)

    second = karpy("convert", "-", stdin=first.out)

    assert (first.code, second.code, second.out) == (0, 0, first.out)


def test_json_is_one_list(karpy: Karpy) -> None:
    run = karpy("convert", "-", "--output", "json", stdin=PROVISIONER)

    answer = json.loads(run.out)
    assert (answer["kind"], [each["kind"] for each in answer["items"]]) == (
        "List",
        ["NodePool", "EC2NodeClass"],
    )


@pytest.mark.parametrize(
    ("words", "stdin", "code"),
    [
        ((), PROVISIONER, 3),
        (("--role", "Nodes"), PROVISIONER, 0),
        ((), LAUNCH_TEMPLATE, 3),
        ((), POOL, 0),
        ((), "kind: [", 3),
    ],
)
def test_a_check_prints_no_object_and_says_whether_anything_is_lost(
    karpy: Karpy, words: tuple[str, ...], stdin: str, code: int
) -> None:
    run = karpy("convert", "-", "--check", *words, stdin=stdin)

    assert (run.code, run.out) == (code, "")


def test_a_check_as_json_has_notes_and_errors(karpy: Karpy) -> None:
    words = ("--check", "--output", "json")

    run = karpy("convert", "-", *words, stdin=stream(PROVISIONER, LAUNCH_TEMPLATE))

    answer = json.loads(run.out)
    assert (run.code, answer["isLossless"]) == (3, False)
    assert {(each["object"], each["change"]) for each in answer["notes"]} >= {
        ("Provisioner web", "LOST"),
        ("Provisioner web", "DROPPED"),
    }
    assert [each["object"] for each in answer["findings"]] == ["AWSNodeTemplate web"]


def test_files_of_a_directory_are_seen_together(karpy: Karpy, tmp_path: Path) -> None:
    (tmp_path / "deeper").mkdir()
    (tmp_path / "deeper" / "settings.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: karpenter-global-settings}\n"
        "data: {aws.defaultInstanceProfile: Usual}\n"
    )
    (tmp_path / "pool.yaml").write_text(PROVISIONER)
    (tmp_path / "kustomization.yaml").write_text("resources: [pool.yaml]\n")

    run = karpy("convert", str(tmp_path))

    assert run.code == 0
    assert "instanceProfile: Usual" in run.out
    assert "resources:" not in run.out
    assert run.err.splitlines()[-1].startswith("3 objects read: 1 converted, 2 unchanged")


CATEGORY = "{key: karpenter.k8s.aws/instance-category, operator: In, values: [%s]}"
CLUSTER = f"""\
karpenter.node_pools:
  web: {{requirements: {{category: {CATEGORY % "c"}}}}}
  batch: {{requirements: {{category: {CATEGORY % "C"}}}}}
"""


def test_a_cluster_definition_file_is_one_pool_and_class_for_each_entry(
    karpy: Karpy, snapshot: SnapshotAssertion
) -> None:
    options = ("--cluster-name", "shop", "--subnet-tag", "tier=private")

    run = karpy("convert", "-", *options, "--security-group-tag", "a=b", stdin=CLUSTER)

    assert run.code == 1
    assert run == snapshot


def test_a_tag_without_a_value_is_refused(karpy: Karpy) -> None:
    run = karpy("convert", "-", "--subnet-tag", "tier", stdin=CLUSTER)

    assert (run.code, run.out) == (2, "")
    assert "tier is not KEY=VALUE" in run.err


NODE_GROUP = {
    "nodegroupName": "web",
    "clusterName": "shop",
    "capacityType": "SPOT",
    "scalingConfig": {"minSize": 0, "maxSize": 10},
    "instanceTypes": ["m6i.large"],
    "subnets": ["subnet-0a1"],
    "amiType": "AL2023_x86_64_STANDARD",
    "nodeRole": "arn:aws:iam::123456789012:role/Nodes",
}


def test_node_groups_are_proposed_as_pools(
    karpy: Karpy, snapshot: SnapshotAssertion, tmp_path: Path
) -> None:
    file = tmp_path / "group.json"
    file.write_text(json.dumps({"nodegroup": NODE_GROUP}))

    run = karpy("convert", "--from-nodegroups", str(file))

    shown = run.err.replace(str(tmp_path), "")
    assert (run.code, run.out, shown) == snapshot


def test_what_was_proposed_passes_unchanged(karpy: Karpy) -> None:
    groups = json.dumps([{"nodegroup": NODE_GROUP}])
    first = karpy("convert", "--from-nodegroups", "-", stdin=groups)

    second = karpy("convert", "-", stdin=first.out)

    assert (first.code, second.code, second.out) == (0, 0, first.out)
