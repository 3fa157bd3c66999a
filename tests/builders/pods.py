"""Pods, what owns them and what selects them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, TypedDict, Unpack

from karpy.model.constraints import (
    AffinityTerm,
    NodeTerm,
    SpreadConstraint,
    Toleration,
    WeightedNodeTerm,
    WeightedTerm,
)
from karpy.model.pods import (
    DAEMON_SET,
    DaemonSet,
    HostPort,
    Owner,
    Pod,
    PodController,
    PodRules,
    PodVolume,
    Service,
)
from karpy.model.requirements import Requirement, one_of
from karpy.model.resources import PODS, parse_quantity

NOON: Final = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


class PodFields(TypedDict, total=False):
    """What a pod may say; `more` are further requests, `on` is the node it is bound to."""

    namespace: str
    uid: str
    age: timedelta
    labels: Mapping[str, str]
    cpu: str
    memory: str
    more: Mapping[str, str]
    on: str
    nominated: str
    phase: str
    unschedulable: bool
    deleting: bool
    owners: Sequence[Owner]
    selector: Mapping[str, str] | Sequence[Requirement]
    terms: Sequence[NodeTerm]
    prefers: Sequence[tuple[int, NodeTerm]]
    tolerations: Sequence[Toleration]
    spreads: Sequence[SpreadConstraint]
    affinity: Sequence[AffinityTerm]
    anti_affinity: Sequence[AffinityTerm]
    prefers_near: Sequence[tuple[int, AffinityTerm]]
    prefers_away: Sequence[tuple[int, AffinityTerm]]
    ports: Sequence[HostPort]
    claims: Sequence[str]
    """Names of PersistentVolumeClaims."""
    ephemeral: Sequence[str]
    """Names of ephemeral volumes."""
    devices: bool


def pod(name: str, **fields: Unpack[PodFields]) -> Pod:
    """Build a pending pod of 100m and 128Mi, or one that runs if it has a node."""
    node_name = fields.get("on", "")
    return Pod(
        name=name,
        namespace=fields.get("namespace", "default"),
        uid=fields.get("uid", f"uid-{fields.get('namespace', 'default')}-{name}"),
        created=NOON - fields.get("age", timedelta(minutes=1)),
        labels=fields.get("labels", {}),
        requests=requests(
            fields.get("cpu", "100m"), fields.get("memory", "128Mi"), fields.get("more", {})
        ),
        rules=_rules(fields),
        node_name=node_name,
        nominated_node=fields.get("nominated", ""),
        phase=fields.get("phase", "Running" if node_name else "Pending"),
        is_unschedulable=fields.get("unschedulable", not node_name),
        is_deleting=fields.get("deleting", False),
        owners=tuple(fields.get("owners", ())),
    )


def pods(prefix: str, count: int, **fields: Unpack[PodFields]) -> list[Pod]:
    """Build `count` equal pods that share their rules, as those of one workload do."""
    first = pod(f"{prefix}-0", **fields)
    rest = (pod(f"{prefix}-{i}", **fields) for i in range(1, count))
    return [first, *(_sharing(first, each) for each in rest)]


def _sharing(first: Pod, other: Pod) -> Pod:
    return Pod(
        name=other.name,
        namespace=other.namespace,
        uid=other.uid,
        created=other.created,
        labels=first.labels,
        requests=first.requests,
        rules=first.rules,
        node_name=other.node_name,
        nominated_node=other.nominated_node,
        phase=other.phase,
        is_unschedulable=other.is_unschedulable,
        is_deleting=other.is_deleting,
        owners=first.owners,
    )


def _rules(fields: PodFields) -> PodRules:
    selector = fields.get("selector", ())
    if isinstance(selector, Mapping):
        selector = [one_of(key, value) for key, value in selector.items()]
    volumes = [PodVolume(f"data-{i}", name) for i, name in enumerate(fields.get("claims", ()))]
    volumes += [PodVolume(name) for name in fields.get("ephemeral", ())]
    return PodRules(
        node_selector=tuple(selector),
        required_node_terms=tuple(fields.get("terms", ())),
        preferred_node_terms=tuple(WeightedNodeTerm(*each) for each in fields.get("prefers", ())),
        tolerations=tuple(fields.get("tolerations", ())),
        spreads=tuple(fields.get("spreads", ())),
        affinity=tuple(fields.get("affinity", ())),
        preferred_affinity=tuple(WeightedTerm(*each) for each in fields.get("prefers_near", ())),
        anti_affinity=tuple(fields.get("anti_affinity", ())),
        preferred_anti_affinity=tuple(
            WeightedTerm(*each) for each in fields.get("prefers_away", ())
        ),
        ports=tuple(fields.get("ports", ())),
        volumes=tuple(volumes),
        claims_devices=fields.get("devices", False),
    )


def requests(cpu: str, memory: str, more: Mapping[str, str] | None = None) -> dict[str, int]:
    """Build effective requests of one pod, itself included."""
    return {**amounts(cpu=cpu, memory=memory), **amounts(**(more or {})), PODS: 1}


def amounts(**texts: str) -> dict[str, int]:
    """Read quantities by resource name; pass names with odd characters as `**{"a/b": "1"}`."""
    return {name: parse_quantity(text, name) for name, text in texts.items()}


def owner(kind: tuple[str, str], name: str = "owner", *, is_controller: bool = True) -> Owner:
    """Build an owner reference to an object of a kind, such as `STATEFUL_SET`."""
    return Owner(kind[0], kind[1], name, f"uid-{name}", is_controller)


def daemon(name: str, **fields: Unpack[PodFields]) -> DaemonSet:
    """Build a DaemonSet by what its pod asks for."""
    return DaemonSet(name, fields.get("namespace", "default"), pod(f"{name}-pod", **fields))


def daemon_pod(name: str, **fields: Unpack[PodFields]) -> Pod:
    """Build a pod that belongs to a DaemonSet."""
    fields["owners"] = [owner(DAEMON_SET, name)]
    return pod(name, **fields)


def service(
    name: str, selector: Mapping[str, str] | None, *, namespace: str = "default"
) -> Service:
    """Build a Service by what it selects."""
    return Service(name, namespace, selector)


def controller(
    kind: tuple[str, str], name: str, selector: Mapping[str, str], *, namespace: str = "default"
) -> PodController:
    """Build a ReplicaSet and the like; `owner(kind, name)` on a pod refers to it."""
    expressions = tuple(one_of(key, value) for key, value in selector.items())
    return PodController(kind[0], kind[1], name, namespace, f"uid-{name}", expressions)
