"""The decision on a pod that a journal has recorded last."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from karpy.adapters.journal import journal_files, journal_lines
from karpy.cli.inputs import Decided, is_folder
from karpy.codec.recordings import Recording, RecordingInvalid, RecordingReader
from karpy.core.explain import find_pods
from karpy.core.scheduling.decide import decide
from karpy.core.scheduling.overlays import with_overlays
from karpy.model.snapshot import Snapshot


def journal_among(files: Sequence[str]) -> Path | None:
    """Return the folder of a journal if that is all there is to read."""
    folder = Path(files[0]) if len(files) == 1 else None
    is_journal = folder is not None and is_folder(folder) and bool(journal_files(folder))
    return folder if is_journal else None


def decide_recorded(folder: Path, name: str) -> Decided | None:
    """Decide again on the last snapshot that holds a pod, or None if none does."""
    for path in reversed(journal_files(folder)):
        found = [each for each in _snapshots(path) if find_pods(each, name)]
        if found:
            # Snapshots of today have no overlays left; those of older journals have.
            snapshot = with_overlays(found[-1])
            started = time.perf_counter()
            verdict = decide(snapshot)
            return Decided(snapshot, verdict, time.perf_counter() - started)
    return None


def _snapshots(path: Path) -> Iterator[Snapshot]:
    reader = RecordingReader()
    for _, text in journal_lines(path):
        try:
            recording = reader.read(text)
        except RecordingInvalid:
            # A crash may leave a line that is cut off.
            continue
        if isinstance(recording, Recording):
            yield recording.snapshot
