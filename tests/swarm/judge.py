"""What must hold when a story has come to rest."""

import asyncio
from collections.abc import Iterator

from karpy.adapters.mirror.mirror import Mirror
from karpy.codec.fields import JsonObject
from karpy.core.check.alone import find_hosts
from karpy.core.provisioning.decide import decide
from karpy.model.kinds import NODE, NODE_CLAIM, POD
from karpy.model.options import Options
from karpy.model.refusals import Reason
from karpy.model.snapshot import Snapshot
from karpy.ports.cloud import CloudProvider
from karpy.sim.store.conditions import condition_of
from karpy.sim.world import World
from tests.swarm.findings import Finding, Law


async def judge(
    world: World, cloud: CloudProvider, seen: Snapshot, options: Options
) -> list[Finding]:
    """Return every promise that is broken now; `seen` is what the operator knows."""
    actual = await _look(world, seen, options)
    second = asyncio.get_running_loop().time()
    findings = [
        *_unlike(seen, actual),
        *_unfinished(world),
        *_unplaced(world, actual),
        *[each async for each in _orphans(world, cloud)],
    ]
    return [Finding(each.law, each.text, second) for each in findings]


def is_waited_for(world: World) -> bool:
    """Say whether a machine may still join: nothing is written meanwhile, and nothing is over."""
    return any(
        "deletionTimestamp" not in claim["metadata"]
        and ((found := condition_of(claim, "Registered")) is None or found["status"] != "True")
        for claim in world.store.list(NODE_CLAIM)
    )


async def _look(world: World, seen: Snapshot, options: Options) -> Snapshot:
    """See everything as somebody does who has just come."""
    mirror = Mirror(world.objects, world.clock, lambda: seen.catalog, options.settings())
    task = asyncio.create_task(mirror.run())
    try:
        await mirror.wait_until_listed()
        return mirror.snapshot()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _unlike(seen: Snapshot, actual: Snapshot) -> Iterator[Finding]:
    for field in ("pods", "nodes", "pools", "daemons"):
        ours, theirs = (
            {getattr(each, "key", each.name): each for each in getattr(snapshot, field)}
            for snapshot in (seen, actual)
        )
        wrong = sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))
        if wrong:
            yield Finding(Law.MIRROR, f"{field} are known wrongly: {', '.join(wrong)}")


def _unfinished(world: World) -> Iterator[Finding]:
    for claim in world.store.list(NODE_CLAIM):
        name = claim["metadata"]["name"]
        ready = condition_of(claim, "Ready")
        if "deletionTimestamp" in claim["metadata"]:
            if not _is_held(world, claim):
                yield Finding(Law.UNFINISHED, f"claim {name} does not go")
        elif ready is None or ready["status"] != "True":
            yield Finding(Law.UNFINISHED, f"claim {name} does not get ready: {ready}")


def _is_held(world: World, claim: JsonObject) -> bool:
    """Say whether pods on the node of a claim may stay: budgets or annotations hold them."""
    node = (claim.get("status") or {}).get("nodeName", "")
    return any(
        each["metadata"].get("annotations", {}).get("karpenter.sh/do-not-disrupt")
        or _is_guarded(world, each)
        for each in world.store.pods_on(node)
    )


def _is_guarded(world: World, pod: JsonObject) -> bool:
    from karpy.model.kinds import DISRUPTION_BUDGET

    app = (pod["metadata"].get("labels") or {}).get("app")
    return any(
        each["metadata"]["name"] == app
        and not (each.get("status") or {}).get("disruptionsAllowed", 0)
        for each in world.store.list(DISRUPTION_BUDGET)
    )


async def _orphans(world: World, cloud: CloudProvider):  # type: ignore
    claims = {(each.get("status") or {}).get("providerID") for each in world.store.list(NODE_CLAIM)}
    for machine in await cloud.machines():
        if machine.provider_id not in claims:
            yield Finding(Law.ORPHAN, f"machine {machine.provider_id} of {machine.claim}")
    for node in world.store.list(NODE):
        if (node.get("spec") or {}).get("providerID") not in claims:
            yield Finding(Law.ORPHAN, f"node {node['metadata']['name']}")


def _unplaced(world: World, actual: Snapshot) -> Iterator[Finding]:
    verdict = decide(actual)
    for launch in verdict.launches:
        yield Finding(Law.FEASIBLE, f"a node of {launch.pool} would help {', '.join(launch.pods)}")
    leaving = {each.name for each in actual.nodes if each.is_deleting}
    bound = {each.key for each in actual.pods if each.node_name and each.node_name in leaving}
    for nomination in verdict.nominations:
        waiting = sorted(set(nomination.pods) - bound)
        if waiting:
            yield Finding(Law.FEASIBLE, f"{nomination.node} has room for {', '.join(waiting)}")
    refused = {pod: each for each in verdict.refusals for pod in each.pods}
    for pod, refusal in refused.items():
        if refusal.reason is not Reason.NO_HOST:
            continue
        hosts = find_hosts(actual, verdict, pod)
        if hosts:
            yield Finding(Law.FEASIBLE, f"{pod} is refused, but there is {hosts[0]}")
    for pod in world.store.list(POD):
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        is_bound = bool(pod["spec"].get("nodeName"))
        if is_bound and pod["status"].get("phase") != "Running":
            yield Finding(Law.FEASIBLE, f"{name} is bound and {pod['status'].get('phase')}")
        elif not is_bound and f"{namespace}/{name}" not in refused and not _is_daemon(pod):
            yield Finding(Law.FEASIBLE, f"{name} waits, and nobody knows why")


def _is_daemon(pod: JsonObject) -> bool:
    """Nodes are not made for daemons; they may find theirs full."""
    owners = pod["metadata"].get("ownerReferences") or ()
    return any(each["kind"] == "DaemonSet" for each in owners)
