import json
from pathlib import Path
from typing import Literal

import pytest
from syrupy.assertion import SnapshotAssertion

from karpy.cli.options import USUAL, Question
from karpy.model.settings import Packing, Settings
from tests.cli.conftest import Karpy
from tests.cli.manifests import FITS, NODE, POOL, STUCK, pod, stream

NOW = ("--now", "2026-03-01T12:00:00Z")


def test_pods_that_fit_get_a_plan(karpy: Karpy, snapshot: SnapshotAssertion) -> None:
    run = karpy("solve", "-", *NOW, stdin=FITS)

    assert run.code == 0
    assert run == snapshot


def test_pods_that_stay_pending_are_reported_with_exit_code_3(
    karpy: Karpy, snapshot: SnapshotAssertion
) -> None:
    run = karpy("solve", "-", *NOW, stdin=STUCK)

    assert run.code == 3
    assert run == snapshot


def test_pods_go_to_nodes_that_exist(karpy: Karpy, snapshot: SnapshotAssertion) -> None:
    run = karpy("solve", "-", *NOW, "--details", stdin=stream(FITS, NODE, pod("web-2")))

    assert run.code == 0
    assert run == snapshot


def test_json_is_the_whole_answer(karpy: Karpy, snapshot: SnapshotAssertion) -> None:
    run = karpy("solve", "-", *NOW, "--output", "json", stdin=STUCK)

    answer = json.loads(run.out)
    answer["launches"][0]["options"] = answer["launches"][0]["options"][:2]
    assert (run.code, run.err) == (3, "")
    assert answer == snapshot


def test_colour_changes_nothing_but_colour(karpy: Karpy, snapshot: SnapshotAssertion) -> None:
    assert karpy("solve", "-", *NOW, stdin=STUCK, has_colour=True) == snapshot


def test_plain_terminals_get_plain_bars(karpy: Karpy, snapshot: SnapshotAssertion) -> None:
    run = karpy("solve", "-", *NOW, stdin=STUCK, encoding="ascii")

    assert run.out.isascii()
    assert run == snapshot


def test_files_and_directories_are_read_alike(karpy: Karpy, tmp_path: Path) -> None:
    (tmp_path / "pool.yaml").write_text(POOL)
    (tmp_path / "deeper").mkdir()
    (tmp_path / "deeper" / "pods.yml").write_text(stream(pod("web-0"), pod("web-1")))
    (tmp_path / "README.md").write_text("not a manifest")

    whole = karpy("solve", str(tmp_path), *NOW)
    parts = karpy("solve", str(tmp_path / "pool.yaml"), str(tmp_path / "deeper" / "pods.yml"), *NOW)

    assert whole == parts == karpy("solve", "-", *NOW, stdin=FITS)


def test_a_broken_document_does_not_lose_the_others(
    karpy: Karpy, snapshot: SnapshotAssertion
) -> None:
    broken = "apiVersion: v1\nkind: Pod\nmetadata: {name: [}\n"

    run = karpy("solve", "-", *NOW, stdin=stream(POOL, broken, pod("web-0")))

    assert run.code == 1
    assert "1 new node for 1 pod" in run.out
    assert run == snapshot


def test_a_bad_field_is_named(karpy: Karpy, snapshot: SnapshotAssertion) -> None:
    run = karpy("solve", "-", *NOW, stdin=stream(FITS, pod("odd", cpu="much")))

    assert run.code == 1
    assert run == snapshot


def test_a_comment_needs_no_conversion(karpy: Karpy, snapshot: SnapshotAssertion) -> None:
    assert karpy("solve", "-", *NOW, stdin="# nothing\n---\n") == snapshot


@pytest.mark.parametrize("words", [["solve", "-", *NOW], ["convert", "-"]], ids=" ".join)
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "`<stdin>`: is empty"),
        ("{kind: Pod, kind: Node}", "`<stdin>` document 1: has the key `kind` twice in line 1"),
        (
            "{kind: List, items: [{kind: List, items: []}]}",
            "`<stdin>` document 1: has a List within a list, as `items[0]`",
        ),
    ],
    ids=["empty", "twice", "nested"],
)
def test_ambiguous_input_fails(karpy: Karpy, words: list[str], text: str, problem: str) -> None:
    run = karpy(*words, stdin=text)

    assert run.code == 1
    assert f"error: {problem} (KP1001)\n" in run.err


@pytest.mark.parametrize("packing", ["Karpenter", "Cheapest"])
def test_the_packing_is_part_of_the_question(
    karpy: Karpy, packing: Literal["Karpenter", "Cheapest"]
) -> None:
    run = karpy("solve", "-", *NOW, "--packing", packing, stdin=FITS)

    assert run.code == 0
    assert Question(packing=packing).settings == Settings(packing=Packing(packing))


def test_the_usual_question_is_karpenters() -> None:
    assert USUAL.settings == Settings()


def test_a_missing_file_is_an_error(karpy: Karpy, snapshot: SnapshotAssertion) -> None:
    run = karpy("solve", "nowhere.yaml")

    assert run.code == 1
    assert run == snapshot


def test_a_directory_without_manifests_is_an_error(karpy: Karpy, tmp_path: Path) -> None:
    run = karpy("solve", str(tmp_path))

    assert (run.code, run.out) == (1, "")
    assert run.err.startswith(
        f"error: cannot read `{tmp_path}`: the directory holds no *.yaml, *.yml or *.json file"
    )


def test_a_file_that_is_not_text_is_an_error(karpy: Karpy, tmp_path: Path) -> None:
    path = tmp_path / "image.yaml"
    path.write_bytes(b"\xff\xd8\xff\xe0")

    run = karpy("solve", str(path))

    assert run.code == 1
    assert run.err == (
        f"error: cannot read `{path}`: it is not UTF-8 text (KP1002)\n\nhint: save it as UTF-8\n"
    )


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_files_written_on_windows_are_read(karpy: Karpy, tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "pool.yaml"
    path.write_bytes(stream(POOL, pod("web-0")).replace("\n", "\r\n").encode(encoding))

    run = karpy("solve", str(path), *NOW)

    assert (run.code, "1 new node for 1 pod" in run.out) == (0, True)


@pytest.mark.parametrize("text", ["nonsense", "{}", '[{"name": 3}]', "[" * 100_000])
def test_an_invalid_catalog_is_an_error(karpy: Karpy, tmp_path: Path, text: str) -> None:
    path = tmp_path / "catalog.json"
    path.write_text(text)

    run = karpy("solve", "-", "--catalog", str(path), stdin=FITS)

    assert (run.code, run.out) == (1, "")
    assert run.err.startswith(f"error: `{path}` is no catalog of instance types: ")
    assert "(KP1004)" in run.err


def test_time_that_runs_out_shows_what_there_is(karpy: Karpy) -> None:
    pods = [pod(f"web-{n}", cpu=f"{n + 1}00m") for n in range(40)]

    run = karpy("solve", "-", *NOW, "--timeout", "0.000000001", stdin=stream(POOL, *pods))

    assert run.code == 3
    assert "Time ran out; this is what was decided so far." in run.out


def test_pods_that_would_not_be_created_are_a_no(karpy: Karpy) -> None:
    quota = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q, namespace: shop}\n"

    run = karpy("solve", "-", *NOW, stdin=stream(FITS, f"{quota}spec: {{hard: {{pods: 1}}}}\n"))

    assert run.code == 3
    assert "1 new node for 1 pod" in run.out
    assert "keeps 1 pod from being created (shop/web-1)" in run.err


OLD_POOL = """\
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: web}
spec:
  providerRef: {name: web}
  limits: {resources: {cpu: 10}}
"""


def test_the_fate_of_old_objects_is_counted_in_text_and_listed_in_json(karpy: Karpy) -> None:
    text = karpy("solve", "-", *NOW, stdin=OLD_POOL)
    answer = karpy("solve", "-", *NOW, "--output", "json", stdin=OLD_POOL)

    (line,) = (each for each in text.err.splitlines() if "form of today" in each)
    assert line.endswith("is read in its form of today; fields: 7 added, 2 renamed")
    findings = json.loads(answer.out)["findings"]
    assert len([each for each in findings if each["code"] == "CONVERTED"]) == 9


def test_a_file_of_a_folder_that_cannot_be_read_does_not_keep_the_others_back(
    karpy: Karpy, tmp_path: Path
) -> None:
    (tmp_path / "a.yaml").write_bytes(b"\xff")
    (tmp_path / "b.yaml").write_text(FITS)

    run = karpy("solve", str(tmp_path), *NOW)

    assert (run.code, "new node" in run.out) == (1, True)
    assert "a.yaml`: cannot be read: it is not UTF-8 text" in run.err


def test_a_lost_requirement_makes_the_answer_partial(karpy: Karpy) -> None:
    pods = "  requirements: [{key: karpenter.k8s.aws/instance-pods, operator: Gt, values: [9]}]\n"

    run = karpy("solve", "-", *NOW, "--catalog", "kwok", "--output", "json", stdin=OLD_POOL + pods)

    lost = [each for each in json.loads(run.out)["findings"] if each["code"] == "KP1023"]
    assert [(each["path"], each["isLeftOut"]) for each in lost] == [("spec.requirements[0]", True)]
    assert run.code == 1


def test_a_kustomization_that_changes_its_files_is_a_warning(karpy: Karpy, tmp_path: Path) -> None:
    (tmp_path / "pods.yaml").write_text(FITS)
    (tmp_path / "kustomization.yaml").write_text("resources: [pods.yaml]\n")
    plain = karpy("solve", str(tmp_path), *NOW)
    (tmp_path / "kustomization.yaml").write_text("resources: [pods.yaml]\nnamespace: shop\n")
    changing = karpy("solve", str(tmp_path), *NOW)

    assert (plain.code, changing.code) == (0, 1)
    assert "is not built: `namespace` would change what its files say" in changing.err


def test_smart_quotes_are_no_obstacle_to_an_old_object(karpy: Karpy) -> None:
    quoted = OLD_POOL.replace("Provisioner", "\u201cProvisioner\u201d")

    run = karpy("solve", "-", *NOW, stdin=quoted)

    assert "form of today" in run.err
    assert "quotation marks" in run.err
