"""Compares `core.check` and the plans of the core with kube-scheduler."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from karpy.codec.fields import JsonObject
from karpy.codec.manifests import read_manifests
from karpy.core.check.breaches import Breach
from karpy.core.check.plan import check_plan
from karpy.model.instances import Catalog
from karpy.model.pods import Pod
from karpy.model.resources import CPU, MEMORY
from karpy.model.settings import Settings
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Nomination, Reason, Refusal, Verdict
from tests.fidelity.clusters import Cluster
from tests.fidelity.known import Excuses, Known
from tests.fidelity.noderules import REQUIRED
from tests.fidelity.stories import Step, key_of
from tests.fidelity.worlds import Answer, World

_NOON: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
_GIVEN_UP: Final = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


def read_snapshot(listed: Iterable[JsonObject], pending: Iterable[JsonObject]) -> Snapshot:
    """Return the snapshot of listed objects and of pods that are unschedulable."""
    given_up = [{**each, "status": {"conditions": [_GIVEN_UP]}} for each in pending]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [*listed, *given_up]})
    reading = read_manifests([("cluster", text)], Catalog(), Settings(), _NOON)
    assert reading.problems == (), reading.problems
    return reading.snapshot


def find_breaches(snapshot: Snapshot, steps: Iterable[Step]) -> tuple[Breach, ...]:
    """Return the rules broken by a scheduler's placements, according to `core.check`."""
    placed: dict[str, list[str]] = {}
    left: dict[str, None] = {}
    for step in steps:
        if not step.is_kept:
            continue
        if step.answer.node:
            left.pop(step.key, None)
            placed.setdefault(step.answer.node, []).append(step.key)
        else:
            left[step.key] = None
    nominations = tuple(Nomination(node, tuple(pods)) for node, pods in placed.items())
    refusals = (Refusal(Reason.NO_HOST, tuple(left)),) if left else ()
    return check_plan(snapshot, Verdict(nominations=nominations, refusals=refusals))


@dataclass(frozen=True)
class Trial:
    """The result of a plan: pods that a scheduler refused on their nodes, and known reasons."""

    missed: dict[str, Answer]
    excused: tuple[Known, ...]


async def try_plan(world: World, snapshot: Snapshot, verdict: Verdict, cluster: Cluster) -> Trial:
    """
    Let a scheduler carry out nominations.

    A refused pod is retried after other pods: a plan promises only that some order works. A pod
    refused for a known reason is bound to its node by force, so that the rest can be tested.
    """
    node_of = {pod: each.node for each in verdict.nominations for pod in each.pods}
    pods = {key_of(each): each for each in cluster.pods}
    excuses = Excuses(cluster)
    waiting = [each.key for each in sorted(snapshot.pods, key=_turn) if each.key in node_of]
    excused: list[Known] = []
    while waiting:
        for key in waiting:
            if await _is_carried_out(world, pods[key], node_of[key]):
                break
        else:
            answers = {each: await _why_not(world, pods[each], node_of[each]) for each in waiting}
            known = {each: excuses.why_missed(each, why) for each, why in answers.items()}
            key = next((each for each in waiting if known[each]), "")
            if not key:
                return Trial(answers, tuple(excused))
            excused += [why for why in (known[key],) if why]
            await world.put(pods[key], node_of[key])
        # A pod refused before may fit now: retry it before the remaining pods.
        waiting.remove(key)
    return Trial({}, tuple(excused))


def _turn(pod: Pod) -> tuple[bool, int, int, str]:
    """Return the sort key: pods with affinity first, then in the order of placement."""
    rules = pod.rules
    is_free = not (rules.spreads or rules.affinity or rules.anti_affinity)
    return is_free, -pod.requests.get(CPU, 0), -pod.requests.get(MEMORY, 0), pod.key


async def _is_carried_out(world: World, pod: JsonObject, node: str) -> bool:
    # On another node the pod would bind its volumes there for ever.
    asked = _pinned(pod, node) if "volumes" in pod["spec"] else pod
    answer, _ = await world.ask(asked, nominated=node)
    if answer.node != node:
        await world.remove(pod)
    return answer.node == node


async def _why_not(world: World, pod: JsonObject, node: str) -> Answer:
    """Return the answer for one node: a scheduler says nothing of nodes that it did not choose."""
    answer, _ = await world.ask(_pinned(pod, node))
    await world.remove(pod)
    return answer


def _pinned(pod: JsonObject, node: str) -> JsonObject:
    """Return a pod with required affinity to one node."""
    only = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    affinity = dict(pod["spec"].get("affinity") or {})
    required = (affinity.get("nodeAffinity") or {}).get(REQUIRED) or {"nodeSelectorTerms": [{}]}
    terms = [{**term, **only} for term in required["nodeSelectorTerms"]]
    affinity["nodeAffinity"] = {REQUIRED: {"nodeSelectorTerms": terms}}
    return {**pod, "spec": {**pod["spec"], "affinity": affinity}}
