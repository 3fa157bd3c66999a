"""Keyword arguments of the builders: the fields of the values that they make."""

from collections.abc import Iterable, Mapping
from typing import TypedDict

from karpy.model.constraints import (
    AffinityTerm,
    NodeTerm,
    SpreadConstraint,
    Taint,
    Toleration,
    WeightedNodeTerm,
    WeightedTerm,
    WhenUnsatisfiable,
)
from karpy.model.instances import Catalog
from karpy.model.nodes import Node
from karpy.model.pods import DaemonSet, HostPort, Pod, PodController, PodVolume, Service
from karpy.model.pools import NodeOverlay, NodePool
from karpy.model.records import NodeClassRef
from karpy.model.requirements import Requirement, Requirements
from karpy.model.resources import Resources
from karpy.model.settings import Settings
from karpy.model.storage import Storage
from karpy.model.verdicts import Launch, LaunchOption, Nomination, Refusal


class RuleFields(TypedDict, total=False):
    """The constraints of a pod."""

    node_selector: tuple[Requirement, ...]
    required_node_terms: tuple[NodeTerm, ...]
    preferred_node_terms: tuple[WeightedNodeTerm, ...]
    tolerations: tuple[Toleration, ...]
    spreads: tuple[SpreadConstraint, ...]
    affinity: tuple[AffinityTerm, ...]
    preferred_affinity: tuple[WeightedTerm, ...]
    anti_affinity: tuple[AffinityTerm, ...]
    preferred_anti_affinity: tuple[WeightedTerm, ...]
    ports: tuple[HostPort, ...]
    volumes: tuple[PodVolume, ...]
    claims_devices: bool


class SpreadFields(TypedDict, total=False):
    """Fields of a spread constraint besides key and skew."""

    when_unsatisfiable: WhenUnsatisfiable
    min_domains: int | None
    honors_affinity: bool
    honors_taints: bool
    match_label_keys: tuple[str, ...]


class CarrierFields(SpreadFields, total=False):
    """Fields of a spread constraint."""

    key: str
    max_skew: int


class PodFields(TypedDict, total=False):
    """Fields of a pod besides its constraints."""

    labels: Mapping[str, str]
    requests: Resources
    phase: str
    is_unschedulable: bool


class OfferingFields(TypedDict, total=False):
    """What an offering may have besides zone, capacity type and price."""

    is_available: bool
    reservation_capacity: int
    reservation_id: str
    capacity_override: Resources
    overhead_override: Resources


class TypeFields(TypedDict, total=False):
    """What an instance type may have besides its size and offerings."""

    overhead: Resources
    volume_limits: Mapping[str, int]


class PoolFields(TypedDict, total=False):
    """What a NodePool may have besides its requirements."""

    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    startup_taints: tuple[Taint, ...]
    node_class: NodeClassRef
    limits: Resources
    weight: int
    is_static: bool
    is_ready: bool
    is_deleting: bool


class PoolChanges(PoolFields, total=False):
    """What can be changed about a NodePool."""

    requirements: tuple[Requirement, ...]


class NodeFields(TypedDict, total=False):
    """What a node may have besides labels and resources."""

    taints: tuple[Taint, ...]
    is_deleting: bool
    volume_limits: Mapping[str, int | None]


class LaunchFields(TypedDict, total=False):
    """What a launch may have besides pods, requirements and options."""

    reservations: tuple[str, ...]
    is_min_values_relaxed: bool


class LaunchChanges(LaunchFields, total=False):
    """What can be changed about a launch."""

    name: str
    pool: str
    pods: tuple[str, ...]
    requirements: Requirements
    resources: Resources
    options: tuple[LaunchOption, ...]


class SnapshotFields(TypedDict, total=False):
    """What a snapshot may have besides pods."""

    nodes: tuple[Node, ...]
    pools: tuple[NodePool, ...]
    daemons: tuple[DaemonSet, ...]
    catalog: Catalog
    overlays: tuple[NodeOverlay, ...]
    storage: Storage
    namespaces: Mapping[str, Mapping[str, str]]
    services: tuple[Service, ...]
    controllers: tuple[PodController, ...]
    settings: Settings


class SnapshotChanges(SnapshotFields, total=False):
    """What can be changed about a snapshot."""

    pods: tuple[Pod, ...]


class WorldFields(SnapshotFields, total=False):
    """What a world may have besides its launches."""

    pods: Iterable[Pod]
    nominations: Mapping[str, Iterable[Pod]]
    refused: Iterable[Pod]


class VerdictChanges(TypedDict, total=False):
    """What can be changed about a verdict."""

    launches: tuple[Launch, ...]
    nominations: tuple[Nomination, ...]
    refusals: tuple[Refusal, ...]
