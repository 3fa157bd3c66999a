"""The snapshot that decisions about pods read, and the questions of decisions about nodes."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import Enum

from msgspec import Struct

from karpy.model.commands import Command, CommandNode
from karpy.model.instances import Catalog
from karpy.model.nodes import Node, RepairRules
from karpy.model.pods import DaemonSet, DisruptionBudget, Pod, PodController, Service
from karpy.model.pools import Headcount, NodeOverlay, NodePool
from karpy.model.records import PoolRecord
from karpy.model.settings import Settings
from karpy.model.storage import Storage


class VainCause(Enum):
    """Why a launch was in vain; the value completes a sentence about the pod."""

    LEFT_OUT = "kube-scheduler left it out"
    PUSHED_OUT = "it got to its node and was pushed out again; kube-scheduler left it out since"
    NODE_GONE = "its node was gone before it got there; kube-scheduler left it out"


class VainLaunches(Struct, frozen=True, gc=False):
    """Successive launches in vain for the pods of one group: their number, and the next retry."""

    group: str
    """`Pod.group` of the pods."""
    count: int
    last: datetime
    """When the last launch turned out to be in vain."""
    retry_at: datetime
    """Until this moment nothing is launched for these pods."""
    why: VainCause
    message: str = ""
    """The message of the condition PodScheduled of one of the pods."""


class Snapshot(Struct, frozen=True, gc=False):
    """The cluster at the moment `now`; a decision reads nothing else."""

    now: datetime
    pods: Sequence[Pod] = ()
    nodes: tuple[Node, ...] = ()
    pools: tuple[NodePool, ...] = ()
    daemons: tuple[DaemonSet, ...] = ()
    catalog: Catalog = Catalog()
    """Instance types and prices, with NodeOverlays applied."""
    overlays: tuple[NodeOverlay, ...] = ()
    """NodeOverlays that are not yet applied to the catalog; empty when a decision is made."""
    storage: Storage = Storage()
    namespaces: Mapping[str, Mapping[str, str]] = {}
    """Labels by namespace."""
    services: tuple[Service, ...] = ()
    controllers: tuple[PodController, ...] = ()
    budgets: tuple[DisruptionBudget, ...] = ()
    settings: Settings = Settings()
    vain_launches: tuple[VainLaunches, ...] = ()
    """The groups of pods whose latest launches were in vain."""
    in_command: frozenset[str] = frozenset()
    """NodeClaims of disruption commands under way; no other command may include them."""
    command_backoffs: Mapping[str, datetime] = {}
    """When a NodeClaim whose last disruption command failed may be in a command again."""
    repair: RepairRules = RepairRules()


class DisruptionQuestion(Struct, frozen=True, gc=False, tag_field="asks", tag="disruption"):
    """Asks which nodes to disrupt, and why the other nodes are not disrupted."""

    snapshot: Snapshot
    settled: frozenset[str] = frozenset()
    """Methods that are skipped: they found nothing, and nothing has changed since."""
    passed_over: frozenset[str] = frozenset()
    """Methods that are skipped once, so that the next method gets its turn."""
    put_off: frozenset[str] = frozenset()
    """Nodes that earlier passes had no time for; they are considered first."""


class ValidationQuestion(Struct, frozen=True, gc=False, tag_field="asks", tag="validation"):
    """Asks which part of a command is still valid, 15 seconds after its proposal."""

    snapshot: Snapshot
    """The nodes of the command are not `in_command` here."""
    command: Command


class ConfirmationQuestion(Struct, frozen=True, gc=False, tag_field="asks", tag="confirmation"):
    """Asks whether pods forbid the disruption of nodes that are about to be tainted or deleted."""

    snapshot: Snapshot
    """These nodes alone, with their pods as just listed from the API server."""
    method: str
    nodes: tuple[CommandNode, ...] = ()
    are_replaced: bool = False
    """Whether their replacements are initialized: budgets may delay the drain of the nodes."""


class LegacyRepairQuestion(Struct, frozen=True, gc=False, tag_field="asks", tag="legacy-repair"):
    """Asks whether a broken node is deleted at once, as Karpenter did before v1.15."""

    snapshot: Snapshot
    """The nodes of its NodePool, or all nodes if it has none, and the pods on the broken node."""
    claim: str


NodeQuestion = DisruptionQuestion | ValidationQuestion | ConfirmationQuestion | LegacyRepairQuestion
"""The input of a decision about the disruption of nodes."""


class FillUpQuestion(Struct, frozen=True, gc=False, tag_field="asks", tag="fill-up"):
    """Asks how many nodes to create for a static NodePool."""

    now: datetime
    pool: PoolRecord
    heads: Headcount
    template: NodePool | None = None
    """The template of its nodes; None if it has enough nodes."""
    is_synced: bool = True
    """Whether the cache has all NodeClaims of the cluster."""


class ThinOutQuestion(Struct, frozen=True, gc=False, tag_field="asks", tag="thin-out"):
    """Asks which nodes of a static NodePool to delete."""

    now: datetime
    pool: PoolRecord
    heads: Headcount
    nodes: tuple[Node, ...] = ()
    """All nodes of the NodePool; empty if it has not too many."""
    pods: tuple[Pod, ...] = ()
    """The pods on these nodes."""
    reads_deletion_cost: bool = True
    """Whether users set `pod-deletion-cost`; False where Karpy writes it."""


PoolQuestion = FillUpQuestion | ThinOutQuestion
"""The input of a decision about the size of a static NodePool."""
