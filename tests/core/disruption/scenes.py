"""Nodes, their pods and the cluster around them, for tests of disruption."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final, TypedDict, Unpack

from msgspec.structs import replace

from karpy.codec.records import CLAIM_DEPENDENTS, POOL_DEPENDENTS
from karpy.model.conditions import FALSE, TRUE, Condition, Conditions
from karpy.model.constraints import Taint
from karpy.model.disruption import Budget, DisruptionPolicy
from karpy.model.labels import (
    CAPACITY_TYPE,
    INITIALIZED,
    INSTANCE_TYPE,
    NODE_POOL,
    ON_DEMAND,
    REGISTERED,
    ZONE,
)
from karpy.model.leaving import LeavingPod
from karpy.model.notices import Notice
from karpy.model.pods import DisruptionBudget
from karpy.model.records import ClaimRecord, Identity, NodeRecord, PoolRecord
from karpy.model.refusals import NodeRefusal
from karpy.model.requirement import one_of
from karpy.model.surroundings import NodeState, Surroundings
from karpy.model.tenants import PodBudget, Tenant
from tests.builders import catalog, instance_type
from tests.builders.pods import NOON

DISRUPTED: Final = Taint("karpenter.sh/disrupted", "NoSchedule")
TYPES: Final = (
    instance_type("small", dollars=1.0),
    instance_type("large", dollars=4.0),
)
ALL: Final = DisruptionPolicy(budgets=())
"""A policy without budgets: everything may go at once."""


class NodeFields(TypedDict, total=False):
    """What a node may say; `said` are conditions of its claim that are True."""

    pool: str
    type: str
    tenants: Sequence[Tenant]
    annotations: Mapping[str, str]
    taints: Sequence[Taint]
    said: Sequence[str]
    ready: bool
    registered: bool
    initialized: bool
    deleting: bool
    age: timedelta
    expire_after: timedelta | None
    grace_period: timedelta | None
    nominated_for: timedelta
    marked: bool
    buffer_pods: int
    provider_id: str


def state(name: str, **fields: Unpack[NodeFields]) -> NodeState:
    """Build a ready, initialized and quiet node of the pool `web`, a dollar an hour."""
    nominated = fields.get("nominated_for")
    return NodeState(
        claim=_claim(name, fields),
        node=_node(name, fields),
        tenants=tuple(fields.get("tenants", ())),
        nominated_until=None if nominated is None else NOON + nominated,
        is_marked=fields.get("marked", False),
        buffer_pods=fields.get("buffer_pods", 0),
    )


def tenant(name: str, namespace: str = "shop", **changes: object) -> Tenant:
    """Build a running pod; changes are fields of Tenant or, failing that, of its pod."""
    own = {key: changes.pop(key) for key in Tenant.__struct_fields__ if key in changes}
    pod = LeavingPod(name, namespace, f"uid-{name}", phase="Running", started=NOON - HOUR)
    return replace(Tenant(replace(pod, **changes)), **own)


def pool(name: str = "web", *, replicas: int | None = None) -> PoolRecord:
    """Build a NodePool."""
    return PoolRecord(
        Identity(name, f"uid-{name}"),
        replicas=replicas,
        conditions=Conditions((), POOL_DEPENDENTS),
    )


def around(*nodes: NodeState, **changes: object) -> Surroundings:
    """Build a cluster with the dynamic pools `web` and `batch`, without budgets."""
    surroundings = Surroundings(
        now=NOON,
        nodes=nodes,
        pools={"web": pool(), "batch": pool("batch")},
        policies={"web": ALL, "batch": ALL},
        catalog=catalog(TYPES),
    )
    return replace(surroundings, **changes)


def budgets(*nodes: str) -> DisruptionPolicy:
    """Build a policy with budgets that hold always, for every reason."""
    return DisruptionPolicy(budgets=tuple(Budget(each) for each in nodes))


def pod_budget(name: str, allowed: int | None = 0, **changes: object) -> PodBudget:
    """Build a PodDisruptionBudget for the pods of `app: web` in `shop`."""
    selector = (one_of("app", "web"),)
    budget = DisruptionBudget(name, "shop", selector, disruptions_allowed=allowed)
    return replace(PodBudget(budget), **changes)


def told(notices: Sequence[Notice]) -> list[tuple[str, str, str, str]]:
    """Return kind, name, reason and text of notices."""
    return [(each.subject.kind.name, each.subject.name, each.reason, each.note) for each in notices]


def refused(refusals: Sequence[NodeRefusal]) -> list[tuple[str, str, str]]:
    """Return node, reason and detail of refusals."""
    return [(each.node, each.why.name, each.detail) for each in refusals]


HOUR: Final = timedelta(hours=1)


def _claim(name: str, fields: NodeFields) -> ClaimRecord:
    said = fields.get("said", ("Consolidatable",))
    conditions = tuple(Condition(each, TRUE, NOON - HOUR, each) for each in said)
    return ClaimRecord(
        Identity(
            f"{name}-claim",
            f"uid-{name}-claim",
            created=NOON - fields.get("age", HOUR),
            deleted=NOON if fields.get("deleting") else None,
            labels=_labels(fields),
        ),
        provider_id=fields.get("provider_id", f"kwok://{name}"),
        expire_after=fields.get("expire_after"),
        grace_period=fields.get("grace_period"),
        conditions=Conditions(conditions, CLAIM_DEPENDENTS),
    )


def _node(name: str, fields: NodeFields) -> NodeRecord:
    labels = _labels(fields)
    if fields.get("registered", True):
        labels[REGISTERED] = "true"
    if fields.get("initialized", True):
        labels[INITIALIZED] = "true"
    status = TRUE if fields.get("ready", True) else FALSE
    return NodeRecord(
        Identity(name, f"uid-{name}", labels=labels, annotations=fields.get("annotations", {})),
        provider_id=fields.get("provider_id", f"kwok://{name}"),
        taints=tuple(fields.get("taints", ())),
        conditions=(Condition("Ready", status, NOON - HOUR),),
    )


def _labels(fields: NodeFields) -> dict[str, str]:
    pool_name = fields.get("pool", "web")
    return {
        **({NODE_POOL: pool_name} if pool_name else {}),
        INSTANCE_TYPE: fields.get("type", "small"),
        ZONE: "zone-a",
        CAPACITY_TYPE: ON_DEMAND,
    }
