"""The journal on disk: decisions as JSON lines, in files that are replaced when they are full."""

import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import BoundedSemaphore
from typing import Final

from karpy import __version__
from karpy.codec.recordings import (
    encode_catalog,
    encode_decision,
    encode_disruption,
    encode_pool,
)
from karpy.errors import FileUnreadable, FileUnwritable, KarpyError
from karpy.model.commands import DisruptionVerdict
from karpy.model.instances import Catalog
from karpy.model.snapshot import NodeQuestion, PoolQuestion, Snapshot
from karpy.model.verdicts import PoolVerdict, Verdict

_NAME: Final = re.compile(r"decisions-([0-9]{6,})\.jsonl")
_WAITING_MAX: Final = 16
_APPENDING: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT
_MODE: Final = 0o600
"""Only the owner reads and writes: names and labels of pods may be confidential."""

OnTrouble = Callable[[str], None]
"""Takes why a decision was not recorded."""


class JournalFiles:
    """
    Writes decisions into the files of a folder, the oldest of which are deleted.

    A line is written at once and only to the end. What a crash has cut off stays a line of its own,
    which readers skip. Every file can be read without the others.
    """

    def __init__(self, folder: Path, *, file_bytes: int, files: int) -> None:
        self._folder = folder
        self._file_bytes = file_bytes
        self._files = files
        self._file = -1
        self._size = 0
        self._is_torn = False
        self._catalog: tuple[Catalog, str] | None = None
        self._written: set[str] = set()
        """Digests of the catalogs that the current file has."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._open(max(_numbers(folder), default=1))
        except OSError as error:
            raise _unwritable(folder, error) from error

    def record(self, snapshot: Snapshot, verdict: Verdict) -> None:
        """Write a decision; raise FileUnwritable."""
        self._append(
            snapshot.catalog,
            lambda digest: encode_decision(snapshot, verdict, digest, __version__),
        )

    def record_disruption(self, question: NodeQuestion, verdict: DisruptionVerdict) -> None:
        """Write a decision about the disruption of nodes; raise FileUnwritable."""
        self._append(
            question.snapshot.catalog,
            lambda digest: encode_disruption(question, verdict, digest, __version__),
        )

    def record_pool(self, question: PoolQuestion, verdict: PoolVerdict) -> None:
        """Write a decision about the size of a NodePool; raise FileUnwritable."""
        self._append(None, lambda _: encode_pool(question, verdict, __version__))

    def close(self) -> None:
        """Close the current file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _append(self, on_sale: Catalog | None, encode: Callable[[str], bytes]) -> None:
        """Write a line that names a catalog by its digest, after the catalog itself."""
        try:
            digest, catalog = self._catalog_line(on_sale)
            decision = encode(digest)
            if self._size and self._size + len(decision) + len(catalog) > self._file_bytes:
                self._open(max(_numbers(self._folder), default=0) + 1)
                digest, catalog = self._catalog_line(on_sale)
            self._write(catalog + decision)
            self._written.add(digest)
        except OSError as error:
            raise _unwritable(self._folder, error) from error

    def _catalog_line(self, catalog: Catalog | None) -> tuple[str, bytes]:
        """Return the digest of a catalog, and its line unless the file has it already."""
        if catalog is None:
            return "", b""
        known = self._catalog
        if known is not None and known[0] is catalog and known[1] in self._written:
            return known[1], b""
        digest, line = encode_catalog(catalog)
        self._catalog = (catalog, digest)
        return digest, b"" if digest in self._written else line

    def _open(self, number: int) -> None:
        self.close()
        path = self._folder / f"decisions-{number:06d}.jsonl"
        self._file = os.open(path, _APPENDING, _MODE)
        self._size = os.fstat(self._file).st_size
        self._is_torn = self._size > 0 and _last_byte(path) != b"\n"
        self._written.clear()
        for old in journal_files(self._folder)[: -self._files]:
            old.unlink(missing_ok=True)

    def _write(self, lines: bytes) -> None:
        if self._is_torn:
            lines = b"\n" + lines
        self._is_torn = True
        rest = memoryview(lines)
        while rest:
            rest = rest[os.write(self._file, rest) :]
        self._is_torn = False
        self._size += len(lines)


class BackgroundJournal:
    """
    The port Journal on files, written by a thread so that no decision waits for the disk.

    A decision that cannot be recorded, or comes while too many wait, is lost; `on_trouble` is
    called with the reason, in that thread or at once. `on_recorded` is called for every other one,
    in that thread.
    """

    def __init__(
        self,
        files: JournalFiles,
        on_trouble: OnTrouble = lambda _: None,
        on_recorded: Callable[[], None] = lambda: None,
    ) -> None:
        self._files = files
        self._on_trouble = on_trouble
        self._on_recorded = on_recorded
        self._room = BoundedSemaphore(_WAITING_MAX)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="journal")

    def record(self, snapshot: Snapshot, verdict: Verdict) -> None:
        """Record one decision and what it was made on."""
        self._submit(lambda: self._files.record(snapshot, verdict))

    def record_disruption(self, question: NodeQuestion, verdict: DisruptionVerdict) -> None:
        """Record one decision about the disruption of nodes, and what it was made on."""
        self._submit(lambda: self._files.record_disruption(question, verdict))

    def record_pool(self, question: PoolQuestion, verdict: PoolVerdict) -> None:
        """Record one decision about the size of a NodePool, and what it was made on."""
        self._submit(lambda: self._files.record_pool(question, verdict))

    def close(self) -> None:
        """Write what waits, then close the files."""
        self._thread.shutdown(wait=True)
        self._files.close()

    def _submit(self, write: Callable[[], None]) -> None:
        if not self._room.acquire(blocking=False):
            self._on_trouble("decisions are made faster than they can be recorded")
            return
        self._thread.submit(write).add_done_callback(self._end)

    def _end(self, writing: "Future[None]") -> None:
        self._room.release()
        error = writing.exception()
        if error is None:
            self._on_recorded()
        else:
            self._on_trouble(error.message if isinstance(error, KarpyError) else repr(error))


def journal_files(folder: Path) -> list[Path]:
    """List the files of a journal, oldest first."""
    return [folder / f"decisions-{number:06d}.jsonl" for number in sorted(_numbers(folder))]


def journal_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Give the lines of a file with their numbers, blank ones left out; raise FileUnreadable."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, line
    except OSError as error:
        problem = error.strerror or str(error)
        raise FileUnreadable(path=str(path), problem=problem) from error


def _last_byte(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1)


def _numbers(folder: Path) -> list[int]:
    matches = (_NAME.fullmatch(each.name) for each in folder.iterdir())
    return [int(match[1]) for match in matches if match]


def _unwritable(folder: Path, error: OSError) -> FileUnwritable:
    return FileUnwritable(path=str(folder), problem=error.strerror or str(error))
