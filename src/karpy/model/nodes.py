"""A node as the autoscaler sees it: the Node, the NodeClaim behind it, or both joined."""

from collections.abc import Mapping

from msgspec import Struct

from karpy.model.constraints import (
    NO_EXECUTE,
    NO_SCHEDULE,
    REBOOTING_TAINT,
    UNREGISTERED_TAINT,
    Taint,
    is_gate,
)
from karpy.model.labels import HOSTNAME, INITIALIZED, NODE_POOL, REGISTERED
from karpy.model.resources import NODES, Resources

_EPHEMERAL = frozenset(
    {
        ("node.kubernetes.io/not-ready", NO_SCHEDULE),
        ("node.kubernetes.io/not-ready", NO_EXECUTE),
        ("node.kubernetes.io/unreachable", NO_SCHEDULE),
        ("node.cloudprovider.kubernetes.io/uninitialized", NO_SCHEDULE),
        (UNREGISTERED_TAINT, NO_EXECUTE),
        (REBOOTING_TAINT, NO_SCHEDULE),
    }
)
_EPHEMERAL_PREFIX = "readiness.k8s.io/"


class NodeClaim(Struct, frozen=True, gc=False):
    """A request for one machine and what became of it."""

    name: str
    labels: Mapping[str, str] = {}
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    provider_id: str = ""
    node_name: str = ""
    capacity: Resources = {}
    allocatable: Resources = {}
    is_deleting: bool = False
    is_rebooting: bool = False


class KubeNode(Struct, frozen=True, gc=False):
    """A Node object."""

    name: str
    labels: Mapping[str, str] = {}
    taints: tuple[Taint, ...] = ()
    provider_id: str = ""
    capacity: Resources = {}
    allocatable: Resources = {}
    is_deleting: bool = False


class Node(Struct, frozen=True, gc=False):
    """
    One place pods may run on or are running on: registered, booting, or still in flight.

    `taints` are those that count for scheduling. `name` is the claim's while there is no Node.
    """

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()
    capacity: Resources = {}
    allocatable: Resources = {}
    is_initialized: bool = True
    is_deleting: bool = False
    claim: str = ""
    """Name of the NodeClaim; empty for a node that Karpenter did not make."""
    volume_limits: Mapping[str, int | None] = {}
    """Attachable volumes by CSI driver as the node publishes them; None is unlimited."""

    @property
    def hostname(self) -> str:
        return self.labels.get(HOSTNAME) or self.name

    @property
    def pool(self) -> str:
        """Name of the NodePool, or empty."""
        return self.labels.get(NODE_POOL, "")


def join_node(
    node: KubeNode | None,
    claim: NodeClaim | None,
    volume_limits: Mapping[str, int | None] | None = None,
) -> Node:
    """
    See a Node and its NodeClaim as one.

    Until the Node is registered the claim speaks for labels, taints and name. Until it is
    initialized, taints that will go by themselves do not count (nor during a reboot), and the claim
    fills in resources the kubelet has not reported yet.
    """
    assert node is not None or claim is not None
    # Differs: a NodePool's label is enough to be managed, since a recording may hold Nodes alone;
    # Karpenter asks for the NodeClaim.
    is_managed = claim is not None or (node is not None and NODE_POOL in node.labels)
    is_registered = node is not None and (not is_managed or node.labels.get(REGISTERED) == "true")
    is_initialized = node is not None and (not is_managed or node.labels.get(INITIALIZED) == "true")
    if claim is None or (node is not None and is_registered):
        assert node is not None
        name, labels, taints = node.name, node.labels, node.taints
    else:
        name, labels, taints = claim.name, claim.labels, claim.taints
    if not is_initialized or (claim is not None and claim.is_rebooting):
        startup = {(taint.key, taint.effect) for taint in claim.startup_taints} if claim else set()
        taints = tuple(taint for taint in taints if not _goes_by_itself(taint, startup))
    return Node(
        name=name,
        labels=labels,
        taints=taints,
        capacity={**_reported("capacity", node, None if is_initialized else claim), NODES: 1},
        allocatable=_reported("allocatable", node, None if is_initialized else claim),
        is_initialized=is_initialized,
        is_deleting=claim.is_deleting if claim else node is not None and node.is_deleting,
        claim=claim.name if claim else "",
        volume_limits=volume_limits or {},
    )


def _goes_by_itself(taint: Taint, startup: set[tuple[str, str]]) -> bool:
    known = (taint.key, taint.effect)
    if known in _EPHEMERAL or known in startup or is_gate(taint):
        return True
    return taint.key.startswith(_EPHEMERAL_PREFIX)


def _reported(field: str, node: KubeNode | None, claim: NodeClaim | None) -> dict[str, int]:
    amounts: dict[str, int] = dict(getattr(node, field)) if node else {}
    if claim:
        for name, amount in getattr(claim, field).items():
            if not amounts.get(name):
                amounts[name] = amount
    return amounts
