import json
import threading
from collections import deque
from pathlib import Path

import pytest
from msgspec.structs import replace

from karpy.adapters.journal import BackgroundJournal, JournalFiles, journal_files, journal_lines
from karpy.codec.recordings import (
    DisruptionRecording,
    PoolRecording,
    Recording,
    RecordingInvalid,
    RecordingReader,
)
from karpy.core.disruption.decide import decide_nodes
from karpy.core.scheduling.decide import decide
from karpy.core.staticpools import decide_pool
from karpy.errors import FileUnreadable, FileUnwritable
from karpy.model.pools import Headcount
from karpy.model.snapshot import DisruptionQuestion, FillUpQuestion, Snapshot
from karpy.model.verdicts import Verdict
from karpy.ports.journal import Journal
from tests.builders import NOON, pod, pool, snapshot
from tests.core.disruption.scenes import cluster, node
from tests.core.nodepool.test_staticcapacity import static

CLUSTER = snapshot(pods=[pod("web")], pools=[pool("default")])
VERDICT = decide(CLUSTER)
QUESTION = DisruptionQuestion(replace(cluster(node("idle")), catalog=CLUSTER.catalog))
OTHER_QUESTION = DisruptionQuestion(cluster(node("idle")))
ANSWER = decide_nodes(QUESTION)
POOL = FillUpQuestion(NOON, static(2), Headcount(), pool("web", static=True))
PLENTY = 10**9


def _open(folder: Path, *, file_bytes: int = PLENTY, files: int = 3) -> JournalFiles:
    return JournalFiles(folder, file_bytes=file_bytes, files=files)


def _named(number: int) -> Snapshot:
    return replace(CLUSTER, pods=(pod(f"web-{number}"),))


def _pods_of(path: Path) -> list[str]:
    """Read the one pod of each decision of a file, on its own."""
    reader = RecordingReader()
    read = [reader.read(line) for _, line in journal_lines(path)]
    return [each.snapshot.pods[0].name for each in read if isinstance(each, Recording)]


def _kinds_of(path: Path) -> list[str]:
    return [json.loads(line)["karpy"].partition("/")[0] for line in path.read_text().splitlines()]


def _record(journal: JournalFiles, *numbers: int) -> None:
    for number in numbers:
        cluster = _named(number)
        journal.record(cluster, decide(cluster))
    journal.close()


def test_decisions_are_lines_of_one_file(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "journal"

    _record(_open(folder), 1, 2)

    assert [each.name for each in journal_files(folder)] == ["decisions-000001.jsonl"]
    assert _pods_of(folder / "decisions-000001.jsonl") == ["web-1", "web-2"]


def test_what_is_on_sale_is_written_once(tmp_path: Path) -> None:
    _record(_open(tmp_path), 1, 2, 3)

    text = (tmp_path / "decisions-000001.jsonl").read_text()

    assert text.count('{"karpy":"catalog/v1"') == 1
    assert text.count('{"karpy":"decision/v1"') == 3


def test_decisions_about_nodes_name_what_is_on_sale_like_all_others(tmp_path: Path) -> None:
    journal = _open(tmp_path)

    journal.record_disruption(QUESTION, ANSWER)
    _record(journal, 1)

    assert _kinds_of(tmp_path / "decisions-000001.jsonl") == ["catalog", "disruption", "decision"]


def test_a_decision_about_nodes_comes_after_the_catalog_that_it_names(tmp_path: Path) -> None:
    journal = _open(tmp_path)

    for each in (QUESTION, OTHER_QUESTION, QUESTION):
        journal.record_disruption(each, decide_nodes(each))
    journal.close()

    path = tmp_path / "decisions-000001.jsonl"
    reader = RecordingReader()
    read = [reader.read(line) for _, line in journal_lines(path)]
    kinds = ["catalog", "disruption", "catalog", "disruption", "disruption"]
    assert _kinds_of(path) == kinds
    assert [each.question for each in read if isinstance(each, DisruptionRecording)] == [
        QUESTION,
        OTHER_QUESTION,
        QUESTION,
    ]


def test_decisions_about_pools_need_nothing_on_sale(tmp_path: Path) -> None:
    journal = BackgroundJournal(_open(tmp_path))
    port: Journal = journal

    port.record_pool(POOL, decide_pool(POOL))
    journal.close()

    (line,) = [line for _, line in journal_lines(tmp_path / "decisions-000001.jsonl")]
    read = RecordingReader().read(line)
    assert isinstance(read, PoolRecording)
    assert read.question == POOL


def test_each_full_file_has_what_was_on_sale_for_nodes(tmp_path: Path) -> None:
    journal = _open(tmp_path, file_bytes=1, files=2)

    journal.record_disruption(QUESTION, ANSWER)
    journal.record_disruption(QUESTION, ANSWER)
    journal.close()

    assert [_kinds_of(each) for each in journal_files(tmp_path)] == [["catalog", "disruption"]] * 2


def test_full_files_are_replaced_and_each_can_be_read_alone(tmp_path: Path) -> None:
    _record(_open(tmp_path, file_bytes=1, files=2), 1, 2, 3, 4)

    files = journal_files(tmp_path)

    assert [each.name for each in files] == ["decisions-000003.jsonl", "decisions-000004.jsonl"]
    assert [_pods_of(each) for each in files] == [["web-3"], ["web-4"]]


def test_a_file_is_gone_on_with_after_a_restart(tmp_path: Path) -> None:
    _record(_open(tmp_path), 1)
    _record(_open(tmp_path), 2)

    assert [_pods_of(each) for each in journal_files(tmp_path)] == [["web-1", "web-2"]]


def test_a_line_that_a_crash_cut_off_costs_no_other(tmp_path: Path) -> None:
    _record(_open(tmp_path), 1, 2)
    path = tmp_path / "decisions-000001.jsonl"
    path.write_bytes(path.read_bytes()[:-100])

    _record(_open(tmp_path), 3)

    reader = RecordingReader()
    lines = [line for _, line in journal_lines(path)]
    read = [reader.read(line) for line in (*lines[:2], *lines[3:])]
    names = [each.snapshot.pods[0].name for each in read if isinstance(each, Recording)]
    assert names == ["web-1", "web-3"]
    with pytest.raises(RecordingInvalid, match="it is cut off"):
        reader.read(lines[2])


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "decisions-x.jsonl").write_text("mine")

    _record(_open(tmp_path, file_bytes=1, files=1), 1, 2, 3)

    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "decisions-000003.jsonl",
        "decisions-x.jsonl",
        "notes.txt",
    ]


def test_only_we_may_read_it(tmp_path: Path) -> None:
    _record(_open(tmp_path), 1)

    assert (tmp_path / "decisions-000001.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_folder_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(FileUnwritable, match="file"):
        _open(tmp_path / "file")


def test_a_decision_that_cannot_be_written_is_an_error_with_its_folder(tmp_path: Path) -> None:
    journal = _open(tmp_path)
    journal.close()

    with pytest.raises(FileUnwritable, match=str(tmp_path)):
        journal.record(CLUSTER, VERDICT)


def test_a_missing_journal_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileUnreadable, match="No such file"):
        list(journal_lines(tmp_path / "gone"))


def test_the_journal_writes_in_the_background(tmp_path: Path) -> None:
    journal = BackgroundJournal(_open(tmp_path))
    port: Journal = journal

    port.record(CLUSTER, VERDICT)
    journal.close()

    assert _pods_of(tmp_path / "decisions-000001.jsonl") == ["web"]


def test_decisions_about_nodes_are_written_in_the_background_too(tmp_path: Path) -> None:
    recorded: list[str] = []
    journal = BackgroundJournal(
        _open(tmp_path), on_recorded=lambda: recorded.append(threading.current_thread().name)
    )
    port: Journal = journal

    port.record_disruption(QUESTION, ANSWER)
    journal.close()

    reader = RecordingReader()
    lines = [line for _, line in journal_lines(tmp_path / "decisions-000001.jsonl")]
    read = [reader.read(line) for line in lines][-1]
    assert isinstance(read, DisruptionRecording)
    assert read.question == QUESTION
    assert len(recorded) == 1


class _Broken(JournalFiles):
    """Files on a full disk, slow to say so."""

    def __init__(self, folder: Path, may_go_on: threading.Event) -> None:
        super().__init__(folder, file_bytes=1, files=1)
        self._may_go_on = may_go_on

    def record(self, snapshot: Snapshot, verdict: Verdict) -> None:
        self._may_go_on.wait()
        assert (snapshot, verdict) == (CLUSTER, VERDICT)
        raise FileUnwritable(path="x", problem="no space left")


def test_a_lost_record_is_reported_and_delays_no_caller(tmp_path: Path) -> None:
    troubles: list[str] = []
    may_go_on = threading.Event()
    journal = BackgroundJournal(_Broken(tmp_path, may_go_on), troubles.append)

    deque(map(journal.record, [CLUSTER] * 20, [VERDICT] * 20), maxlen=0)
    at_once = len(troubles)
    may_go_on.set()
    journal.close()

    assert (at_once, len(troubles)) == (4, 20)
    assert set(troubles) == {
        "decisions are made faster than they can be recorded",
        "cannot write `x`: no space left",
    }
