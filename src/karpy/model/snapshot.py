"""The cluster as one decision sees it, and the questions that decisions about nodes answer."""

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
    """How a launch was in vain; the value completes a sentence about the pod."""

    LEFT_OUT = "kube-scheduler left it out"
    PUSHED_OUT = "it got to its node and was pushed out again; kube-scheduler left it out since"
    NODE_GONE = "its node was gone before it got there; kube-scheduler left it out"


class VainLaunches(Struct, frozen=True, gc=False):
    """How often nodes were launched in vain for the pods of one group, one time after the other."""

    group: str
    """`Pod.group` of the pods."""
    count: int
    last: datetime
    """When the last launch turned out to be in vain."""
    retry_at: datetime
    """Before that nothing is launched for these pods."""
    why: VainCause
    message: str = ""
    """What kube-scheduler said of a pod that it left out."""


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


class DisruptionQuestion(Struct, frozen=True, gc=False, tag_field="asks", tag="disruption"):
    """Asks which nodes are to be disrupted, and why not the others."""

    snapshot: Snapshot
    settled: frozenset[str] = frozenset()
    """Methods that are passed over: they found nothing, and nothing has changed since."""
    passed_over: frozenset[str] = frozenset()
    """Methods that are passed over once, so that others have their turn."""
    put_off: frozenset[str] = frozenset()
    """Nodes that earlier passes had no time for: they come first."""


class ValidationQuestion(Struct, frozen=True, gc=False, tag_field="asks", tag="validation"):
    """Asks what of a command still holds, some time after it was proposed."""

    snapshot: Snapshot
    """Its own nodes are not `in_command`."""
    command: Command


class ConfirmationQuestion(Struct, frozen=True, gc=False, tag_field="asks", tag="confirmation"):
    """Asks whether pods forbid to disrupt nodes, just before these are tainted or deleted."""

    snapshot: Snapshot
    """The nodes alone, with the pods that the API server has just listed there."""
    method: str
    nodes: tuple[CommandNode, ...] = ()
    are_replaced: bool = False
    """Whether their replacements are initialized: budgets may delay the drain of the nodes."""


class LegacyRepairQuestion(Struct, frozen=True, gc=False, tag_field="asks", tag="legacy-repair"):
    """Asks whether a broken node is deleted at once: Karpenter's way before v1.15."""

    snapshot: Snapshot
    """The nodes of its NodePool, or all of them if it has none; and the pods on it."""
    claim: str


NodeQuestion = DisruptionQuestion | ValidationQuestion | ConfirmationQuestion | LegacyRepairQuestion
"""Everything that a decision about the disruption of nodes is made on."""


class FillUpQuestion(Struct, frozen=True, gc=False, tag_field="asks", tag="fill-up"):
    """Asks how many nodes a NodePool of a fixed size gets."""

    now: datetime
    pool: PoolRecord
    heads: Headcount
    template: NodePool | None = None
    """What its nodes are made from; None if none are lacking."""
    is_synced: bool = True
    """Whether everything that is there was seen."""


class ThinOutQuestion(Struct, frozen=True, gc=False, tag_field="asks", tag="thin-out"):
    """Asks which nodes a NodePool of a fixed size gives up."""

    now: datetime
    pool: PoolRecord
    heads: Headcount
    nodes: tuple[Node, ...] = ()
    """All that it has; none if there are not too many."""
    pods: tuple[Pod, ...] = ()
    """The pods on these nodes."""
    reads_deletion_cost: bool = True
    """Whether `pod-deletion-cost` is what a user asks for; not where Karpy writes it."""


PoolQuestion = FillUpQuestion | ThinOutQuestion
"""Everything that a decision about the size of a NodePool is made on."""
