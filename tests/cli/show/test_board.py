import asyncio

from karpy.cli.show.board import Board, NodeCard, PodCard, Transition
from karpy.codec.fields import JsonObject
from karpy.model.kinds import NODE_CLAIM, POD
from karpy.model.resources import CPU
from karpy.ports.objects import Removal
from karpy.sim.world import World
from tests.sim.stories import bind, on_virtual_time, pod

LABELS = {
    "node.kubernetes.io/instance-type": "c-4x-amd64-linux",
    "topology.kubernetes.io/zone": "test-zone-a",
    "karpenter.sh/capacity-type": "spot",
    "eks-node-viewer/instance-price": "0.076013",
}
NOW = "2026-01-05T00:00:00Z"


class Followed:
    """A world without a scheduler, in which tests set the conditions of claims."""

    def __init__(self) -> None:
        self.world = World(parts=())
        self.world.start()
        self.transitions: list[tuple[Transition, str]] = []
        self.board = Board(self.world.store, self.world.clock, self._on_transition)

    def _on_transition(self, transition: Transition, card: NodeCard | PodCard) -> None:
        name = card.name if isinstance(card, NodeCard) else card.key
        self.transitions.append((transition, name))

    def claim(self, *conditions: str, node: str = "") -> None:
        """Write a claim with these conditions true."""
        status = {
            "providerID": "kwok://n1",
            "allocatable": {"cpu": "4"},
            "nodeName": node,
            "conditions": [
                {"type": each, "status": "True", "reason": each, "lastTransitionTime": NOW}
                for each in conditions
            ],
        }
        store = self.world.store
        found = store.find(NODE_CLAIM, "c1") or store.create(NODE_CLAIM, claim())
        store.replace(NODE_CLAIM, {**found, "status": status}, subresource="status")

    def bound_pod(self, name: str, kind: str, owner: str) -> None:
        made = pod(name)
        made["metadata"]["ownerReferences"] = [
            {"apiVersion": "apps/v1", "uid": "u", "kind": kind, "name": owner}
        ]
        self.world.store.create(POD, made)
        bind(self.world.store, name, "n1")


def claim() -> JsonObject:
    ref = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    return {
        "metadata": {"name": "c1", "labels": LABELS},
        "spec": {"nodeClassRef": ref, "requirements": []},
    }


@on_virtual_time
async def test_a_machine_is_paid_for_from_its_launch_to_its_end() -> None:
    followed = Followed()

    followed.claim()
    before = followed.board.price
    followed.claim("Launched")
    await asyncio.sleep(2)
    followed.claim("Launched", "Initialized", node="n1")
    price = followed.board.price
    followed.world.store.delete(NODE_CLAIM, "c1")

    assert followed.transitions == [
        (Transition.LAUNCHED, "c1"),
        (Transition.READY, "c1"),
        (Transition.GONE, "c1"),
    ]
    assert (before, price, followed.board.price) == (0, 76_013, 0)


@on_virtual_time
async def test_a_node_is_empty_only_after_it_had_a_pod() -> None:
    """Daemons arrive first on a new node, which does not make it an emptied node."""
    followed = Followed()
    followed.claim("Launched", "Initialized", node="n1")

    followed.bound_pod("agent-1", "DaemonSet", "agent")
    at_first = list(followed.transitions)
    followed.bound_pod("web-1", "ReplicaSet", "web-5dfc98b996")
    card = followed.board.nodes["c1"]
    tenants = [each.workload for each in followed.board.pods_on(card)]
    used = followed.board.used(card, CPU)
    followed.world.store.delete(POD, "web-1", namespace="default", removal=Removal(grace_seconds=0))

    assert (Transition.EMPTIED, "c1") not in at_first
    assert followed.transitions[-1] == (Transition.EMPTIED, "c1")
    assert (tenants, used) == (["web"], 200)
    assert followed.board.lasting_pods() == []


@on_virtual_time
async def test_a_pod_that_has_ended_is_not_counted() -> None:
    followed = Followed()
    made = followed.world.store.create(POD, pod("job-1"))

    followed.world.store.replace(
        POD, {**made, "status": {"phase": "Succeeded"}}, subresource="status"
    )

    assert followed.board.pods == {}
