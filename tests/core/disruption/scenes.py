"""
Clusters of a few nodes, their pods and NodePools, for tests of disruption.

    cluster(
        node("a", type="large"),
        node("b", spot=True),
        pods=[pod("web-0", on="a", cpu="2", do_not_disrupt="true")],
        pools=[pool(policy=budgets("1"))],
    )

A node is ready, initialized and consolidatable, of the NodePool `web`, and costs what its type
costs in `TYPES`. A pod runs in the namespace `shop` and has a node (`on`).
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, TypedDict, Unpack

from msgspec.structs import replace

from karpy.codec.records import CLAIM_DEPENDENTS, POOL_DEPENDENTS
from karpy.core.disruption.candidates import Candidate, find_candidates
from karpy.core.disruption.evaluation import Evaluation
from karpy.model.conditions import FALSE, READY, TRUE, Condition, Conditions
from karpy.model.constraints import Taint
from karpy.model.instances import InstanceType
from karpy.model.labels import (
    CAPACITY_TYPE,
    HOSTNAME,
    INITIALIZED,
    INSTANCE_TYPE,
    NODE_POOL,
    ON_DEMAND,
    REGISTERED,
    RESERVED,
    SPOT,
    ZONE,
)
from karpy.model.nodes import Node, join_node
from karpy.model.notices import Notice
from karpy.model.pods import (
    DAEMON_SET,
    NODE,
    STATEFUL_SET,
    DisruptionBudget,
    Owner,
    Pod,
    PodDisruption,
)
from karpy.model.pools import Budget, ConsolidationPolicy, DisruptionPolicy, NodePool
from karpy.model.records import ClaimRecord, Identity, NodeRecord, PoolRecord
from karpy.model.requirements import one_of
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import NodeRefusal
from tests.builders import (
    NODE_CLASS,
    NODE_CLASS_LABEL,
    NOON,
    RESERVATION,
    ZONE_A,
    catalog,
    instance_type,
)
from tests.builders import pod as any_pod
from tests.builders import pool as any_pool
from tests.builders.nodes import PoolFields as AnyPoolFields
from tests.builders.pods import PodFields as AnyPodFields

HOUR: Final = timedelta(hours=1)
MINUTE: Final = timedelta(minutes=1)
DOLLAR: Final = 1_000_000
"""A dollar in micro-dollars."""
DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
DISRUPTED: Final = Taint("karpenter.sh/disrupted", "NoSchedule")
TYPES: Final = (
    instance_type("small", cpu="4", memory="16Gi", dollars=1.0, spot_dollars=0.4),
    instance_type("medium", cpu="8", memory="32Gi", dollars=2.0, spot_dollars=0.8),
    instance_type("large", cpu="16", memory="64Gi", dollars=4.0, spot_dollars=1.6),
)
"""The default catalog."""
ALL: Final = DisruptionPolicy(budgets=())
"""A policy without budgets: any number of nodes may be disrupted at once."""
WHEN_EMPTY: Final = replace(ALL, consolidation=ConsolidationPolicy.WHEN_EMPTY)
BALANCED: Final = replace(ALL, consolidation=ConsolidationPolicy.BALANCED)
NEVER: Final = replace(ALL, consolidate_after=None)
WEB: Final[Mapping[str, str]] = {"app": "web"}
"""The labels that `pod_budget` selects."""
_TYPES_BY_NAME: Final = {each.name: each for each in TYPES}


# --- nodes ---------------------------------------------------------------------------------------


class NodeFields(TypedDict, total=False):
    """Fields of a node; `true_conditions` are those of its NodeClaim."""

    pool: str
    type: str | InstanceType
    zone: str
    spot: bool
    reservation: str
    """The reservation that the node uses."""
    labels: Mapping[str, str]
    """Further labels; an empty value takes a label away."""
    annotations: Mapping[str, str]
    taints: Sequence[Taint]
    true_conditions: Sequence[str]
    conditions_since: datetime
    ready: bool
    conditions: Sequence[Condition]
    """Conditions of the Node in place of Ready."""
    registered: bool
    initialized: bool
    deleting: bool
    """Whether its NodeClaim has a deletionTimestamp."""
    replaced: bool
    """Whether a command is about to delete it."""
    age: timedelta
    expire_after: timedelta | None
    grace_period: timedelta | None
    last_pod_event: datetime | None
    nominated_for: timedelta
    buffer_pods: int
    unreadable: str
    foreign: bool
    provider_id: str


def node(name: str, **fields: Unpack[NodeFields]) -> Node:
    """Build a node with its Node and its NodeClaim, `<name>-claim`."""
    nominated = fields.get("nominated_for")
    made = join_node(node_record(name, **fields), claim_record(name, **fields))
    return replace(
        made,
        is_deleting=made.is_deleting or fields.get("replaced", False),
        nominated_until=None if nominated is None else NOON + nominated,
        buffer_pods=fields.get("buffer_pods", 0),
        unreadable=fields.get("unreadable", ""),
        is_foreign=fields.get("foreign", False),
    )


def only_claim(name: str, **fields: Unpack[NodeFields]) -> Node:
    """Build a NodeClaim that has no Node yet."""
    return join_node(None, claim_record(name, **fields))


def only_node(name: str, **fields: Unpack[NodeFields]) -> Node:
    """Build a Node without a NodeClaim."""
    return join_node(node_record(name, **fields), None)


def claim_record(name: str, **fields: Unpack[NodeFields]) -> ClaimRecord:
    """Build the NodeClaim of a node."""
    types = list(fields.get("true_conditions", ("Consolidatable",)))
    if fields.get("registered", True):
        types.append("Registered")
    if fields.get("initialized", True):
        types.append("Initialized")
    since = fields.get("conditions_since", NOON - HOUR)
    resources = _resources(fields)
    return ClaimRecord(
        Identity(
            f"{name}-claim",
            f"uid-{name}-claim",
            created=NOON - fields.get("age", HOUR),
            deleted=NOON if fields.get("deleting") else None,
            labels=_labels(name, fields),
        ),
        node_class=NODE_CLASS,
        provider_id=fields.get("provider_id", f"kwok://{name}"),
        node_name=name,
        expire_after=fields.get("expire_after"),
        grace_period=fields.get("grace_period"),
        capacity=resources,
        allocatable=resources,
        last_pod_event=fields.get("last_pod_event"),
        conditions=Conditions(
            tuple(Condition(each, TRUE, since, each) for each in types), CLAIM_DEPENDENTS
        ),
    )


def node_record(name: str, **fields: Unpack[NodeFields]) -> NodeRecord:
    """Build the Node of a node."""
    labels = _labels(name, fields)
    if fields.get("registered", True):
        labels[REGISTERED] = "true"
    if fields.get("initialized", True):
        labels[INITIALIZED] = "true"
    ready = Condition(READY, TRUE if fields.get("ready", True) else FALSE, NOON - HOUR)
    return NodeRecord(
        Identity(
            name,
            f"uid-{name}",
            created=NOON - fields.get("age", HOUR),
            labels={key: value for key, value in labels.items() if value},
            annotations=fields.get("annotations", {}),
        ),
        provider_id=fields.get("provider_id", f"kwok://{name}"),
        taints=tuple(fields.get("taints", ())),
        capacity=_resources(fields),
        allocatable=_resources(fields),
        conditions=tuple(fields.get("conditions", (ready,))),
    )


def _labels(name: str, fields: NodeFields) -> dict[str, str]:
    reservation, pool_name = fields.get("reservation", ""), fields.get("pool", "web")
    bought = SPOT if fields.get("spot") else ON_DEMAND
    labels = {
        NODE_POOL: pool_name,
        NODE_CLASS_LABEL: NODE_CLASS.name,
        HOSTNAME: name,
        INSTANCE_TYPE: _type_of(fields).name,
        ZONE: fields.get("zone", ZONE_A),
        CAPACITY_TYPE: RESERVED if reservation else bought,
        RESERVATION: reservation,
        **fields.get("labels", {}),
    }
    return {key: value for key, value in labels.items() if value}


def _type_of(fields: NodeFields) -> InstanceType:
    """Return the type of a node; one that the catalog lacks is as large as `small`."""
    given = fields.get("type", "small")
    if isinstance(given, InstanceType):
        return given
    return _TYPES_BY_NAME.get(given) or replace(_TYPES_BY_NAME["small"], name=given)


def _resources(fields: NodeFields) -> Mapping[str, int]:
    return _type_of(fields).capacity


# --- pods ----------------------------------------------------------------------------------------


class PodFields(AnyPodFields, total=False):
    """Fields of a pod: its requests and constraints, and its annotations about disruption."""

    do_not_disrupt: str
    disruption_cost: str
    deletion_cost: str
    priority: int
    daemon: bool
    static: bool
    stateful: bool
    replica_set: str
    """The name of its ReplicaSet, `<Deployment>-<hash>`."""
    unready: bool
    started: datetime | None
    deleted: datetime
    unreadable: str
    virtual: bool
    expected: bool
    """Whether an earlier decision has found a place for the pod: its node, if it has one."""


def pod(name: str, **fields: Unpack[PodFields]) -> Pod:
    """Build a pod in the namespace `shop`: it runs on a node, or is pending without one."""
    made = any_pod(name, **{"namespace": "shop", **_known(fields, AnyPodFields)})
    deleted, unreadable = fields.get("deleted"), fields.get("unreadable", "")
    return replace(
        made,
        labels={**made.labels, **_template_hash(fields)},
        owners=(*made.owners, *_owners(fields)),
        disruption=PodDisruption(**_known(fields, PodDisruption)),
        started=fields.get("started", made.created if made.node_name else None),
        deleted=deleted,
        is_deleting=made.is_deleting or deleted is not None,
        is_unready=fields.get("unready", False),
        is_virtual=fields.get("virtual", False),
        is_expected=fields.get("expected", False),
        rules=replace(made.rules, unreadable=unreadable) if unreadable else made.rules,
    )


def _owners(fields: PodFields) -> list[Owner]:
    kinds = {"daemon": DAEMON_SET, "static": NODE, "stateful": STATEFUL_SET}
    owners = [Owner(*kind, key, f"uid-{key}") for key, kind in kinds.items() if fields.get(key)]
    if own := fields.get("replica_set"):
        owners.append(Owner("apps/v1", "ReplicaSet", own, f"uid-{own}", is_controller=True))
    return owners


def _template_hash(fields: PodFields) -> dict[str, str]:
    own = fields.get("replica_set", "")
    return {"pod-template-hash": own.rpartition("-")[2]} if own else {}


def _known(fields: Mapping[str, object], kind: type) -> dict[str, Any]:
    """Return the fields that `kind` also has."""
    return {key: value for key, value in fields.items() if key in kind.__annotations__}


def pod_budget(name: str, allowed: int | None = 0, **changes: object) -> DisruptionBudget:
    """Build a PodDisruptionBudget for the pods of `app: web` in `shop`."""
    budget = DisruptionBudget(name, "shop", (one_of("app", "web"),), disruptions_allowed=allowed)
    return replace(budget, **changes)


# --- NodePools and clusters ----------------------------------------------------------------------


class PoolFields(AnyPoolFields, total=False):
    """Fields of a NodePool; with `replicas` it is static."""

    policy: DisruptionPolicy
    replicas: int | None
    unreadable: str


def pool(name: str = "web", **fields: Unpack[PoolFields]) -> NodePool:
    """Build a ready NodePool with on-demand nodes and without budgets."""
    on_demand = [one_of(CAPACITY_TYPE, ON_DEMAND)]
    made = any_pool(name, **{"requirements": on_demand, **_known(fields, AnyPoolFields)})
    replicas = fields.get("replicas")
    status = TRUE if made.is_ready else FALSE
    record = PoolRecord(
        Identity(name, f"uid-{name}", deleted=NOON if made.is_deleting else None),
        node_class=made.node_class,
        replicas=replicas,
        limits=made.limits,
        conditions=Conditions(
            tuple(Condition(each, status, NOON - HOUR) for each in (*POOL_DEPENDENTS, READY)),
            POOL_DEPENDENTS,
        ),
    )
    return replace(
        made,
        is_static=made.is_static or replicas is not None,
        policy=fields.get("policy", ALL),
        record=record,
        unreadable=fields.get("unreadable", ""),
    )


def cluster(
    *nodes: Node,
    pods: Iterable[Pod] = (),
    pools: Iterable[NodePool] | None = None,
    types: Iterable[InstanceType] | None = None,
    **changes: object,
) -> Snapshot:
    """Build a cluster with the NodePools `web` and `batch`; changes are fields of Snapshot."""
    chosen = (pool(), pool("batch")) if pools is None else pools
    snapshot = Snapshot(
        now=NOON,
        pods=tuple(pods),
        nodes=nodes,
        pools=tuple(chosen),
        catalog=catalog(TYPES if types is None else types),
        namespaces={"shop": {}, "default": {}},
    )
    return replace(snapshot, **changes)


def budgets(*nodes: str) -> DisruptionPolicy:
    """Build a policy with budgets that are always active, for every reason."""
    return replace(ALL, budgets=tuple(Budget(each) for each in nodes))


def candidate(snapshot: Snapshot, name: str) -> Candidate:
    """Return the candidate of a name."""
    return next(each for each in candidates(snapshot) if each.name == name)


def candidates(snapshot: Snapshot) -> tuple[Candidate, ...]:
    """Return the nodes that may be disrupted gracefully, by name."""
    return find_candidates(Evaluation(snapshot)).candidates


# --- answers -------------------------------------------------------------------------------------


def event_rows(notices: Iterable[Notice]) -> list[tuple[str, str, str, str]]:
    """Return kind, name, reason and text of notices."""
    return [(each.subject.kind.name, each.subject.name, each.reason, each.note) for each in notices]


def refused(refusals: Iterable[NodeRefusal]) -> list[tuple[str, str, str]]:
    """Return node, reason and detail of refusals."""
    return [(each.node, each.why.name, each.detail) for each in refusals]
