"""The current nodes and pods of a cluster, and their price."""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.adapters.clouds.kwok.nodes import PRICE
from karpy.codec.fields import Fields, JsonObject
from karpy.codec.records import read_claim_record
from karpy.codec.requests import effective_requests
from karpy.core.lifecycle.conditions import INITIALIZED, LAUNCHED
from karpy.model.instances import micros
from karpy.model.kinds import NODE_CLAIM, POD
from karpy.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from karpy.model.resources import Resources
from karpy.ports.clock import Clock
from karpy.ports.objects import EventType, WatchEvent
from karpy.sim.store.store import Store

_ENDED: Final = frozenset({"Succeeded", "Failed"})


class NodeCard(Struct, frozen=True):
    """A launched machine, which costs money."""

    name: str
    """The name of its NodeClaim, which is shorter than the name of its Node."""
    instance_type: str
    zone: str
    capacity_type: str
    price: int
    """Micro-dollars per hour."""
    allocatable: Resources
    launched: float
    """The second of the demo at which it was launched."""
    node: str = ""
    """The name of its Node, once it has registered."""
    ready: float | None = None
    has_had_pods: bool = False
    """Whether it has ever had a pod that is not a daemon."""
    empty: float | None = None
    """The second since which it has had only daemons; None unless other pods have left it."""
    is_deleting: bool = False


class PodCard(Struct, frozen=True):
    """A pod that has not ended."""

    key: str
    workload: str
    requests: Resources
    created: float
    is_daemon: bool = False
    node: str = ""
    running: float | None = None
    is_deleting: bool = False

    @property
    def waited(self) -> float:
        """Seconds from its creation until it was running."""
        assert self.running is not None
        return self.running - self.created


class Transition(Enum):
    """A change of the state of a node or a pod."""

    LAUNCHED = "is paid for"
    READY = "takes pods"
    EMPTIED = "has only daemons left"
    GONE = "is not paid for any more"
    RUNS = "runs"
    STOPPED = "has left its node"


OnTransition = Callable[[Transition, NodeCard | PodCard], None]


class Board:
    """Watches nodes and pods of a cluster, and reports each change of their state."""

    def __init__(self, store: Store, clock: Clock, on_transition: OnTransition) -> None:
        self.price_of: Callable[[Mapping[str, str]], int] = _labelled_price
        """Returns the price of a machine in micro-dollars per hour, by its labels."""
        self._clock = clock
        self._began = clock.now()
        self._on_transition = on_transition
        self.nodes: dict[str, NodeCard] = {}
        """Nodes by the name of their NodeClaim, in the order of their launch."""
        self.pods: dict[str, PodCard] = {}
        """Pods by namespace and name, without those that have ended."""
        self._ends = (
            store.subscribe(NODE_CLAIM, self._on_claim),
            store.subscribe(POD, self._on_pod),
        )

    def close(self) -> None:
        """Stop watching."""
        for end in self._ends:
            end()

    @property
    def seconds(self) -> float:
        """Seconds since the start of the demo."""
        return (self._clock.now() - self._began).total_seconds()

    @property
    def price(self) -> int:
        """Micro-dollars per hour of all nodes."""
        return sum(each.price for each in self.nodes.values())

    def lasting_pods(self, workload: str = "") -> list[PodCard]:
        """Return the pods that are neither daemons nor deleting, of one workload or of all."""
        return [
            each
            for each in self.pods.values()
            if not (each.is_daemon or each.is_deleting) and workload in {"", each.workload}
        ]

    def pods_on(self, card: NodeCard) -> list[PodCard]:
        """Return the pods on a node, without daemons."""
        return [
            each
            for each in self.pods.values()
            if card.node and each.node == card.node and not each.is_daemon
        ]

    def used(self, card: NodeCard, resource: str) -> int:
        """Return the sum of the requests of all pods on a node."""
        return sum(
            each.requests.get(resource, 0)
            for each in self.pods.values()
            if card.node and each.node == card.node
        )

    def _on_claim(self, event: WatchEvent, before: JsonObject | None) -> None:
        del before
        name = event.object["metadata"]["name"]
        if event.type is EventType.DELETED:
            card = self.nodes.pop(name, None)
            if card is not None:
                self._on_transition(Transition.GONE, card)
            return
        claim = read_claim_record(Fields(event.object))
        card = self.nodes.get(name)
        if card is None:
            if not claim.conditions.is_true(LAUNCHED):
                return
            labels = claim.meta.labels
            card = NodeCard(
                name,
                labels.get(INSTANCE_TYPE, "?"),
                labels.get(ZONE, "?"),
                labels.get(CAPACITY_TYPE, "?"),
                self.price_of(labels),
                claim.allocatable,
                self.seconds,
            )
            self._on_transition(Transition.LAUNCHED, card)
        is_ready = claim.conditions.is_true(INITIALIZED)
        if is_ready and card.ready is None:
            card = replace(card, ready=self.seconds)
            self._on_transition(Transition.READY, card)
        self.nodes[name] = replace(card, node=claim.node_name, is_deleting=claim.meta.is_deleting)

    def _on_pod(self, event: WatchEvent, before: JsonObject | None) -> None:
        del before
        obj = event.object
        key = f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
        phase = (obj.get("status") or {}).get("phase")
        if event.type is EventType.DELETED or phase in _ENDED:
            card = self.pods.pop(key, None)
            if card is not None and card.running is not None:
                self._on_transition(Transition.STOPPED, card)
            if card is not None and card.node:
                self._update_emptiness(card.node)
            return
        card = self.pods.get(key) or _new_pod(key, obj, self.seconds)
        card = replace(
            card,
            node=obj["spec"].get("nodeName") or "",
            is_deleting="deletionTimestamp" in obj["metadata"],
        )
        if phase == "Running" and card.running is None:
            card = replace(card, running=self.seconds)
            self._on_transition(Transition.RUNS, card)
        self.pods[key] = card
        if card.node:
            self._update_emptiness(card.node)

    def _update_emptiness(self, node: str) -> None:
        """Update whether a node is empty."""
        card = next((each for each in self.nodes.values() if each.node == node), None)
        if card is None or card.is_deleting:
            return
        if self.pods_on(card):
            self.nodes[card.name] = replace(card, has_had_pods=True, empty=None)
        elif card.has_had_pods and card.empty is None:
            self.nodes[card.name] = card = replace(card, empty=self.seconds)
            self._on_transition(Transition.EMPTIED, card)


def _labelled_price(labels: Mapping[str, str]) -> int:
    """Return the price in the label of a KWOK node."""
    return micros(float(labels.get(PRICE, "0")))


def _new_pod(key: str, obj: JsonObject, seconds: float) -> PodCard:
    fields = Fields(obj)
    requests = effective_requests(fields.child("spec"), fields.child("status"))
    owner = next(iter(obj["metadata"].get("ownerReferences") or ()), None)
    if owner is None:
        return PodCard(key, obj["metadata"]["name"], requests, seconds)
    # The name of a ReplicaSet is the name of its Deployment and a hash.
    is_hashed = owner["kind"] == "ReplicaSet"
    workload = owner["name"].rpartition("-")[0] if is_hashed else owner["name"]
    return PodCard(key, workload, requests, seconds, is_daemon=owner["kind"] == "DaemonSet")
