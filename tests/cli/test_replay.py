import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from syrupy.assertion import SnapshotAssertion

from karpy.adapters.journal import JournalFiles
from karpy.core.disruption.decide import decide_nodes
from karpy.core.scheduling.decide import decide
from karpy.core.staticpools import decide_pool
from karpy.model.commands import DisruptionVerdict
from karpy.model.pools import Headcount
from karpy.model.settings import Packing, Settings
from karpy.model.snapshot import (
    ConfirmationQuestion,
    DisruptionQuestion,
    FillUpQuestion,
    LegacyRepairQuestion,
    NodeQuestion,
    Snapshot,
    ValidationQuestion,
)
from karpy.model.verdicts import PoolVerdict, Verdict
from tests.builders import NOON, pod, pool, snapshot
from tests.cli.conftest import Karpy, Run
from tests.core.disruption.methods.test_repair import broken, crowd
from tests.core.disruption.scenes import cluster, node
from tests.core.disruption.scenes import pod as bound_pod
from tests.core.nodepool.test_staticcapacity import static
from tests.core.scheduling.test_portfolio import LOPSIDED

CLUSTER = snapshot(pods=[pod("web")], pools=[pool("default")])
EMPTY = snapshot(pods=[pod("alone")], pools=[])
BUSY = bound_pod("web", on="busy", cpu="3")
IDLE = DisruptionQuestion(cluster(node("idle"), node("busy"), pods=[BUSY]))
BROKEN = DisruptionQuestion(crowd(broken("smoking"), pods=[bound_pod("web", on="smoking")]))
LACKING = FillUpQuestion(NOON, static(2), Headcount(), pool("web", static=True))
COMMAND = decide_nodes(IDLE).commands[0]
EVERY_KIND = (
    IDLE,
    BROKEN,
    ValidationQuestion(IDLE.snapshot, COMMAND),
    ConfirmationQuestion(IDLE.snapshot, "emptiness", COMMAND.nodes),
    LegacyRepairQuestion(BROKEN.snapshot, "smoking-claim"),
)


def _journal(folder: Path, *decisions: tuple[Snapshot, Verdict]) -> Path:
    files = JournalFiles(folder, file_bytes=10**9, files=1)
    for seen, verdict in decisions:
        files.record(seen, verdict)
    files.close()
    return folder / "decisions-000001.jsonl"


def _about_nodes(folder: Path, *decisions: tuple[NodeQuestion, DisruptionVerdict]) -> Path:
    files = JournalFiles(folder, file_bytes=10**9, files=1)
    for question, verdict in decisions:
        files.record_disruption(question, verdict)
    files.close()
    return folder / "decisions-000001.jsonl"


def _without(run: Run, folder: Path) -> Run:
    return Run(run.code, run.out.replace(str(folder), "DIR"), run.err.replace(str(folder), "DIR"))


def test_the_same_snapshots_give_the_same_verdicts(karpy: Karpy, tmp_path: Path) -> None:
    _journal(tmp_path, (CLUSTER, decide(CLUSTER)), (EMPTY, decide(EMPTY)))

    run = karpy("replay", str(tmp_path))

    assert run == Run(0, "2 decisions replayed: 2 the same.\n", "")


def test_the_cheapest_plan_is_found_again(karpy: Karpy, tmp_path: Path) -> None:
    cheapest = replace(LOPSIDED, settings=Settings(packing=Packing.CHEAPEST))
    _journal(tmp_path, (cheapest, decide(cheapest)), (LOPSIDED, decide(LOPSIDED)))

    run = karpy("replay", str(tmp_path))

    assert decide(cheapest) != decide(LOPSIDED)
    assert run == Run(0, "2 decisions replayed: 2 the same.\n", "")


def test_another_verdict_is_shown_line_by_line(
    karpy: Karpy, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    other = replace(decide(EMPTY), refusals=())
    path = _journal(tmp_path, (CLUSTER, decide(CLUSTER)), (EMPTY, other))

    run = karpy("replay", str(path))

    assert run.code == 3
    assert _without(run, tmp_path) == snapshot


def test_many_differences_are_counted(karpy: Karpy, tmp_path: Path) -> None:
    other = replace(decide(EMPTY), refusals=())
    _journal(tmp_path, *[(EMPTY, other)] * 7)

    run = karpy("replay", str(tmp_path))

    assert run.out.count(" differs; karpy ") == 5
    assert run.out.endswith(
        "2 more differ; see `--output json`.\n\n7 decisions replayed: 0 the same, 7 different.\n"
    )


def test_json_has_both_verdicts(karpy: Karpy, tmp_path: Path) -> None:
    other = replace(decide(EMPTY), refusals=())
    path = _journal(tmp_path, (EMPTY, other))

    run = karpy("replay", str(path), "--output", "json")

    answer = json.loads(run.out)
    difference = answer["differences"][0]
    assert (run.code, answer["same"], answer["different"], answer["unfinished"]) == (3, 0, 1, 0)
    assert difference["where"] == f"{path}:2"
    assert difference["recorded"]["refusals"] == []
    assert difference["replayed"]["refusals"][0]["reason"] == "NO_POOL"


def test_a_line_that_cannot_be_read_is_named_and_skipped(karpy: Karpy, tmp_path: Path) -> None:
    path = _journal(tmp_path, (CLUSTER, decide(CLUSTER)))
    path.write_bytes(path.read_bytes() + b'{"karpy":"decision/v1","by')

    run = karpy("replay", str(path))

    assert (run.code, run.out) == (0, "1 decision replayed: 1 the same.\n")
    assert run.err.startswith(f"note: {path}:3 is skipped: it is cut off or no JSON")


def test_a_decision_that_ran_out_of_time_cannot_be_compared(karpy: Karpy, tmp_path: Path) -> None:
    _journal(tmp_path, (CLUSTER, decide(CLUSTER, keep_going=lambda: False)))

    run = karpy("replay", str(tmp_path))

    assert run == Run(
        0,
        "1 decision replayed: 0 the same, 1 not to be compared, since time ran out then.\n",
        "",
    )


@pytest.mark.parametrize("text", [b"", b"\n", b"nonsense\n"])
def test_no_decision_at_all_is_a_failure(karpy: Karpy, tmp_path: Path, text: bytes) -> None:
    (tmp_path / "decisions-000001.jsonl").write_bytes(text)

    run = karpy("replay", str(tmp_path))

    assert (run.code, run.out) == (1, "There is no decision to replay.\n")


def test_a_folder_without_a_journal_is_an_error(karpy: Karpy, tmp_path: Path) -> None:
    run = karpy("replay", str(tmp_path))

    assert run.code == 1
    assert "the directory holds no decisions-*.jsonl (KP1002)" in run.err


def test_a_long_verdict_is_shown_from_where_it_differs(karpy: Karpy, tmp_path: Path) -> None:
    verdict = decide(CLUSTER)
    fewer = replace(verdict.launches[0], options=verdict.launches[0].options[:1])
    _journal(tmp_path, (CLUSTER, replace(verdict, launches=(fewer,))))

    run = karpy("replay", str(tmp_path))

    assert run.code == 3
    assert " lines more\n" in run.out
    assert len(run.out.splitlines()) == 44


def test_decisions_about_nodes_are_made_again_with_the_others(karpy: Karpy, tmp_path: Path) -> None:
    _journal(tmp_path, (CLUSTER, decide(CLUSTER)))
    _about_nodes(tmp_path, (IDLE, decide_nodes(IDLE)), (BROKEN, decide_nodes(BROKEN)))

    run = karpy("replay", str(tmp_path))

    assert run == Run(0, "3 decisions replayed: 3 the same.\n", "")


def test_each_kind_of_question_about_nodes_is_decided_on_again(
    karpy: Karpy, tmp_path: Path
) -> None:
    _about_nodes(tmp_path, *((each, decide_nodes(each)) for each in EVERY_KIND))

    run = karpy("replay", str(tmp_path))

    assert decide_nodes(BROKEN).commands[0].replacements
    assert run == Run(0, "5 decisions replayed: 5 the same.\n", "")


def test_a_recording_of_another_version_is_named_and_skipped(karpy: Karpy, tmp_path: Path) -> None:
    path = _about_nodes(tmp_path, (IDLE, decide_nodes(IDLE)))
    path.write_bytes(path.read_bytes().replace(b"disruption/v2", b"disruption/v1"))

    run = karpy("replay", str(path))

    assert (run.code, run.out) == (1, "There is no decision to replay.\n")
    assert run.err.endswith("another version of karpy may read it\n")


def test_decisions_about_pools_are_made_again(karpy: Karpy, tmp_path: Path) -> None:
    files = JournalFiles(tmp_path, file_bytes=10**9, files=1)
    files.record_pool(LACKING, decide_pool(LACKING))
    files.record_pool(LACKING, PoolVerdict("web"))
    files.close()

    run = karpy("replay", str(tmp_path), "--output", "json")

    answer = json.loads(run.out)
    difference = answer["differences"][0]
    assert (run.code, answer["same"], answer["different"]) == (3, 1, 1)
    assert (difference["recorded"]["creates"], difference["replayed"]["creates"]) == (0, 2)


def test_another_verdict_about_nodes_is_shown_line_by_line(
    karpy: Karpy, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    other = replace(decide_nodes(IDLE), commands=())
    path = _about_nodes(tmp_path, (IDLE, other), (BROKEN, decide_nodes(BROKEN)))

    run = karpy("replay", str(path))

    assert run.code == 3
    assert _without(run, tmp_path) == snapshot


def test_json_has_both_verdicts_about_nodes(karpy: Karpy, tmp_path: Path) -> None:
    other = replace(decide_nodes(BROKEN), commands=())
    path = _about_nodes(tmp_path, (BROKEN, other))

    run = karpy("replay", str(path), "--output", "json")

    difference = json.loads(run.out)["differences"][0]
    assert difference["recorded"]["commands"] == []
    assert [each["decision"] for each in difference["replayed"]["commands"]] == ["replace"]


def test_a_cut_off_decision_about_nodes_is_skipped(karpy: Karpy, tmp_path: Path) -> None:
    path = _about_nodes(tmp_path, (IDLE, decide_nodes(IDLE)))
    path.write_bytes(path.read_bytes() + b'{"karpy":"disruption/v2","by')

    run = karpy("replay", str(path))

    assert (run.code, run.out) == (0, "1 decision replayed: 1 the same.\n")
    assert run.err.startswith(f"note: {path}:3 is skipped: it is cut off or no JSON")
