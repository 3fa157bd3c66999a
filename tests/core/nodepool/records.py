"""Builders of NodePool and NodeClaim records."""

from collections.abc import Mapping, Sequence
from typing import TypedDict, Unpack

from karpy.codec.records import CLAIM_DEPENDENTS, POOL_DEPENDENTS
from karpy.model.conditions import Condition, Conditions
from karpy.model.labels import NODE_POOL
from karpy.model.records import ClaimRecord, Identity, PoolRecord
from karpy.model.resources import Resources
from tests.builders.pods import NOON


class PoolFields(TypedDict, total=False):
    """Fields of a NodePool."""

    generation: int
    annotations: Mapping[str, str]
    conditions: Sequence[Condition]
    replicas: int
    limits: Resources
    deleting: bool


def pool(name: str = "web", **fields: Unpack[PoolFields]) -> PoolRecord:
    """Build a NodePool without conditions."""
    return PoolRecord(
        Identity(
            name,
            f"uid-{name}",
            generation=fields.get("generation", 1),
            created=NOON,
            deleted=NOON if fields.get("deleting") else None,
            annotations=fields.get("annotations", {}),
        ),
        replicas=fields.get("replicas"),
        limits=fields.get("limits", {}),
        conditions=Conditions(tuple(fields.get("conditions", ())), POOL_DEPENDENTS),
    )


class ClaimFields(TypedDict, total=False):
    """Fields of a NodeClaim."""

    pool: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    conditions: Sequence[Condition]
    provider_id: str
    deleting: bool


def claim(name: str, **fields: Unpack[ClaimFields]) -> ClaimRecord:
    """Build a claim of the pool `web`."""
    return ClaimRecord(
        Identity(
            name,
            f"uid-{name}",
            created=NOON,
            deleted=NOON if fields.get("deleting") else None,
            labels={NODE_POOL: fields.get("pool", "web"), **fields.get("labels", {})},
            annotations=fields.get("annotations", {}),
        ),
        provider_id=fields.get("provider_id", f"kwok://{name}"),
        conditions=Conditions(tuple(fields.get("conditions", ())), CLAIM_DEPENDENTS),
    )
