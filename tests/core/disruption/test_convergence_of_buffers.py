"""Clusters with CapacityBuffers come to rest, although kube-scheduler ignores buffers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import pytest
from msgspec.structs import replace

from karpy.core.buffers import pods_by_node
from karpy.core.disruption.decide import decide_disruption
from karpy.core.scheduling.decide import decide
from karpy.model.commands import Command
from karpy.model.labels import SPOT
from karpy.model.nodes import Node
from karpy.model.pods import Pod
from karpy.model.resources import CPU, MEMORY
from karpy.model.snapshot import DisruptionQuestion, Snapshot
from karpy.model.verdicts import Launch
from tests.core.disruption.draws import roomy_cluster
from tests.core.disruption.scenes import ALL, HOUR
from tests.core.disruption.scenes import node as any_node
from tests.core.disruption.scenes import pod as any_pod
from tests.fuzz.dice import Dice

STEPS_MAX = 40
"""More commands than nodes of a drawn cluster can ever take."""

Score = Callable[[Pod, Node, Mapping[str, int]], object]
"""How a scheduler scores nodes by their free resources; the highest score wins."""


@dataclass
class Life:
    """A static cluster whose commands are carried out, and whose buffers are refilled."""

    snapshot: Snapshot
    score: Score
    launched: int = 0
    commands: list[Command] = field(default_factory=list)

    def live(self) -> None:
        """Carry out commands until there is none, or too many."""
        self.provision()
        while len(self.commands) < STEPS_MAX:
            found = decide_disruption(DisruptionQuestion(self.snapshot)).commands
            if not found:
                return
            self.commands.append(found[0])
            self.carry_out(found[0])
            self.provision()

    def carry_out(self, command: Command) -> None:
        """Launch the replacement, evict the pods, the largest first, and delete the nodes."""
        names = {each.node for each in command.nodes}
        moved = [each for each in self.snapshot.pods if each.node_name in names]
        for each in command.replacements:
            self.launch(each.launch)
        left = [each for each in self.snapshot.nodes if each.name not in names]
        self.snapshot = replace(self.snapshot, nodes=tuple(left))
        for pod in sorted(moved, key=lambda each: (-each.requests.get(CPU, 0), each.name)):
            self.bind(pod)

    def provision(self) -> None:
        """Launch nodes for pods and for buffers, bind the pods, and say where buffers have room."""
        while (verdict := decide(self.snapshot)).launches:
            for each in verdict.launches:
                self.launch(each)
            for pod in self.snapshot.pods:
                if not pod.node_name and not pod.is_virtual:
                    self.bind(pod)
        virtual = [each for each in self.snapshot.pods if each.is_virtual]
        counts = pods_by_node(virtual, verdict)
        nodes = (
            replace(each, buffer_pods=counts.get(each.name, 0)) for each in self.snapshot.nodes
        )
        self.snapshot = replace(self.snapshot, nodes=tuple(nodes))

    def launch(self, launch: Launch) -> None:
        best = launch.options[0]
        self.launched += 1
        made = any_node(
            f"new-{self.launched:03d}",
            type=best.instance_type,
            pool=launch.pool,
            zone=best.zone,
            spot=best.capacity_type == SPOT,
        )
        self.snapshot = replace(self.snapshot, nodes=(*self.snapshot.nodes, made))

    def bind(self, pod: Pod) -> None:
        """Put a pod on the best node that has room; without one it waits."""
        fitting = [
            (self.score(pod, each, left), each.name)
            for each in self.snapshot.nodes
            if all(
                (left := self.left_on(each)).get(name, 0) >= amount
                for name, amount in pod.requests.items()
            )
        ]
        bound = max(fitting)[1] if fitting else ""
        changed = replace(pod, node_name=bound, is_unschedulable=not bound)
        pods = (changed if each.uid == pod.uid else each for each in self.snapshot.pods)
        self.snapshot = replace(self.snapshot, pods=tuple(pods))

    def left_on(self, node: Node) -> dict[str, int]:
        left = dict(node.allocatable)
        for pod in self.snapshot.pods:
            if pod.node_name == node.name:
                for name, amount in pod.requests.items():
                    left[name] -= amount
        return left


def buffered_cluster(seed: int) -> Snapshot:
    """Build a cluster of plain pods with buffers; budgets allow all nodes to go at once."""
    made, dice = roomy_cluster(seed), Dice(seed + 2_000_000)
    pools = (
        replace(each, policy=replace(ALL, consolidation=each.policy.consolidation))
        for each in made.pools
    )
    running = [each for each in made.pods if each.disruption.do_not_disrupt is None]
    virtual = [
        any_pod(f"buffer-{size}-{number}", cpu=cpu, virtual=True)
        for size, cpu in enumerate(dice.some(["500m", "1", "2", "3"]) or ["3"])
        for number in range(dice.number(1, 3))
    ]
    return replace(made, pools=tuple(pools), pods=(*running, *virtual), now=made.now + HOUR)


def emptiest_first(dice: Dice) -> Score:
    """Score as kube-scheduler does: the node with the largest free share; ties at random."""

    def score(pod: Pod, node: Node, left: Mapping[str, int]) -> object:
        shares = (
            Fraction(left[name] - pod.requests.get(name, 0), node.allocatable[name])
            for name in (CPU, MEMORY)
        )
        return sum(shares), dice.number(0, 1_000)

    return score


def at_random(dice: Dice) -> Score:
    return lambda *_: dice.number(0, 1_000)


@pytest.mark.parametrize("scheduler", [emptiest_first, at_random])
@pytest.mark.parametrize("seeds", [range(at, at + 60) for at in range(0, 180, 60)])
def test_a_cluster_with_buffers_comes_to_rest(
    scheduler: Callable[[Dice], Score], seeds: Sequence[int]
) -> None:
    restless = []
    for seed in seeds:
        life = Life(buffered_cluster(seed), scheduler(Dice(seed)))
        life.live()
        if len(life.commands) >= STEPS_MAX:
            restless.append(seed)

    assert restless == []
