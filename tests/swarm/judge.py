"""Checks of the state at the end of a story."""

import asyncio
from collections.abc import Iterator, Sequence

from karpy.adapters.mirror.mirror import Mirror
from karpy.codec.fields import JsonObject
from karpy.core.check.alone import find_hosts
from karpy.core.scheduling.decide import decide
from karpy.model.kinds import DISRUPTION_BUDGET, NODE, NODE_CLAIM, POD
from karpy.model.labels import DO_NOT_DISRUPT
from karpy.model.settings import Options
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Reason, Verdict
from karpy.ports.cloud import CloudProvider, Machine
from karpy.sim.store.conditions import condition_of
from karpy.sim.world import World
from tests.hostile.pods import FOREVER
from tests.swarm.findings import Finding, Law


async def judge(
    world: World, cloud: CloudProvider, seen: Snapshot, options: Options
) -> list[Finding]:
    """Return the broken laws; `seen` is the snapshot of the operator."""
    actual = await _look(world, seen, options)
    machines = await cloud.machines()
    return [
        *_misread(seen, actual),
        *_unfinished(world),
        *_orphans(world, machines),
        *_unplaced(world, actual),
    ]


def is_waited_for(world: World) -> bool:
    """Say whether a machine may still join, so that silence does not mean the end."""
    return any(
        "deletionTimestamp" not in claim["metadata"] and not _is_true(claim, "Registered")
        for claim in world.store.list(NODE_CLAIM)
    )


async def _look(world: World, seen: Snapshot, options: Options) -> Snapshot:
    """Return the snapshot of a freshly listed cluster."""
    mirror = Mirror(world.objects, world.clock, lambda: seen.catalog, options.settings())
    task = asyncio.create_task(mirror.run())
    try:
        await mirror.wait_until_listed()
        return mirror.snapshot()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _misread(seen: Snapshot, actual: Snapshot) -> Iterator[Finding]:
    known = (
        ({each.key: each for each in seen.pods}, {each.key: each for each in actual.pods}),
        ({each.name: each for each in seen.nodes}, {each.name: each for each in actual.nodes}),
        ({each.name: each for each in seen.pools}, {each.name: each for each in actual.pools}),
    )
    for ours, theirs in known:
        for name in sorted({*ours, *theirs}):
            if ours.get(name) != theirs.get(name):
                yield Finding(Law.MIRROR, f"{name} is {theirs.get(name)}, not {ours.get(name)}")


def _unfinished(world: World) -> Iterator[Finding]:
    for claim in world.store.list(NODE_CLAIM):
        name = claim["metadata"]["name"]
        if "deletionTimestamp" in claim["metadata"]:
            if not _is_held(world, (claim.get("status") or {}).get("nodeName", "")):
                yield Finding(Law.UNFINISHED, f"claim {name} does not go")
        elif not _is_true(claim, "Ready"):
            yield Finding(Law.UNFINISHED, f"claim {name}: {condition_of(claim, 'Ready')}")


def _is_held(world: World, node: str) -> bool:
    """Say whether the drain of a node is blocked by budgets or annotations of pods."""
    return any(_may_stay(world, each) for each in world.store.pods_on(node))


def _may_stay(world: World, pod: JsonObject) -> bool:
    if (pod["metadata"].get("annotations") or {}).get(DO_NOT_DISRUPT) in {"true", FOREVER}:
        return True
    app = (pod["metadata"].get("labels") or {}).get("app")
    return any(
        each["metadata"]["name"] == app
        and not (each.get("status") or {}).get("disruptionsAllowed", 0)
        for each in world.store.list(DISRUPTION_BUDGET)
    )


def _orphans(world: World, machines: Sequence[Machine]) -> Iterator[Finding]:
    claims = {(each.get("status") or {}).get("providerID") for each in world.store.list(NODE_CLAIM)}
    for machine in machines:
        if machine.provider_id not in claims:
            yield Finding(Law.ORPHAN, f"machine {machine.provider_id} of {machine.claim}")
    for node in world.store.list(NODE):
        name, is_deleting = node["metadata"]["name"], "deletionTimestamp" in node["metadata"]
        is_ours = (node.get("spec") or {}).get("providerID") in claims
        if not is_ours and not (is_deleting and _is_held(world, name)):
            yield Finding(Law.ORPHAN, f"node {name}")


def _unplaced(world: World, actual: Snapshot) -> Iterator[Finding]:
    verdict = decide(actual)
    yield from _undone(actual, verdict)
    refused = {pod: each for each in verdict.refusals for pod in each.pods}
    known = {*refused, *_excused(actual)}
    for pod, refusal in refused.items():
        hosts = find_hosts(actual, verdict, pod) if refusal.reason is Reason.NO_HOST else ()
        if hosts:
            yield Finding(Law.FEASIBLE, f"{pod} is refused, but there is {hosts[0]}")
    for obj in world.store.list(POD):
        meta, phase = obj["metadata"], obj["status"].get("phase")
        is_known = f"{meta['namespace']}/{meta['name']}" in known or _is_daemon(obj)
        if obj["spec"].get("nodeName"):
            if phase not in {"Running", "Succeeded", "Failed"}:
                yield Finding(Law.FEASIBLE, f"{meta['name']} is bound, and {phase}")
        elif not is_known:
            yield Finding(Law.FEASIBLE, f"{meta['name']} waits without a reason")


def _undone(actual: Snapshot, verdict: Verdict) -> Iterator[Finding]:
    """Return what a decision could still do for pending pods."""
    excused = _excused(actual)
    places = [(f"a node of {each.pool} would help", each.pods) for each in verdict.launches]
    places += [(f"{each.node} has room for", each.pods) for each in verdict.nominations]
    for what, pods in places:
        waiting = [each for each in pods if each not in excused]
        if waiting:
            yield Finding(Law.FEASIBLE, f"{what} {', '.join(waiting)}")


def _excused(actual: Snapshot) -> frozenset[str]:
    """
    Return the pods that must wait for the deletion of a node whose drain is blocked.

    The pods on that node have a place elsewhere, but stay; pods with anti-affinity to them, or with
    affinity to their future place, wait as well.
    """
    leaving = {each.name for each in actual.nodes if each.is_deleting}
    stay = {each.key for each in actual.pods if each.node_name in leaving}
    wait = {
        each.key
        for each in actual.pods
        if not each.node_name
        and (each.rules.spreads or each.rules.affinity or each.rules.anti_affinity)
    }
    return frozenset(stay | wait if stay else ())


def _is_daemon(pod: JsonObject) -> bool:
    """Say whether a DaemonSet owns a pod: no node is launched for such pods."""
    owners = pod["metadata"].get("ownerReferences") or ()
    return any(each["kind"] == "DaemonSet" for each in owners)


def _is_true(obj: JsonObject, type_: str) -> bool:
    found = condition_of(obj, type_)
    return found is not None and found["status"] == "True"
