"""Files, directories and standard input to documents, and documents to a decided question."""

import time
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.cli.catalogs import find_catalog, usual_catalog
from karpy.cli.ec2supply import Needs
from karpy.cli.findings import tell_findings
from karpy.cli.options import STDIN, Question
from karpy.cli.room import with_room
from karpy.cli.terminal import Terminal
from karpy.codec.findings import Finding, is_partial, note, of_problem
from karpy.codec.manifests import Reading, read_manifests
from karpy.codec.narrowing import Origins, Supply, find_narrowing
from karpy.core.scheduling.decide import decide
from karpy.core.scheduling.overlays import with_overlays
from karpy.errors import FileUnreadable, ManifestInvalid, QuotaExceeded
from karpy.model.instances import Catalog
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Verdict

_SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})

_ENDLESS: Final = frozenset({"full", "random", "urandom", "zero"})
_NOWHERE: Final[Origins] = {}
"""Objects that come from no file."""


class Seen(Struct, frozen=True):
    """A cluster to answer about, and what there is to say about what was read of it."""

    snapshot: Snapshot
    findings: tuple[Finding, ...] = ()
    catalog: str = ""
    """The name of the catalog; empty if it came with the snapshot."""
    is_estimate: bool = False
    """Whether no cloud was asked for types and prices."""

    @property
    def is_partial(self) -> bool:
        """Whether an answer is only about a part of the input."""
        return is_partial(self.findings)

    @property
    def catalog_title(self) -> str:
        """What answers call the catalog."""
        return f"{self.catalog} (estimated prices)" if self.is_estimate else self.catalog


class Decided(Struct, frozen=True):
    """A question, its answer, and how long the answer took."""

    seen: Seen
    verdict: Verdict
    seconds: float

    @property
    def snapshot(self) -> Snapshot:
        return self.seen.snapshot

    @property
    def is_partial(self) -> bool:
        """Whether the answer is only about a part of the input."""
        return self.seen.is_partial

    @property
    def is_no(self) -> bool:
        """Whether some pod gets no place, or would not even be created."""
        is_short = any(each.code == QuotaExceeded.code for each in self.seen.findings)
        return is_short or bool(self.verdict.refusals)


class Sources(Struct, frozen=True):
    """What files say, given as name and text, and which files of folders say nothing."""

    texts: tuple[tuple[str, str], ...]
    unreadable: tuple[ManifestInvalid, ...] = ()


def decide_files(files: Sequence[str], question: Question, terminal: Terminal) -> Decided:
    """Read manifests, tell what could not be read, and decide on the rest."""
    return decide_documents(read_sources(files, terminal.stdin), question, terminal)


def decide_documents(sources: Sources, question: Question, terminal: Terminal) -> Decided:
    """Decide on what files say."""
    seen = _see_sources(sources, question)
    if not seen.snapshot.pods:
        findings = (*seen.findings, note("NO_POD", "the input holds no pod"))
        seen = replace(seen, findings=findings)
    tell_findings(seen.findings, terminal)
    return decide_seen(seen, question)


def see_files(files: Sequence[str], question: Question, terminal: Terminal) -> Seen:
    """Read manifests, and tell what could not be read."""
    seen = _see_sources(read_sources(files, terminal.stdin), question)
    tell_findings(seen.findings, terminal)
    return seen


def see_bare_files(files: Sequence[str], question: Question, stdin: IO[str]) -> Seen:
    """Read manifests without asking what can be bought for them; findings are errors alone."""
    sources = read_sources(files, stdin)
    reading = _read(sources, question)
    problems = (*sources.unreadable, *reading.problems)
    return Seen(reading.snapshot, tuple(map(of_problem, problems)))


def _see_sources(sources: Sources, question: Question) -> Seen:
    reading = _read(sources, question)
    snapshot, on_room = with_room(reading.snapshot, reading.buffers, question)
    supply = find_supply(question, Needs(snapshot, reading.node_classes))
    findings = (
        *map(of_problem, sources.unreadable),
        *reading.findings_beside(supply.node_classes),
        *on_room,
    )
    return supplied(snapshot, question, supply, findings, reading.origins)


def _read(sources: Sources, question: Question) -> Reading:
    """Read manifests as of the time that is asked about."""
    return read_manifests(
        sources.texts,
        catalog=Catalog(),
        settings=question.settings,
        now=question.now or datetime.now(UTC),
    )


def find_supply(question: Question, needs: Needs) -> Supply:
    """Return the catalog that was asked for, or what the NodePools buy from."""
    if question.catalog is None:
        return usual_catalog(needs)
    return find_catalog(question.catalog, read_text)(needs)


def supplied(
    snapshot: Snapshot,
    question: Question,
    supply: Supply,
    findings: Sequence[Finding] = (),
    origins: Origins = _NOWHERE,
) -> Seen:
    """Put a cluster and its catalog together; say what the catalog does not have."""
    snapshot = replace(snapshot, catalog=supply.catalog, repair=question.repair)
    said = (*findings, *supply.findings, *find_narrowing(snapshot, supply, origins))
    return Seen(_on_sale(snapshot), said, supply.name, supply.is_estimate)


def decide_seen(seen: Seen, question: Question) -> Decided:
    """Decide about the pending pods of a cluster."""
    started = time.perf_counter()
    deadline = started + question.timeout if question.timeout else float("inf")
    verdict = decide(seen.snapshot, keep_going=lambda: time.perf_counter() < deadline)
    return Decided(seen, verdict, time.perf_counter() - started)


def _on_sale(snapshot: Snapshot) -> Snapshot:
    """Apply the NodeOverlays of the input: overlays that are given are meant."""
    settings = replace(snapshot.settings, node_overlay=bool(snapshot.overlays))
    return with_overlays(replace(snapshot, settings=settings))


def read_sources(files: Iterable[str], stdin: IO[str]) -> Sources:
    """
    Read each file, each manifest of each directory, and standard input for `-`.

    A file of a directory that cannot be read does not keep the others back.
    """
    texts: list[tuple[str, str]] = []
    unreadable: list[ManifestInvalid] = []
    for name in files:
        if name == STDIN:
            texts.append(("<stdin>", _text_of(stdin)))
        elif not is_folder(Path(name)):
            texts.append((str(Path(name)), read_text(Path(name))))
        else:
            for each in _manifests_in(Path(name)):
                try:
                    texts.append((str(each), read_text(each)))
                except FileUnreadable as error:
                    unreadable.append(_unreadable(each, error))
    return Sources(tuple(texts), tuple(unreadable))


def _unreadable(path: Path, error: FileUnreadable) -> ManifestInvalid:
    problem = f"cannot be read: {error.problem}"
    return ManifestInvalid(where=f"`{path}`", path="", problem=problem, hint=error.hint)


def is_folder(path: Path) -> bool:
    """Say whether a path is a folder; raise FileUnreadable if it can be no path."""
    try:
        return path.is_dir()
    except OSError as error:
        raise FileUnreadable(path=str(path), problem=error.strerror or str(error)) from error


def read_text(path: Path) -> str:
    """Read a text file, or say why that cannot be done."""
    try:
        if path.is_char_device() and path.resolve().name in _ENDLESS:
            raise FileUnreadable(path=str(path), problem="it is a device without an end")
        return _decoded(path.read_bytes())
    except UnicodeDecodeError as error:
        raise _no_text(str(path)) from error
    except OSError as error:
        problem = error.strerror or type(error).__name__
        raise FileUnreadable(path=str(path), problem=problem) from error
    except ValueError as error:
        raise FileUnreadable(path=str(path), problem="it is no path") from error


def _manifests_in(directory: Path) -> list[Path]:
    paths = sorted(
        each
        for each in directory.rglob("*")
        if each.suffix in _SUFFIXES and not _is_hidden(each.relative_to(directory))
    )
    paths = [each for each in paths if each.is_file()]
    if not paths:
        raise FileUnreadable(
            path=str(directory), problem="the directory holds no *.yaml, *.yml or *.json file"
        )
    return paths


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _text_of(stdin: IO[str]) -> str:
    try:
        return stdin.read()
    except UnicodeDecodeError as error:
        raise _no_text("<stdin>") from error


def _decoded(content: bytes) -> str:
    """Return the text of a file in UTF-8, or in UTF-16 as PowerShell redirects output."""
    encoding = "utf-16" if content.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8-sig"
    return content.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")


def _no_text(path: str) -> FileUnreadable:
    return FileUnreadable(path=path, problem="it is not UTF-8 text", hint="save it as UTF-8")
