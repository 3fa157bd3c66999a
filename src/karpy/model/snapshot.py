"""The cluster as one decision sees it."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from karpy.model.instances import Catalog
from karpy.model.nodes import Node
from karpy.model.pods import DaemonSet, DisruptionBudget, Pod, PodController, Service
from karpy.model.pools import NodeOverlay, NodePool
from karpy.model.repairs import RepairRules
from karpy.model.settings import Settings
from karpy.model.storage import Storage
from karpy.model.vain import VainLaunches


class Snapshot(Struct, frozen=True, gc=False):
    """All that is known at `now`; a decision reads nothing else."""

    now: datetime
    pods: Sequence[Pod] = ()
    nodes: tuple[Node, ...] = ()
    pools: tuple[NodePool, ...] = ()
    daemons: tuple[DaemonSet, ...] = ()
    catalog: Catalog = Catalog()
    """What is on sale, with NodeOverlays applied; decisions read nothing else about that."""
    overlays: tuple[NodeOverlay, ...] = ()
    """NodeOverlays still to be applied to the catalog; none in a snapshot that is decided on."""
    storage: Storage = Storage()
    namespaces: Mapping[str, Mapping[str, str]] = {}
    """Labels by namespace."""
    services: tuple[Service, ...] = ()
    controllers: tuple[PodController, ...] = ()
    budgets: tuple[DisruptionBudget, ...] = ()
    settings: Settings = Settings()
    vain_launches: tuple[VainLaunches, ...] = ()
    """By group of pods, where launches were in vain."""
    in_command: frozenset[str] = frozenset()
    """NodeClaims that a disruption command is about; no other command may be."""
    command_backoffs: Mapping[str, datetime] = {}
    """By NodeClaim whose last disruption command failed, until when no other may be about it."""
    repair: RepairRules = RepairRules()
