"""Hashes of NodePools as they are now: who keeps pools may not have written them down yet."""

from typing import Final

from karpy.codec.fields import FieldInvalid, Fields, JsonObject
from karpy.codec.memos import Memo
from karpy.codec.templates import read_template
from karpy.core.nodepool.hash import hash_annotations, hash_template
from karpy.errors import AnswerMalformed
from karpy.model.kinds import NODE_POOL
from karpy.model.records import PoolRecord
from karpy.ports.records import Kept

_POOLS_MOST: Final = 256


class Hashes:
    """Hashes each template once."""

    def __init__(self) -> None:
        self._digests: Memo[str, tuple[str, int, str]] = Memo(_POOLS_MOST)
        """UID, generation and digest, by pool."""

    def stamped(self, pool: Kept[PoolRecord]) -> JsonObject:
        """Return a NodePool with the hash of its template on it."""
        meta: JsonObject = pool.obj["metadata"]
        annotations = {**(meta.get("annotations") or {}), **hash_annotations(self._digest(pool))}
        return {**pool.obj, "metadata": {**meta, "annotations": annotations}}

    def _digest(self, pool: Kept[PoolRecord]) -> str:
        meta = pool.record.meta
        known = self._digests.get(meta.name)
        if known is None or known[:2] != (meta.uid, meta.generation):
            known = meta.uid, meta.generation, _hash(meta.name, pool.obj)
            self._digests.put(meta.name, known)
        return known[2]


def _hash(name: str, obj: JsonObject) -> str:
    try:
        return hash_template(read_template(Fields(obj)))
    except FieldInvalid as error:
        what = f"{NODE_POOL.name} `{name}` cannot be read: {error}"
        raise AnswerMalformed(what, hint=error.hint) from error
