"""The decisions on a pod or a node that a journal has recorded last."""

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
_ASKED: Final = {
    "DisruptionQuestion": "disruption",
    "ValidationQuestion": "validation",
    "ConfirmationQuestion": "confirmation",
    "LegacyRepairQuestion": "legacy repair",
}


class Said(Struct, frozen=True):
    """What a recorded verdict says of one node."""

    moment: datetime
    by: str
    """The version of Karpy that decided."""
    asks: str
    """What was asked: disruption, validation, confirmation, legacy repair."""
    refusals: tuple[dict[str, Any], ...] = ()
    """As the recording has them."""
    commands: tuple[dict[str, Any], ...] = ()


class RecordedNode(Struct, frozen=True):
    """A node as a journal knows it last."""

    snapshot: Snapshot
    moment: datetime
    by: str
    said: Said | None = None
    """The last verdict that names it."""


def journal_among(files: Sequence[str]) -> list[Path]:
    """Return the files of a journal if that is all there is to read: named, or as their folder."""
    paths = [Path(each) for each in files]
    if len(paths) == 1 and is_folder(paths[0]):
        return journal_files(paths[0])
    return paths if paths and all(each.suffix == _SUFFIX for each in paths) else []


def recorded_pod(paths: Sequence[Path], name: str) -> Snapshot | None:
    """Return the last snapshot about pending pods that holds a pod; None if none does."""
    for path in reversed(paths):
        found = [
            each.snapshot
            for each in _recordings(path)
            if isinstance(each, Recording) and find_pods(each.snapshot, name)
        ]
        if found:
            # Snapshots of today have no overlays left; those of older journals have.
            return with_overlays(found[-1])
    return None


def recorded_node(paths: Sequence[Path], name: str) -> RecordedNode | None:
    """Return what a journal knows last of a node; None if no decision has seen it."""
    for path in reversed(paths):
        last: RecordedNode | None = None
        said: Said | None = None
        for each in _recordings(path):
            if not isinstance(each, DisruptionRecording):
                continue
            seen = each.question.snapshot
            node = find_node(seen, name)
            if node is None:
                continue
            said = _said(each, node.name) or said
            if isinstance(each.question, DisruptionQuestion | ValidationQuestion):
                last = RecordedNode(with_overlays(seen), each.moment, each.by)
        if last is not None:
            return msgspec.structs.replace(last, said=said)
    return None


def _said(recording: DisruptionRecording, node: str) -> Said | None:
    """Return what a verdict says of a node; None if nothing."""
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
    asks = _ASKED[type(recording.question).__name__]
    return Said(recording.moment, recording.by, asks, refusals, commands)


def _recordings(path: Path) -> Iterator[AnyRecording]:
    reader = RecordingReader()
    for _, text in journal_lines(path):
        try:
            recording = reader.read(text)
        except RecordingInvalid:
            # A crash may leave a line that is cut off.
            continue
        if recording is not None:
            yield recording
