"""The input of commands: manifests from files and folders, their catalog and their verdict."""

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
from karpy.cli.findings import report_findings
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
"""The origins of objects that come from a cluster and not from files."""


class ClusterInput(Struct, frozen=True):
    """The cluster that a command answers about, with its catalog and the findings about it."""

    snapshot: Snapshot
    findings: tuple[Finding, ...] = ()
    catalog: str = ""
    """The name of the catalog; empty if it came with the snapshot."""
    is_estimate: bool = False
    """Whether types and prices are from a table and not from the cloud."""

    @property
    def is_partial(self) -> bool:
        """Whether a part of the input that may matter is left out of the answer."""
        return is_partial(self.findings)

    @property
    def catalog_title(self) -> str:
        """The name of the catalog in answers."""
        return f"{self.catalog} (estimated prices)" if self.is_estimate else self.catalog


class Decided(Struct, frozen=True):
    """An input, its verdict, and the time that the decision took."""

    cluster: ClusterInput
    verdict: Verdict
    seconds: float

    @property
    def snapshot(self) -> Snapshot:
        return self.cluster.snapshot

    @property
    def is_partial(self) -> bool:
        """Whether a part of the input that may matter is left out of the verdict."""
        return self.cluster.is_partial

    @property
    def is_no(self) -> bool:
        """Whether a pod stays pending or would not be created."""
        is_short = any(each.code == QuotaExceeded.code for each in self.cluster.findings)
        return is_short or bool(self.verdict.refusals)


class Sources(Struct, frozen=True):
    """The names and texts of files, and the errors of unreadable files in folders."""

    texts: tuple[tuple[str, str], ...]
    unreadable: tuple[ManifestInvalid, ...] = ()


def decide_files(files: Sequence[str], question: Question, terminal: Terminal) -> Decided:
    """Read manifests, report the findings, and decide about the pending pods."""
    return decide_documents(read_sources(files, terminal.stdin), question, terminal)


def decide_documents(sources: Sources, question: Question, terminal: Terminal) -> Decided:
    """Parse the texts of files, report the findings, and decide about the pending pods."""
    cluster = _parse(sources, question)
    if not cluster.snapshot.pods:
        findings = (*cluster.findings, note("NO_POD", "the input holds no pod"))
        cluster = replace(cluster, findings=findings)
    report_findings(cluster.findings, terminal)
    return decide_cluster(cluster, question)


def read_files(files: Sequence[str], question: Question, terminal: Terminal) -> ClusterInput:
    """Read manifests with their catalog, and report the findings."""
    cluster = _parse(read_sources(files, terminal.stdin), question)
    report_findings(cluster.findings, terminal)
    return cluster


def read_files_without_catalog(
    files: Sequence[str], question: Question, stdin: IO[str]
) -> ClusterInput:
    """Read manifests without a catalog; only errors become findings."""
    sources = read_sources(files, stdin)
    reading = _read(sources, question)
    problems = (*sources.unreadable, *reading.problems)
    return ClusterInput(reading.snapshot, tuple(map(of_problem, problems)))


def _parse(sources: Sources, question: Question) -> ClusterInput:
    reading = _read(sources, question)
    snapshot, on_room = with_room(reading.snapshot, reading.buffers, question)
    supply = find_supply(question, Needs(snapshot, reading.node_classes))
    findings = (
        *map(of_problem, sources.unreadable),
        *reading.findings_beside(supply.node_classes),
        *on_room,
    )
    return with_catalog(snapshot, question, supply, findings, reading.origins)


def _read(sources: Sources, question: Question) -> Reading:
    """Parse manifests, as of the time of the question."""
    return read_manifests(
        sources.texts,
        catalog=Catalog(),
        settings=question.settings,
        now=question.now or datetime.now(UTC),
    )


def find_supply(question: Question, needs: Needs) -> Supply:
    """Return the catalog that the question names, or the default one for the NodePools."""
    if question.catalog is None:
        return usual_catalog(needs)
    return find_catalog(question.catalog, read_text)(needs)


def with_catalog(
    snapshot: Snapshot,
    question: Question,
    supply: Supply,
    findings: Sequence[Finding] = (),
    origins: Origins = _NOWHERE,
) -> ClusterInput:
    """Combine a snapshot and a catalog; add findings for types that the catalog lacks."""
    snapshot = replace(snapshot, catalog=supply.catalog, repair=question.repair)
    all_findings = (*findings, *supply.findings, *find_narrowing(snapshot, supply, origins))
    return ClusterInput(_with_overlays(snapshot), all_findings, supply.name, supply.is_estimate)


def decide_cluster(cluster: ClusterInput, question: Question) -> Decided:
    """Decide about the pending pods of a cluster."""
    started = time.perf_counter()
    deadline = started + question.timeout if question.timeout else float("inf")
    verdict = decide(cluster.snapshot, keep_going=lambda: time.perf_counter() < deadline)
    return Decided(cluster, verdict, time.perf_counter() - started)


def _with_overlays(snapshot: Snapshot) -> Snapshot:
    """Apply the NodeOverlays of the input, whatever the feature gate says."""
    settings = replace(snapshot.settings, node_overlay=bool(snapshot.overlays))
    return with_overlays(replace(snapshot, settings=settings))


def read_sources(files: Iterable[str], stdin: IO[str]) -> Sources:
    """
    Read each file, each manifest of each directory, and standard input for `-`.

    An unreadable file of a directory becomes a finding; the other files are read.
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
    """Say whether a path is a folder; raise FileUnreadable if it is not a valid path."""
    try:
        return path.is_dir()
    except OSError as error:
        raise FileUnreadable(path=str(path), problem=error.strerror or str(error)) from error


def read_text(path: Path) -> str:
    """Read a text file; raise FileUnreadable."""
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
    """Decode a file in UTF-8, or in UTF-16, which PowerShell writes when it redirects output."""
    encoding = "utf-16" if content.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8-sig"
    return content.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")


def _no_text(path: str) -> FileUnreadable:
    return FileUnreadable(path=path, problem="it is not UTF-8 text", hint="save it as UTF-8")
