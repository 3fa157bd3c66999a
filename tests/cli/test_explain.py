import json
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from karpy.adapters.journal import JournalFiles
from karpy.core.scheduling.decide import decide
from tests import builders
from tests.cli.conftest import Karpy
from tests.cli.manifests import FITS, NODE, STUCK, pod, stream

NOW = ("--now", "2026-03-01T12:00:00Z")


@pytest.mark.parametrize("name", ["shop/web-0", "web-0", "pod/shop/web-0"])
def test_a_placed_pod_is_explained(karpy: Karpy, name: str, snapshot: SnapshotAssertion) -> None:
    run = karpy("explain", name, "-", *NOW, stdin=FITS)

    assert run.code == 0
    assert run == snapshot


def test_a_pod_on_a_node_that_exists_is_explained(
    karpy: Karpy, snapshot: SnapshotAssertion
) -> None:
    assert karpy("explain", "web-0", "-", *NOW, stdin=stream(FITS, NODE)) == snapshot


def test_a_refused_pod_is_explained_with_exit_code_3(
    karpy: Karpy, snapshot: SnapshotAssertion
) -> None:
    run = karpy("explain", "ml/trainer", "-", *NOW, stdin=STUCK)

    assert run.code == 3
    assert len(run.out.splitlines()) < 15
    assert run == snapshot


def test_json_has_it_all(karpy: Karpy, snapshot: SnapshotAssertion) -> None:
    run = karpy("explain", "ml/trainer", "-", *NOW, "--output", "json", stdin=STUCK)

    assert (run.code, run.err) == (3, "")
    assert json.loads(run.out) == snapshot


def test_a_new_node_is_explained(karpy: Karpy, snapshot: SnapshotAssertion) -> None:
    assert karpy("explain", "node/general-0", "-", *NOW, stdin=FITS) == snapshot


@pytest.mark.parametrize("output", ["text", "json"])
def test_an_existing_node_is_explained(
    karpy: Karpy, output: str, snapshot: SnapshotAssertion
) -> None:
    run = karpy("explain", "node/node-1", "-", *NOW, "--output", output, stdin=stream(FITS, NODE))

    assert run == snapshot


@pytest.mark.parametrize("name", ["shop/wbe-0", "other/web-0", "node/general-7"])
def test_an_unknown_name_is_an_error_with_the_nearest_names(
    karpy: Karpy, name: str, snapshot: SnapshotAssertion
) -> None:
    run = karpy("explain", name, "-", *NOW, stdin=FITS)

    assert run.code == 1
    assert run == snapshot


def test_a_name_in_two_namespaces_needs_its_namespace(
    karpy: Karpy, snapshot: SnapshotAssertion
) -> None:
    run = karpy("explain", "web-0", "-", *NOW, stdin=stream(FITS, pod("web-0", namespace="blog")))

    assert run.code == 1
    assert run == snapshot


def test_an_empty_input_has_no_pod_to_name(karpy: Karpy) -> None:
    run = karpy("explain", "web-0", "-", *NOW)

    assert run.code == 1
    assert "hint: add it: the input holds no pod" in run.err


def test_a_journal_has_the_last_decision_on_a_pod(karpy: Karpy, tmp_path: Path) -> None:
    early = builders.snapshot(pods=[builders.pod("web")], pools=[])
    late = builders.snapshot(pods=[builders.pod("web")])
    other = builders.snapshot(pods=[builders.pod("other")])
    files = JournalFiles(tmp_path, file_bytes=1, files=9)
    for each in (early, late, other):
        files.record(each, decide(each))
    files.close()

    found = karpy("explain", "web", str(tmp_path))
    absent = karpy("explain", "gone", str(tmp_path))

    assert (found.code, "gets a new node" in found.out) == (0, True)
    assert (absent.code, "no decision was about it" in absent.err) == (1, True)
