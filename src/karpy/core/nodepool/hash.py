"""
The hash of a NodePool, and which objects carry it: a NodeClaim with another one has drifted.

The numbers are those of Karpenter: with others, every node of a cluster that is taken over drifts.
They are those of mitchellh/hashstructure v2, FormatV2 over FNV-1 of 64 bits, with lists as sets and
without zero values; node classes of clouds are hashed in the same way.
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
"""Of the way to hash; hashes of different versions say nothing about each other."""
_MICROSECOND: Final = timedelta(microseconds=1)
_START: Final = 0xCBF29CE484222325
_PRIME: Final = 0x100000001B3
_MASK: Final = 2**64 - 1
_WORD: Final = 8


class Stamped(Struct, frozen=True, gc=False):
    """A pool and some of its claims with their new hashes; the claims are to be written first."""

    pool: PoolRecord
    claims: tuple[ClaimRecord, ...] = ()
    """The claims that change."""


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
    """Return the annotations that carry the hash of a template on pools and claims."""
    return {NODE_POOL_HASH: digest, NODE_POOL_HASH_VERSION: VERSION}


def stamp(pool: PoolRecord, digest: str, claims: Iterable[ClaimRecord]) -> Stamped:
    """
    Annotate a pool with the hash of its template; its claims, too, if the hash version is new.

    A claim that has drifted already keeps its old hash, so that it stays drifted.
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
    """Hash a struct that is left out of another one if nothing is in it."""
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
    # A period of nothing is there, though empty: the struct is hashed without its field.
    return hash_struct("Duration", [("Duration", _nanoseconds(period) if period else None)])


def _expire_after(period: timedelta | None) -> int | None:
    if period is None:
        return None
    # This one is a pointer: a period of nothing is a number, and is hashed.
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
    """Hash a list whose order does not matter; an element that is there twice cancels out."""
    return reduce(xor, hashes, 0)


def hash_struct(name: str, fields: Iterable[tuple[str, int | None]]) -> int:
    """Hash a struct by its type's name and its fields in their order; None is a zero value."""
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
