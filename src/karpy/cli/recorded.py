"""The last recorded decisions about a pod or a node, from a journal."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from karpy.adapters.journal import journal_files, journal_lines
from karpy.cli.inputs import is_folder
from karpy.codec.recordings import (
    AnyRecording,
    DisruptionRecording,
    Recording,
    RecordingInvalid,
    RecordingReader,
)
from karpy.core.disruption.explain import find_node
from karpy.core.explain import find_pods
from karpy.core.scheduling.overlays import with_overlays
from karpy.model.snapshot import DisruptionQuestion, Snapshot, ValidationQuestion

_SUFFIX: Final = ".jsonl"
_QUESTIONS: Final = {
    "DisruptionQuestion": "disruption",
    "ValidationQuestion": "validation",
    "ConfirmationQuestion": "confirmation",
    "LegacyRepairQuestion": "legacy repair",
}


class RecordedVerdict(Struct, frozen=True):
    """The part of a recorded verdict about one node."""

    moment: datetime
    by: str
    """The version of Karpy that decided."""
    question: str
    """The kind of the question: disruption, validation, confirmation, legacy repair."""
    refusals: tuple[dict[str, Any], ...] = ()
    """In the form of the recording."""
    commands: tuple[dict[str, Any], ...] = ()


class RecordedNode(Struct, frozen=True):
    """The last recorded state of a node."""

    snapshot: Snapshot
    moment: datetime
    by: str
    verdict: RecordedVerdict | None = None
    """The last verdict that names the node."""


def journal_among(files: Sequence[str]) -> list[Path]:
    """Return the files of a journal if `files` are one: its files, or its folder."""
    paths = [Path(each) for each in files]
    if len(paths) == 1 and is_folder(paths[0]):
        return journal_files(paths[0])
    return paths if paths and all(each.suffix == _SUFFIX for each in paths) else []


def recorded_pod(paths: Sequence[Path], name: str) -> Snapshot | None:
    """Return the last recorded snapshot that contains a pod, or None."""
    for path in reversed(paths):
        found = [
            each.snapshot
            for each in _recordings(path)
            if isinstance(each, Recording) and find_pods(each.snapshot, name)
        ]
        if found:
            # Only journals of older versions hold overlays that are not yet applied.
            return with_overlays(found[-1])
    return None


def recorded_node(paths: Sequence[Path], name: str) -> RecordedNode | None:
    """Return the last recorded state of a node, or None."""
    for path in reversed(paths):
        last: RecordedNode | None = None
        verdict: RecordedVerdict | None = None
        for each in _recordings(path):
            if not isinstance(each, DisruptionRecording):
                continue
            snapshot = each.question.snapshot
            node = find_node(snapshot, name)
            if node is None:
                continue
            verdict = _verdict_on(each, node.name) or verdict
            if isinstance(each.question, DisruptionQuestion | ValidationQuestion):
                last = RecordedNode(with_overlays(snapshot), each.moment, each.by)
        if last is not None:
            return msgspec.structs.replace(last, verdict=verdict)
    return None


def _verdict_on(recording: DisruptionRecording, node: str) -> RecordedVerdict | None:
    """Return the part of a verdict about a node, or None."""
    if node.encode() not in recording.verdict:
        return None
    verdict = msgspec.json.decode(recording.verdict)
    refusals = tuple(each for each in verdict["refusals"] if each["node"] == node)
    commands = tuple(
        each
        for each in verdict["commands"]
        if any(chosen["node"] == node for chosen in each["nodes"])
    )
    if not refusals and not commands:
        return None
    question = _QUESTIONS[type(recording.question).__name__]
    return RecordedVerdict(recording.moment, recording.by, question, refusals, commands)


def _recordings(path: Path) -> Iterator[AnyRecording]:
    reader = RecordingReader()
    for _, text in journal_lines(path):
        try:
            recording = reader.read(text)
        except RecordingInvalid:
            # A crash may leave an incomplete line.
            continue
        if recording is not None:
            yield recording
