"""The answers of one scheduler, and their comparison with those of another."""

from dataclasses import dataclass

from karpy.codec.fields import JsonObject
from tests.fidelity.clusters import Cluster
from tests.fidelity.worlds import Answer, Storage, World

_PASSES_MAX = 2


@dataclass(frozen=True)
class Step:
    """A pod given to a scheduler, and the answer."""

    pod: JsonObject
    admitted: JsonObject
    """The pod after admission."""
    storage: Storage | None
    """The storage at that time; None in a cluster without volumes."""
    answer: Answer
    is_kept: bool
    """Whether the pod stayed on its node; pods that were asked alone were deleted."""

    @property
    def key(self) -> str:
        """Namespace and name of the pod."""
        return key_of(self.pod)


@dataclass(frozen=True)
class Difference:
    """A pod for which two schedulers give different answers."""

    step: Step
    answer: Answer

    @property
    def is_about_reasons(self) -> bool:
        return not self.step.answer.node and not self.answer.node


async def ask_alone(world: World, cluster: Cluster) -> list[Step]:
    """Ask for a pod of each workload, as if it were the only pending one."""
    return [await _ask(world, cluster, pod, is_kept=False) for pod in cluster.samples]


async def ask_together(world: World, cluster: Cluster) -> list[Step]:
    """
    Ask for all pods, one after the other, and keep the placed ones.

    Unplaced pods are asked again until none is left, or none can be placed: the last answer for
    each pod holds in the final state.
    """
    steps: list[Step] = []
    left = cluster.pods
    for _ in range(_PASSES_MAX):
        waiting, left = left, []
        for pod in waiting:
            steps.append(await _ask(world, cluster, pod, is_kept=True))
            if not steps[-1].answer.node:
                left.append(pod)
        if not left or len(left) == len(waiting):
            break
    return steps


async def follow(world: World, steps: list[Step]) -> list[Difference]:
    """Ask for the same pods in the same states; return the different answers."""
    differences = []
    for step in steps:
        if step.storage is not None:
            await world.furnish(step.storage)
        answer, _ = await world.ask(step.pod, nominated=step.answer.node)
        if answer != step.answer:
            differences.append(Difference(step, answer))
        is_right = answer.node == step.answer.node
        if not (step.is_kept and is_right and answer.node):
            await world.remove(step.pod)
        if step.is_kept and not is_right and step.answer.node:
            await world.put(step.pod, step.answer.node)
    return differences


async def _ask(world: World, cluster: Cluster, pod: JsonObject, *, is_kept: bool) -> Step:
    storage = await world.storage() if cluster.has_volumes else None
    answer, admitted = await world.ask(pod)
    if not answer.node or not is_kept:
        await world.remove(pod)
    return Step(pod, admitted, storage, answer, is_kept)


def key_of(pod: JsonObject) -> str:
    """Return namespace and name of a pod."""
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
