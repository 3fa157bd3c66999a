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


OLD_CLASS = """\
# Owned by shop.
apiVersion: karpenter.k8s.aws/v1beta1
kind: EC2NodeClass
metadata: {name: web}
spec:
  amiFamily: AL2023  # the newest
  role: Nodes
  subnetSelectorTerms: [{tags: {a: "\u00e9"}}]
  securityGroupSelectorTerms: [{tags: {a: b}}]
"""


def test_comments_go_along(karpy: Karpy) -> None:
    run = karpy("convert", "-", stdin=OLD_CLASS)

    assert run.code == 0
    assert run.out.startswith("---\n# Owned by shop.\napiVersion: karpenter.k8s.aws/v1\n")
    assert "  amiSelectorTerms:  # the newest\n" in run.out
    assert "a: \u00e9\n" in run.out


def test_a_stream_without_a_character_gets_ascii(karpy: Karpy) -> None:
    run = karpy("convert", "-", stdin=OLD_CLASS, encoding="ascii")

    assert (run.code, run.out.isascii()) == (0, True)
    assert 'a: "\\xE9"' in run.out


def test_a_lost_field_is_a_failure(karpy: Karpy) -> None:
    run = karpy("convert", "-", stdin=OLD_CLASS.replace("  role: Nodes\n", ""))

    assert (run.code, "LOST" in run.err) == (1, True)
    assert "kind: EC2NodeClass" in run.out


def test_a_table_counts_by_file(karpy: Karpy, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    for name, text in {
        "prod/class.yaml": OLD_CLASS,
        "prod/pool.yaml": POOL,
        "test/class.yaml": OLD_CLASS,
        "test/latin.yaml": "a: \u00e9",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="latin-1")
    (tmp_path / "prod/class.yaml").write_text(OLD_CLASS)
    (tmp_path / "test/class.yaml").write_text(OLD_CLASS)

    run = karpy("convert", "--check", str(tmp_path))

    assert run.code == 3
    assert run.err.replace(str(tmp_path), "") == snapshot


def test_files_from_everywhere_have_one_table(karpy: Karpy, tmp_path: Path) -> None:
    (tmp_path / "class.yaml").write_text(OLD_CLASS, encoding="utf-8")

    run = karpy("convert", "--check", str(tmp_path), "-", stdin=OLD_CLASS)

    assert [line.split()[:2] for line in run.err.splitlines()[-3:-1]] == [
        ["<stdin>", "1"],
        [f"\u2026{str(tmp_path / 'class.yaml')[-34:]}", "1"],
    ][::-1]


def test_progress_is_shown_on_a_terminal_alone(karpy: Karpy, tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.yaml").write_text(POOL)

    assert "\r" not in karpy("convert", str(tmp_path)).err
    shown = karpy("convert", str(tmp_path), is_terminal=True).err.split("\r")
    assert [each.split(": ")[0].strip() for each in shown[1:5]] == [
        "reading file 1 of 3",
        "reading file 2 of 3",
        "reading file 3 of 3",
        "converting 3 documents",
    ]


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
