"""Pods and hashes made from pod templates."""

from typing import Final
from zlib import crc32

import msgspec

from karpy.codec.fields import JsonObject
from karpy.sim.store.sharing import remembered

TEMPLATE_HASH: Final = "pod-template-hash"
_SAFE: Final = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels and no similar characters, so that no hash is a word."""
_GENERATED_MAX: Final = 253
_ENCODER: Final = msgspec.json.Encoder(order="sorted")


def pod_of(template: JsonObject, namespace: str, owner: JsonObject) -> JsonObject:
    """Return the pod of a template, without a name."""
    given = template.get("metadata") or {}
    meta = {
        field: given[field] for field in ("labels", "annotations", "finalizers") if given.get(field)
    }
    meta["namespace"] = namespace
    meta["generateName"] = f"{owner['name']}-"[:_GENERATED_MAX]
    meta["ownerReferences"] = [owner]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]}


def with_label(obj: JsonObject, key: str, value: str) -> JsonObject:
    """Return an object, or a template, with one more label."""
    meta = obj.get("metadata") or {}
    return {**obj, "metadata": {**meta, "labels": {**(meta.get("labels") or {}), key: value}}}


def hash_of(content: object, collisions: int | None = None) -> str:
    """Return a short hash of some content, which differs after a collision."""
    data = _ENCODER.encode(content)
    if collisions is not None:
        data += collisions.to_bytes(8, "little")
    return "".join(_SAFE[ord(digit) % len(_SAFE)] for digit in str(crc32(data)))


def is_same_template(one: JsonObject, other: JsonObject) -> bool:
    """Say whether two templates are equal apart from the hash label."""
    return content_of(one) == content_of(other)


def _without_hash(template: JsonObject) -> bytes:
    meta = {key: value for key, value in (template.get("metadata") or {}).items() if value}
    labels = {key: value for key, value in meta.pop("labels", {}).items() if key != TEMPLATE_HASH}
    return _ENCODER.encode((template.get("spec"), meta, labels))


content_of: Final = remembered(_without_hash)
"""Returns the encoded template without its hash label, for comparisons."""
