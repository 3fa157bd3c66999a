"""`karpy replay`: repeat recorded decisions, and compare the verdicts."""

from collections.abc import Iterable, Iterator, Sequence
from difflib import unified_diff
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from cyclopts import Parameter
from msgspec import Struct

from karpy.adapters.journal import journal_files, journal_lines
from karpy.cli.inputs import is_folder
from karpy.cli.options import ANSWERED_NO, DONE, FAILED, Injected, Output
from karpy.cli.terminal import Line, Span, Style, Terminal, line
from karpy.codec.recordings import (
    AnyRecording,
    DisruptionRecording,
    PoolRecording,
    RecordingInvalid,
    RecordingReader,
)
from karpy.codec.verdicts import disruption_to_json, pool_verdict_to_json, verdict_to_json
from karpy.core.disruption.decide import decide_nodes
from karpy.core.scheduling.decide import decide_guarded
from karpy.core.scheduling.overlays import with_overlays
from karpy.core.staticpools import decide_pool
from karpy.errors import FileUnreadable

_DIFFERENCES_SHOWN: Final = 5
_LINES_SHOWN: Final = 40
_LINES_COMPARED: Final = 1000
_STYLES: Final = {"-": Style.BAD, "+": Style.GOOD, "@": Style.QUIET}


class ReplayOutcome(Enum):
    """The result of a repeated decision."""

    SAME = "same"
    DIFFERENT = "different"
    UNFINISHED = "unfinished"
    """The recorded decision timed out, at a point that cannot be repeated."""


class Replayed(Struct, frozen=True):
    """A repeated decision."""

    where: str
    outcome: ReplayOutcome
    recording: AnyRecording
    verdict: bytes


def replay(
    files: Annotated[
        list[str],
        Parameter(help="Files of a journal, or the folder that `--journal` named.", negative=""),
    ],
    /,
    *,
    output: Output = "text",
    terminal: Injected,
) -> int:
    """
    Decide again on what a journal has recorded, and compare the verdicts.

    For example:

        $ karpy run --journal /var/lib/karpy
        $ karpy replay /var/lib/karpy

    Lines that cannot be read are named and skipped; a crash may leave one. Exits with 3 if a
    verdict differs by a single byte, and with 1 if there is no decision to replay.
    """
    paths = [path for name in files for path in _files_of(Path(name))]
    counts = dict.fromkeys(ReplayOutcome, 0)
    different: list[Replayed] = []
    for each in _replay_all(paths, terminal):
        counts[each.outcome] += 1
        if each.outcome is ReplayOutcome.DIFFERENT:
            different.append(each)
    if output == "json":
        terminal.answer_json(_answer(counts, different))
    else:
        terminal.answer(_lines(counts, different))
    if not sum(counts.values()):
        return FAILED
    return ANSWERED_NO if different else DONE


def _files_of(path: Path) -> list[Path]:
    if not is_folder(path):
        return [path]
    found = journal_files(path)
    if not found:
        raise FileUnreadable(path=str(path), problem="the directory holds no decisions-*.jsonl")
    return found


def _replay_all(paths: Iterable[Path], terminal: Terminal) -> Iterator[Replayed]:
    reader = RecordingReader()
    for path in paths:
        for number, text in journal_lines(path):
            where = f"{path}:{number}"
            try:
                recording = reader.read(text)
            except RecordingInvalid as error:
                terminal.report(line(Span("note: ", Style.CARE), f"{where} is skipped: {error}"))
                continue
            if recording is not None:
                yield _replay(where, recording)


def _replay(where: str, recording: AnyRecording) -> Replayed:
    verdict = _decide_again(recording)
    if verdict == recording.verdict:
        outcome = ReplayOutcome.SAME
    elif msgspec.json.decode(recording.verdict).get("isComplete", True):
        outcome = ReplayOutcome.DIFFERENT
    else:
        outcome = ReplayOutcome.UNFINISHED
    return Replayed(where, outcome, recording, verdict)


def _decide_again(recording: AnyRecording) -> bytes:
    if isinstance(recording, DisruptionRecording):
        return disruption_to_json(decide_nodes(recording.question))
    if isinstance(recording, PoolRecording):
        return pool_verdict_to_json(decide_pool(recording.question))
    # Only journals of older versions hold overlays that are not yet applied.
    return verdict_to_json(decide_guarded(with_overlays(recording.snapshot)).verdict)


def _answer(counts: dict[ReplayOutcome, int], different: Sequence[Replayed]) -> dict[str, Any]:
    return {
        **{each.value: counts[each] for each in ReplayOutcome},
        "differences": [
            {
                "where": each.where,
                "by": each.recording.by,
                "recorded": msgspec.json.decode(each.recording.verdict),
                "replayed": msgspec.json.decode(each.verdict),
            }
            for each in different
        ],
    }


def _lines(counts: dict[ReplayOutcome, int], different: Sequence[Replayed]) -> Iterator[Line]:
    for each in different[:_DIFFERENCES_SHOWN]:
        yield from _difference_lines(each)
        yield ()
    hidden = len(different) - _DIFFERENCES_SHOWN
    if hidden > 0:
        yield line(Span(f"{hidden} more differ; see `--output json`.", Style.QUIET))
        yield ()
    yield _summary(counts)


def _summary(counts: dict[ReplayOutcome, int]) -> Line:
    total = sum(counts.values())
    if not total:
        return line("There is no decision to replay.")
    parts: list[str | Span] = [f"{total} decision{'' if total == 1 else 's'} replayed: "]
    parts.append(Span(f"{counts[ReplayOutcome.SAME]} the same", Style.GOOD))
    if counts[ReplayOutcome.DIFFERENT]:
        parts += [", ", Span(f"{counts[ReplayOutcome.DIFFERENT]} different", Style.BAD)]
    if counts[ReplayOutcome.UNFINISHED]:
        ran_out = f"{counts[ReplayOutcome.UNFINISHED]} not to be compared, since time ran out then"
        parts += [", ", Span(ran_out, Style.CARE)]
    return line(*parts, ".")


def _difference_lines(replayed: Replayed) -> Iterator[Line]:
    recording = replayed.recording
    moment = f"{recording.moment:%Y-%m-%d %H:%M:%S}"
    yield line(
        Span(replayed.where, Style.NAME),
        f" differs; karpy {recording.by} decided it for {moment}",
    )
    shown = _diff(_pretty(recording.verdict), _pretty(replayed.verdict))
    for each in shown[:_LINES_SHOWN]:
        yield line(Span(f"  {each}", _STYLES.get(each[:1], Style.PLAIN)))
    if len(shown) > _LINES_SHOWN:
        yield line(Span(f"  … and {len(shown) - _LINES_SHOWN} lines more", Style.QUIET))


def _pretty(verdict: bytes) -> list[str]:
    return msgspec.json.format(verdict, indent=2).decode().splitlines()


def _diff(old: list[str], new: list[str]) -> list[str]:
    """Compare line by line, starting at the first difference, since verdicts are long."""
    alike = next(
        (place for place, both in enumerate(zip(old, new, strict=False)) if both[0] != both[1]),
        min(len(old), len(new)),
    )
    start = max(0, alike - 3)
    stop = start + _LINES_COMPARED
    compared = unified_diff(old[start:stop], new[start:stop], lineterm="", n=3)
    return [each for each in compared if not each.startswith(("---", "+++", "@@"))]
