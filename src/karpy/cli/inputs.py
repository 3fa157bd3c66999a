"""Files, directories and standard input to documents, and documents to a decided question."""

import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Final

from msgspec import Struct

from karpy.cli.options import STDIN, Question
from karpy.cli.terminal import Span, Style, Terminal, line
from karpy.codec.catalogs import kwok_catalog, read_catalog
from karpy.codec.jsontext import check_keys, parse_json
from karpy.codec.limits import Unparsable
from karpy.codec.manifests import Reading, read_manifests
from karpy.core.scheduling.decide import decide
from karpy.errors import CatalogInvalid, FileUnreadable
from karpy.model.instances import Catalog
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Verdict

_SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})

_ENDLESS: Final = frozenset({"full", "random", "urandom", "zero"})


class Decided(Struct, frozen=True):
    """A question, its answer, and how long the answer took."""

    snapshot: Snapshot
    verdict: Verdict
    seconds: float
    problems: int


def decide_files(files: Sequence[str], question: Question, terminal: Terminal) -> Decided:
    """Read manifests, tell what could not be read, and decide on the rest."""
    documents = read_documents(files, terminal.stdin)
    return decide_documents(documents, question, terminal)


def decide_documents(
    documents: Sequence[tuple[str, str]], question: Question, terminal: Terminal
) -> Decided:
    """Decide on documents given as name and text."""
    reading = read_manifests(
        documents,
        catalog=_catalog(question.catalog),
        settings=question.settings,
        now=question.now or datetime.now(UTC),
    )
    _tell_reading(reading, terminal)
    started = time.perf_counter()
    deadline = started + question.timeout if question.timeout else float("inf")
    verdict = decide(reading.snapshot, keep_going=lambda: time.perf_counter() < deadline)
    seconds = time.perf_counter() - started
    return Decided(reading.snapshot, verdict, seconds, len(reading.problems))


def read_documents(files: Iterable[str], stdin: IO[str]) -> list[tuple[str, str]]:
    """Read each file, each manifest of each directory, and standard input for `-`."""
    documents = []
    for name in files:
        if name == STDIN:
            documents.append(("<stdin>", _text_of(stdin)))
            continue
        path = Path(name)
        paths = _manifests_in(path) if is_folder(path) else [path]
        documents += [(str(each), read_text(each)) for each in paths]
    return documents


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
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileUnreadable(path=str(path), problem="it is not UTF-8 text") from error
    except OSError as error:
        problem = error.strerror or type(error).__name__
        raise FileUnreadable(path=str(path), problem=problem) from error
    except ValueError as error:
        raise FileUnreadable(path=str(path), problem="it is no path") from error


def _tell_reading(reading: Reading, terminal: Terminal) -> None:
    """Write on stderr what could not be read, and what was read in a particular way."""
    for problem in reading.problems:
        terminal.tell(
            line(Span("error: ", Style.BAD), f"{problem.message} ({problem.code})"),
            line(Span("  hint: ", Style.QUIET), problem.hint),
        )
    notes = list(reading.notes)
    if not reading.snapshot.pods:
        notes.append("the input holds no pod")
    for note in notes:
        terminal.tell(line(Span("note: ", Style.CARE), note))


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
        raise FileUnreadable(path="<stdin>", problem="it is not UTF-8 text") from error


def _catalog(path: Path | None) -> Catalog:
    if path is None:
        return kwok_catalog()
    text = read_text(path)
    try:
        value = parse_json(text)
        check_keys(text, value)
    except Unparsable as error:
        raise CatalogInvalid(path=str(path), problem=f"it is not JSON ({error})") from error
    return read_catalog(value, str(path))
