"""
Recorded decisions: JSON lines that can be replayed, bit for bit.

A line holds the snapshot and the verdict. The catalog hardly changes from one decision to the
next, so it has a line of its own, which the other lines name by its digest:

    {"karpy": "catalog/v1", "digest": "…", "catalog": {…}}
    {"karpy": "decision/v1", "by": "0.1.0", "catalog": "…", "snapshot": {…}, "verdict": {…}}
    {"karpy": "disruption/v2", "by": "0.1.0", "catalog": "…", "question": {…}, "snapshot": {…},
     "verdict": {…}}
    {"karpy": "pool/v1", "by": "0.1.0", "question": {…}, "verdict": {…}}
"""

from collections.abc import Callable
from datetime import datetime
from hashlib import sha256
from typing import Final, Literal, ParamSpec, TypeVar

from msgspec import DecodeError, Raw, Struct, ValidationError
from msgspec.json import Decoder, Encoder
from msgspec.structs import replace

from karpy.codec.sharing import (
    SharedCatalog,
    SharedSnapshot,
    join_catalog,
    join_snapshot,
    share_catalog,
    share_snapshot,
)
from karpy.codec.verdicts import disruption_to_json, pool_verdict_to_json, verdict_to_json
from karpy.model.commands import DisruptionVerdict
from karpy.model.instances import Catalog
from karpy.model.snapshot import NodeQuestion, PoolQuestion, Snapshot
from karpy.model.verdicts import PoolVerdict, Verdict

P = ParamSpec("P")
T = TypeVar("T")

_CATALOG: Final = "catalog/v1"
_DECISION: Final = "decision/v1"
_DISRUPTION: Final = "disruption/v2"
_POOL: Final = "pool/v1"
_DIGEST_LENGTH: Final = 16


class RecordingInvalid(ValueError):
    """A line is no recording that this version can read."""


class CatalogLine(Struct, frozen=True, tag_field="karpy", tag=_CATALOG):
    """A catalog."""

    digest: str
    catalog: SharedCatalog


class DecisionLine(Struct, frozen=True, tag_field="karpy", tag=_DECISION):
    """One decision; the verdict is kept as it was written."""

    by: str
    """The version of Karpy that decided."""
    catalog: str
    """Digest of the catalog."""
    snapshot: SharedSnapshot
    verdict: Raw


class DisruptionLine(Struct, frozen=True, tag_field="karpy", tag=_DISRUPTION):
    """One decision about the disruption of nodes; the verdict is kept as it was written."""

    by: str
    """The version of Karpy that decided."""
    catalog: str
    """Digest of the catalog."""
    question: NodeQuestion
    """The question, with an empty snapshot."""
    snapshot: SharedSnapshot
    verdict: Raw


class PoolLine(Struct, frozen=True, tag_field="karpy", tag=_POOL):
    """One decision about the size of a NodePool; the verdict is kept as it was written."""

    by: str
    """The version of Karpy that decided."""
    question: PoolQuestion
    verdict: Raw


class Recording(Struct, frozen=True):
    """One decision, with its snapshot and verdict."""

    by: str
    snapshot: Snapshot
    verdict: bytes
    """As `verdict_to_json` writes it."""

    @property
    def moment(self) -> datetime:
        return self.snapshot.now


class DisruptionRecording(Struct, frozen=True):
    """One decision about the disruption of nodes, with its question and verdict."""

    by: str
    question: NodeQuestion
    verdict: bytes
    """As `disruption_to_json` writes it."""

    @property
    def moment(self) -> datetime:
        return self.question.snapshot.now


class PoolRecording(Struct, frozen=True):
    """One decision about the size of a NodePool, with its question and verdict."""

    by: str
    question: PoolQuestion
    verdict: bytes
    """As `pool_verdict_to_json` writes it."""

    @property
    def moment(self) -> datetime:
        return self.question.now


AnyRecording = Recording | DisruptionRecording | PoolRecording
"""Any decision that a journal holds."""


class _Head(Struct):
    karpy: Literal["catalog/v1", "decision/v1", "disruption/v2", "pool/v1"]


_Line = CatalogLine | DecisionLine | DisruptionLine | PoolLine
_ENCODER: Final = Encoder(order="deterministic")
"""Sorts sets, whose order differs between processes."""
_HEAD: Final = Decoder(_Head)
_LINE: Final = Decoder(_Line)


def encode_catalog(catalog: Catalog) -> tuple[str, bytes]:
    """Return the digest of a catalog, and the catalog as a line."""
    shared = share_catalog(catalog)
    digest = sha256(_ENCODER.encode(shared)).hexdigest()[:_DIGEST_LENGTH]
    return digest, _ENCODER.encode(CatalogLine(digest, shared)) + b"\n"


def encode_decision(snapshot: Snapshot, verdict: Verdict, catalog: str, by: str) -> bytes:
    """Write a decision as a line; `catalog` is the digest of its catalog."""
    line = DecisionLine(by, catalog, share_snapshot(snapshot), Raw(verdict_to_json(verdict)))
    return _ENCODER.encode(line) + b"\n"


def encode_disruption(
    question: NodeQuestion, verdict: DisruptionVerdict, catalog: str, by: str
) -> bytes:
    """Write a decision about nodes as a line; `catalog` is the digest of its catalog."""
    bare = replace(question, snapshot=Snapshot(now=question.snapshot.now))
    shared = share_snapshot(question.snapshot)
    line = DisruptionLine(by, catalog, bare, shared, Raw(disruption_to_json(verdict)))
    return _ENCODER.encode(line) + b"\n"


def encode_pool(question: PoolQuestion, verdict: PoolVerdict, by: str) -> bytes:
    """Write a decision about the size of a NodePool as a line."""
    line = PoolLine(by, question, Raw(pool_verdict_to_json(verdict)))
    return _ENCODER.encode(line) + b"\n"


class RecordingReader:
    """Reads lines one after the other, and keeps catalogs for the decisions that name them."""

    def __init__(self) -> None:
        self._catalogs: dict[str, Catalog] = {}

    def read(self, line: bytes) -> AnyRecording | None:
        """Return the decision of a line, or None if it holds none; raise RecordingInvalid."""
        read = _read(line)
        if isinstance(read, CatalogLine):
            self._catalogs[read.digest] = _joined(join_catalog, read.catalog)
            return None
        if isinstance(read, PoolLine):
            return PoolRecording(read.by, read.question, bytes(read.verdict))
        catalog, verdict = self._catalog(read.catalog), bytes(read.verdict)
        if isinstance(read, DecisionLine):
            snapshot = _joined(join_snapshot, read.snapshot, catalog)
            return Recording(read.by, snapshot, verdict)
        snapshot = _joined(join_snapshot, read.snapshot, catalog)
        return DisruptionRecording(read.by, replace(read.question, snapshot=snapshot), verdict)

    def _catalog(self, digest: str) -> Catalog:
        catalog = self._catalogs.get(digest)
        if catalog is None:
            raise RecordingInvalid(f"what was on sale ({digest}) is not recorded before it")
        return catalog


def _read(line: bytes) -> _Line:
    try:
        read: _Line = _LINE.decode(line)
    except RecursionError as error:
        raise RecordingInvalid("it is nested too deeply") from error
    except ValidationError as error:
        raise RecordingInvalid(_why(line, error)) from error
    except DecodeError as error:
        raise RecordingInvalid(f"it is cut off or no JSON: {error}") from error
    return read


def _joined(join: Callable[P, T], *parts: P.args, **more: P.kwargs) -> T:
    try:
        return join(*parts, **more)
    except IndexError as error:
        raise RecordingInvalid("a row names a part that is not there") from error


def _why(line: bytes, error: ValidationError) -> str:
    try:
        _HEAD.decode(line)
    except ValidationError:
        kinds = f"{_CATALOG} nor {_DECISION} nor {_DISRUPTION} nor {_POOL}"
        return f"it is neither {kinds}; another version of karpy may read it"
    return f"its fields are not what this karpy expects: {error}"
