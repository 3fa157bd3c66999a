"""The core's judge and the core's plans, held against what kube-scheduler does."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from karpy.codec.fields import JsonObject
from karpy.codec.manifests import read_manifests
from karpy.core.check.breaches import Breach
from karpy.core.check.plan import check_plan
from karpy.model.instances import Catalog
from karpy.model.refusals import Reason, Refusal
from karpy.model.resources import CPU, MEMORY
from karpy.model.settings import Settings
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Nomination, Verdict
from tests.fidelity.stories import Step, key_of
from tests.fidelity.worlds import Answer, World

_NOON: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
_GIVEN_UP: Final = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


def read_snapshot(listed: Iterable[JsonObject], pending: Iterable[JsonObject]) -> Snapshot:
    """Read a cluster as its API server has it, and pods that kube-scheduler has given up on."""
    given_up = [{**each, "status": {"conditions": [_GIVEN_UP]}} for each in pending]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [*listed, *given_up]})
    reading = read_manifests([("cluster", text)], Catalog(), Settings(), _NOON)
    assert reading.problems == (), reading.problems
    return reading.snapshot


def find_breaches(snapshot: Snapshot, steps: Iterable[Step]) -> tuple[Breach, ...]:
    """Have the judge look at what a scheduler did with the pods of a snapshot."""
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


async def try_plan(
    world: World, snapshot: Snapshot, verdict: Verdict, pods: Iterable[JsonObject]
) -> dict[str, Answer]:
    """
    Have a scheduler carry out nominations; return the pods that end up elsewhere or nowhere.

    A pod that cannot come yet comes later: a plan promises that some order works.
    """
    node_of = {pod: each.node for each in verdict.nominations for pod in each.pods}
    size_of = {each.key: each.requests for each in snapshot.pods}
    by_key = {key_of(each): each for each in pods}
    # The order in which they were placed, as far as it is known.
    left = sorted(
        node_of, key=lambda key: (-size_of[key].get(CPU, 0), -size_of[key].get(MEMORY, 0))
    )
    missed: dict[str, Answer] = {}
    while left:
        missed = {}
        for key in left:
            answer, _ = await world.ask(by_key[key], nominated=node_of[key])
            if answer.node != node_of[key]:
                missed[key] = answer
                await world.remove(by_key[key])
        if len(missed) == len(left):
            break
        left = list(missed)
    return missed
