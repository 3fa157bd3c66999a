"""
The hash of a NodePool and its annotations: a NodeClaim with another hash has drifted.

The hashes equal Karpenter's; otherwise every node of a migrated cluster would drift. The algorithm
is that of mitchellh/hashstructure v2: FormatV2 over 64-bit FNV-1, lists as sets, zero values left
out. Node classes of clouds are hashed in the same way.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import reduce
from operator import xor
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.lifecycle.changes import with_annotations
from karpy.core.lifecycle.conditions import DRIFTED
from karpy.model.constraints import Taint
from karpy.model.labels import NODE_POOL_HASH, NODE_POOL_HASH_VERSION
from karpy.model.pools import PoolTemplate
from karpy.model.records import ClaimRecord, NodeClassRef, PoolRecord

VERSION: Final = "v3"
"""The version of the hash; hashes of different versions cannot be compared."""
_MICROSECOND: Final = timedelta(microseconds=1)
_START: Final = 0xCBF29CE484222325
_PRIME: Final = 0x100000001B3
_MASK: Final = 2**64 - 1
_WORD: Final = 8


class Stamped(Struct, frozen=True, gc=False):
    """A pool and its NodeClaims with their new hashes; the NodeClaims must be written first."""

    pool: PoolRecord
    claims: tuple[ClaimRecord, ...] = ()
    """The NodeClaims that change."""


def hash_template(template: PoolTemplate) -> str:
    """Hash the part of a template that static drift compares: all but its requirements."""
    meta = [
        ("Labels", None if template.labels is None else hash_texts(template.labels)),
        ("Annotations", None if template.annotations is None else hash_texts(template.annotations)),
    ]
    spec = [
        ("Taints", _taints(template.taints)),
        ("StartupTaints", _taints(template.startup_taints)),
        ("NodeClassRef", _node_class(template.node_class)),
        ("TerminationGracePeriod", _grace_period(template.grace_period)),
        ("ExpireAfter", _expire_after(template.expire_after)),
    ]
    parts = [
        ("ObjectMeta", _unless_zero("ObjectMeta", meta)),
        ("Spec", _unless_zero("NodeClaimTemplateSpec", spec)),
    ]
    return str(hash_struct("NodeClaimTemplate", parts))


def hash_annotations(digest: str) -> dict[str, str]:
    """Return the hash annotations of a NodePool and its NodeClaims."""
    return {NODE_POOL_HASH: digest, NODE_POOL_HASH_VERSION: VERSION}


def stamp(pool: PoolRecord, digest: str, claims: Iterable[ClaimRecord]) -> Stamped:
    """
    Annotate a pool with its hash, and also its NodeClaims if the hash version of the pool is old.

    A NodeClaim that has drifted keeps its old hash, so that it stays drifted.
    """
    stamped = _annotated(pool, hash_annotations(digest))
    if pool.meta.annotations.get(NODE_POOL_HASH_VERSION) == VERSION:
        return Stamped(stamped)
    return Stamped(stamped, tuple(_restamped(each, digest) for each in claims if _is_old(each)))


def _annotated(pool: PoolRecord, annotations: dict[str, str]) -> PoolRecord:
    if annotations.items() <= pool.meta.annotations.items():
        return pool
    return replace(pool, meta=with_annotations(pool.meta, annotations))


def _is_old(claim: ClaimRecord) -> bool:
    return claim.meta.annotations.get(NODE_POOL_HASH_VERSION) != VERSION


def _restamped(claim: ClaimRecord, digest: str) -> ClaimRecord:
    written = {NODE_POOL_HASH_VERSION: VERSION}
    if claim.conditions.get(DRIFTED) is None:
        written[NODE_POOL_HASH] = digest
    return replace(claim, meta=with_annotations(claim.meta, written))


def _unless_zero(name: str, fields: list[tuple[str, int | None]]) -> int | None:
    """Hash a nested struct; None if all its fields are zero values."""
    return None if all(value is None for _, value in fields) else hash_struct(name, fields)


def _text(text: str) -> int | None:
    return hash_text(text) if text else None


def _taints(taints: tuple[Taint, ...] | None) -> int | None:
    return None if taints is None else hash_set(_taint(each) for each in taints)


def _taint(taint: Taint) -> int:
    fields = [
        ("Key", _text(taint.key)),
        ("Value", _text(taint.value)),
        ("Effect", _text(taint.effect)),
    ]
    return hash_struct("Taint", fields)


def _node_class(ref: NodeClassRef | None) -> int | None:
    if ref is None:
        return None
    fields = [("Kind", _text(ref.kind)), ("Name", _text(ref.name)), ("Group", _text(ref.group))]
    return hash_struct("NodeClassReference", fields)


def _grace_period(period: timedelta | None) -> int | None:
    if period is None:
        return None
    # A period of zero: the field is a zero value and left out, the struct is hashed.
    return hash_struct("Duration", [("Duration", _nanoseconds(period) if period else None)])


def _expire_after(period: timedelta | None) -> int | None:
    if period is None:
        return None
    # This field is a pointer in Go: a period of zero is not a zero value, and is hashed.
    return hash_struct("NillableDuration", [("Duration", _nanoseconds(period))])


def _nanoseconds(period: timedelta) -> int:
    return hash_integer(period // _MICROSECOND * 1000)


def hash_text(text: str) -> int:
    """Hash a string."""
    return hash_bytes(text.encode())


def hash_integer(number: int) -> int:
    """Hash an `int64`, a `time.Duration` among them."""
    return hash_bytes(number.to_bytes(_WORD, "little", signed=True))


def hash_texts(texts: Mapping[str, str]) -> int:
    """Hash a map from strings to strings."""
    return hash_map({key: hash_text(value) for key, value in texts.items()})


def hash_map(values: Mapping[str, int]) -> int:
    """Hash a map from strings to values that are hashed already."""
    pairs = (_ordered(hash_text(key), value) for key, value in values.items())
    return _finished(reduce(xor, pairs, 0))


def hash_set(hashes: Iterable[int]) -> int:
    """Hash a list whose order does not matter; two equal elements cancel each other out."""
    return reduce(xor, hashes, 0)


def hash_struct(name: str, fields: Iterable[tuple[str, int | None]]) -> int:
    """Hash a struct by the name of its type and its fields in order; None is a zero value."""
    total = hash_text(name)
    for key, value in fields:
        if value is not None:
            total = _finished(total ^ _ordered(hash_text(key), value))
    return total


def _ordered(first: int, second: int) -> int:
    return hash_bytes(first.to_bytes(_WORD, "little") + second.to_bytes(_WORD, "little"))


def _finished(total: int) -> int:
    return hash_bytes(total.to_bytes(_WORD, "little"))


def hash_bytes(data: bytes) -> int:
    """Hash the bytes of a value."""
    total = _START
    for byte in data:
        total = (total * _PRIME & _MASK) ^ byte
    return total
