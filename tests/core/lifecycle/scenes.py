"""Claims, nodes and pods for tests of the lifecycle."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, TypedDict, Unpack

from msgspec.structs import replace

from karpy.codec.records import CLAIM_DEPENDENTS, POOL_DEPENDENTS
from karpy.core.lifecycle.changes import FINALIZER
from karpy.core.lifecycle.conditions import with_initial_conditions
from karpy.model.conditions import TRUE, UNKNOWN, Condition, Conditions
from karpy.model.constraints import Taint, Toleration
from karpy.model.labels import CAPACITY_TYPE, NODE_POOL, SPOT, ZONE
from karpy.model.notices import Notice
from karpy.model.pods import Owner as PodOwner
from karpy.model.pods import Pod, PodDisruption, PodRules, PodVolume
from karpy.model.records import ClaimRecord, Identity, NodeRecord, OwnerReference, PoolRecord
from tests.builders.nodes import NODE_CLASS, NODE_CLASS_LABEL
from tests.builders.pods import NOON

PROVIDER_ID: Final = "kwok://web-1"
POOL_OWNER: Final = OwnerReference("karpenter.sh/v1", "NodePool", "web", "uid-web", True)
UNREGISTERED: Final = Taint("karpenter.sh/unregistered", "NoExecute")
DISRUPTED: Final = Taint("karpenter.sh/disrupted", "NoSchedule")


class ClaimFields(TypedDict, total=False):
    """Fields of a claim; `said` are the conditions that are True, with how long they have been."""

    age: timedelta
    deleted: timedelta
    """How long ago the claim was deleted."""
    generation: int
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    pool: str
    said: Mapping[str, timedelta]
    requests: Mapping[str, int]
    capacity: Mapping[str, int]
    taints: Sequence[Taint]
    startup_taints: Sequence[Taint]
    provider_id: str
    grace_period: timedelta
    expire_after: timedelta
    finalizers: Sequence[str]


def claim(**fields: Unpack[ClaimFields]) -> ClaimRecord:
    """Build a claim `web-1` of the pool `web`, a minute old, launched if it has a provider ID."""
    provider_id = fields.get("provider_id", PROVIDER_ID)
    pool_name = fields.get("pool", "web")
    age = fields.get("age", timedelta(minutes=1))
    labels = {CAPACITY_TYPE: SPOT, ZONE: "zone-a", **fields.get("labels", {})}
    deleted = fields.get("deleted")
    record = ClaimRecord(
        meta=Identity(
            name="web-1",
            uid="uid-web-1",
            generation=fields.get("generation", 1),
            created=NOON - age,
            deleted=None if deleted is None else NOON - deleted,
            labels={**({NODE_POOL: pool_name} if pool_name else {}), **labels},
            annotations=fields.get("annotations", {}),
            finalizers=tuple(fields.get("finalizers", (FINALIZER,))),
            owners=(POOL_OWNER,) if pool_name else (),
        ),
        node_class=NODE_CLASS,
        requests=fields.get("requests", {"cpu": 1000}),
        capacity=fields.get("capacity", {}),
        taints=tuple(fields.get("taints", ())),
        startup_taints=tuple(fields.get("startup_taints", ())),
        expire_after=fields.get("expire_after"),
        grace_period=fields.get("grace_period"),
        provider_id=provider_id,
        conditions=Conditions((), CLAIM_DEPENDENTS),
    )
    record = with_initial_conditions(record, NOON - age)
    said = {**({"Launched": age} if provider_id else {}), **fields.get("said", {})}
    conditions = record.conditions
    for type_, since in said.items():
        condition = Condition(type_, TRUE, NOON, type_, "", record.meta.generation)
        conditions = conditions.with_condition(condition, NOON - since)
    return replace(record, conditions=conditions)


def condition_of(record: ClaimRecord | PoolRecord | None, type_: str) -> tuple[str, str, str]:
    """Return status, reason and message of a condition."""
    assert record is not None
    found = record.conditions.get(type_)
    return ("absent", "", "") if found is None else (found.status, found.reason, found.message)


class NodeFields(TypedDict, total=False):
    """Fields of a Node."""

    name: str
    is_ready: bool
    deleted: timedelta
    labels: Mapping[str, str]
    taints: Sequence[Taint]
    capacity: Mapping[str, int]
    conditions: Sequence[Condition]
    finalizers: Sequence[str]


def node(**fields: Unpack[NodeFields]) -> NodeRecord:
    """Build a Ready Node `node-1` of the claim's machine, an hour old."""
    capacity = fields.get("capacity", {"cpu": 4000})
    name, deleted = fields.get("name", "node-1"), fields.get("deleted")
    status = TRUE if fields.get("is_ready", True) else UNKNOWN
    return NodeRecord(
        meta=Identity(
            name=name,
            uid=f"uid-{name}",
            created=NOON - timedelta(hours=1),
            deleted=None if deleted is None else NOON - deleted,
            labels={NODE_POOL: "web", ZONE: "zone-a", **fields.get("labels", {})},
            finalizers=tuple(fields.get("finalizers", (FINALIZER,))),
        ),
        provider_id=PROVIDER_ID,
        taints=tuple(fields.get("taints", ())),
        capacity=capacity,
        allocatable=capacity,
        conditions=(Condition("Ready", status, NOON), *fields.get("conditions", ())),
    )


def pool(
    *,
    generation: int = 1,
    class_generation: int | None = 1,
    conditions: Sequence[Condition] = (),
    annotations: Mapping[str, str] | None = None,
) -> PoolRecord:
    """Build the NodePool `web`."""
    return PoolRecord(
        Identity("web", "uid-web", generation=generation, annotations=annotations or {}),
        class_generation=class_generation,
        conditions=Conditions(tuple(conditions), POOL_DEPENDENTS),
    )


class BoundFields(TypedDict, total=False):
    """Fields of a bound pod."""

    uid: str
    phase: str
    started: datetime | None
    deleted: datetime
    do_not_disrupt: str
    priority_class: str
    grace: timedelta
    tolerations: Sequence[Toleration]
    claims: Sequence[str]
    owner: tuple[str, str]


def bound(name: str, **fields: Unpack[BoundFields]) -> Pod:
    """Build a running pod `shop/NAME` on `node-1`, an hour old."""
    claims = fields.get("claims", ())
    owners = (PodOwner(*fields["owner"]),) if "owner" in fields else ()
    return Pod(
        name=name,
        namespace="shop",
        uid=fields.get("uid", f"uid-{name}"),
        created=NOON - timedelta(hours=1),
        labels={},
        requests={},
        rules=PodRules(
            tolerations=tuple(fields.get("tolerations", ())),
            volumes=tuple(PodVolume(each, each) for each in claims),
        ),
        node_name="node-1",
        phase=fields.get("phase", "Running"),
        is_deleting="deleted" in fields,
        owners=owners,
        disruption=PodDisruption(
            do_not_disrupt=fields.get("do_not_disrupt"),
            priority_class=fields.get("priority_class", ""),
            grace=fields.get("grace", timedelta(seconds=30)),
        ),
        started=fields.get("started", NOON - timedelta(hours=1)),
        deleted=fields.get("deleted"),
    )


def texts_of(notices: Sequence[Notice]) -> list[tuple[str, str, str]]:
    """Return kind, reason and text of notices."""
    return [(each.subject.kind.name, each.reason, each.note) for each in notices]


CLASS_LABEL: Final = {NODE_CLASS_LABEL: NODE_CLASS.name}
