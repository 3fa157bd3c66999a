"""What there is in a cluster right now: nodes, pods and what they cost."""

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
    """A machine that is paid for."""

    name: str
    """Of its NodeClaim: shorter than that of its Node."""
    instance_type: str
    zone: str
    capacity_type: str
    price: int
    """Micro-dollars per hour."""
    allocatable: Resources
    launched: float
    """At which second of the show."""
    node: str = ""
    """Name of its Node once that has registered."""
    ready: float | None = None
    has_served: bool = False
    """Whether it has had a pod that is no daemon."""
    empty: float | None = None
    """Since when it has had none any more."""
    is_leaving: bool = False


class PodCard(Struct, frozen=True):
    """A pod that is asked for."""

    key: str
    workload: str
    requests: Resources
    created: float
    is_daemon: bool = False
    node: str = ""
    running: float | None = None
    is_leaving: bool = False

    @property
    def waited(self) -> float:
        """Seconds from its creation until it ran."""
        assert self.running is not None
        return self.running - self.created


class Turn(Enum):
    """What has become of a node or a pod."""

    LAUNCHED = "is paid for"
    READY = "takes pods"
    EMPTIED = "has only daemons left"
    GONE = "is not paid for any more"
    RUNS = "runs"
    LEFT = "has left its node"


OnTurn = Callable[[Turn, NodeCard | PodCard], None]


class Board:
    """Follows a cluster, and tells of every turn that it takes."""

    def __init__(self, store: Store, clock: Clock, on_turn: OnTurn) -> None:
        self.price_of: Callable[[Mapping[str, str]], int] = _labelled_price
        """Returns what a machine costs an hour, in micro-dollars, by its labels."""
        self._clock = clock
        self._began = clock.now()
        self._on_turn = on_turn
        self.nodes: dict[str, NodeCard] = {}
        """By the name of their NodeClaim, in the order they were launched."""
        self.pods: dict[str, PodCard] = {}
        """By namespace and name; those that have ended are not there."""
        self._ends = (
            store.subscribe(NODE_CLAIM, self._hear_claim),
            store.subscribe(POD, self._hear_pod),
        )

    def close(self) -> None:
        """Follow no more."""
        for end in self._ends:
            end()

    @property
    def seconds(self) -> float:
        """How long the show has been going on."""
        return (self._clock.now() - self._began).total_seconds()

    @property
    def price(self) -> int:
        """Micro-dollars per hour of all nodes."""
        return sum(each.price for each in self.nodes.values())

    def wanted(self, workload: str = "") -> list[PodCard]:
        """Return the pods that are to stay, daemons not counted; of one workload or of all."""
        return [
            each
            for each in self.pods.values()
            if not (each.is_daemon or each.is_leaving) and workload in {"", each.workload}
        ]

    def tenants(self, card: NodeCard) -> list[PodCard]:
        """Return the pods on a node, daemons not counted."""
        return [
            each
            for each in self.pods.values()
            if card.node and each.node == card.node and not each.is_daemon
        ]

    def used(self, card: NodeCard, resource: str) -> int:
        """Add up what all pods on a node ask for."""
        return sum(
            each.requests.get(resource, 0)
            for each in self.pods.values()
            if card.node and each.node == card.node
        )

    def _hear_claim(self, event: WatchEvent, before: JsonObject | None) -> None:
        del before
        name = event.object["metadata"]["name"]
        if event.type is EventType.DELETED:
            card = self.nodes.pop(name, None)
            if card is not None:
                self._on_turn(Turn.GONE, card)
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
            self._on_turn(Turn.LAUNCHED, card)
        is_ready = claim.conditions.is_true(INITIALIZED)
        if is_ready and card.ready is None:
            card = replace(card, ready=self.seconds)
            self._on_turn(Turn.READY, card)
        self.nodes[name] = replace(card, node=claim.node_name, is_leaving=claim.meta.is_deleting)

    def _hear_pod(self, event: WatchEvent, before: JsonObject | None) -> None:
        del before
        obj = event.object
        key = f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
        phase = (obj.get("status") or {}).get("phase")
        if event.type is EventType.DELETED or phase in _ENDED:
            card = self.pods.pop(key, None)
            if card is not None and card.running is not None:
                self._on_turn(Turn.LEFT, card)
            if card is not None and card.node:
                self._look_at(card.node)
            return
        card = self.pods.get(key) or _new_pod(key, obj, self.seconds)
        card = replace(
            card,
            node=obj["spec"].get("nodeName") or "",
            is_leaving="deletionTimestamp" in obj["metadata"],
        )
        if phase == "Running" and card.running is None:
            card = replace(card, running=self.seconds)
            self._on_turn(Turn.RUNS, card)
        self.pods[key] = card
        if card.node:
            self._look_at(card.node)

    def _look_at(self, node: str) -> None:
        """See whether a node has become empty, or is so no more."""
        card = next((each for each in self.nodes.values() if each.node == node), None)
        if card is None or card.is_leaving:
            return
        if self.tenants(card):
            self.nodes[card.name] = replace(card, has_served=True, empty=None)
        elif card.has_served and card.empty is None:
            self.nodes[card.name] = card = replace(card, empty=self.seconds)
            self._on_turn(Turn.EMPTIED, card)


def _labelled_price(labels: Mapping[str, str]) -> int:
    """Return the price that KWOK writes on its nodes."""
    return micros(float(labels.get(PRICE, "0")))


def _new_pod(key: str, obj: JsonObject, seconds: float) -> PodCard:
    fields = Fields(obj)
    requests = effective_requests(fields.child("spec"), fields.child("status"))
    owner = next(iter(obj["metadata"].get("ownerReferences") or ()), None)
    if owner is None:
        return PodCard(key, obj["metadata"]["name"], requests, seconds)
    # A ReplicaSet is called like its Deployment, and then by a hash.
    is_hashed = owner["kind"] == "ReplicaSet"
    workload = owner["name"].rpartition("-")[0] if is_hashed else owner["name"]
    return PodCard(key, workload, requests, seconds, is_daemon=owner["kind"] == "DaemonSet")
