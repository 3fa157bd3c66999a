"""Durations of thousands of years, on a cluster that lives and an operator that keeps it."""

import asyncio
from typing import Final

import pytest

from karpy.codec.fields import JsonObject
from karpy.controllers.queue import WorkQueue
from karpy.model.kinds import (
    CRON_JOB,
    DEPLOYMENT,
    JOB,
    KWOK_NODE_CLASS,
    NODE_CLAIM,
    NODE_POOL,
    POD,
)
from karpy.model.labels import NODE_POOL as POOL_LABEL
from karpy.model.times import LONGEST
from karpy.sim.world import World
from tests.scenarios.manifests import deployment, node_class, pod_spec, pool
from tests.scenarios.stage import Stage, staged
from tests.sim.stories import living, on_virtual_time

AGES: Final = "100000000h"
MOST: Final = 2**63 - 1
ENDLESS: Final = {
    "terminationGracePeriodSeconds": MOST,
    "nodeSelector": {POOL_LABEL: "endless"},
    "tolerations": [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": MOST}],
}
MINUTE: Final = 60


def endless(annotation: str) -> JsonObject:
    """Have pods that may not be disturbed, on nodes of their own, for longer than time lasts."""
    made = deployment("endless", 2, pod={**pod_spec(), **ENDLESS})
    meta = made["spec"]["template"]["metadata"]
    meta["annotations"] = {"karpenter.sh/do-not-disrupt": annotation}
    return made


async def furnish(stage: Stage, annotation: str) -> None:
    """Have a pool whose nodes never end, and one like any other, with pods on both."""
    ages = {"expireAfter": AGES, "terminationGracePeriod": AGES}
    window = {"nodes": "1", "schedule": "@daily", "duration": AGES}
    never = {"consolidateAfter": AGES, "consolidationPolicy": "WhenEmpty", "budgets": [window]}
    at_once = {"consolidateAfter": "0s", "consolidationPolicy": "WhenEmpty"}
    stage.apply(KWOK_NODE_CLASS, node_class())
    stage.apply(NODE_POOL, pool("endless", template=ages, disruption=never))
    stage.apply(NODE_POOL, pool("calm", disruption={**at_once, "budgets": [{"nodes": "100%"}]}))
    calm = {**pod_spec(), "nodeSelector": {POOL_LABEL: "calm"}}
    stage.apply(DEPLOYMENT, deployment("web", 2, pod=calm))
    stage.apply(DEPLOYMENT, endless(annotation))
    await stage.until_running("web", 2)
    await stage.until_running("endless", 2)


@pytest.mark.parametrize("annotation", [AGES, "2562047h", "9" * 20_000, "1" * 20_000 + "h"])
@on_virtual_time
async def test_what_lasts_for_ages_stops_the_disruption_of_nothing_else(annotation: str) -> None:
    async with staged() as stage:
        await furnish(stage, annotation)
        stage.scale("web", 0)
        await stage.until(lambda: len(stage.nodes) == 1)
        await asyncio.sleep(10 * MINUTE)
        running = {each["status"]["phase"] for each in stage.pods("endless")}
        failures = list(stage.voice.failures)

    assert running == {"Running"}
    assert failures == []


@on_virtual_time
async def test_a_node_whose_pods_may_take_ages_to_stop_is_drained() -> None:
    async with staged() as stage:
        await furnish(stage, "1s")
        (claim,) = (
            each["metadata"]["name"]
            for each in stage.store.list(NODE_CLAIM)
            if each["metadata"]["labels"][POOL_LABEL] == "endless"
        )
        stage.delete(NODE_CLAIM, claim)
        await stage.until(lambda: claim not in stage.names(NODE_CLAIM))
        await stage.until_running("endless", 2)
        failures = list(stage.voice.failures)

    assert failures == []


ENDLESS_POD: Final = {
    **pod_spec(),
    **ENDLESS,
    "nodeSelector": {},
    "activeDeadlineSeconds": 2**31 - 1,
}
ENDLESS_JOB: Final = {
    "activeDeadlineSeconds": MOST,
    "ttlSecondsAfterFinished": 2**31 - 1,
    "template": {"spec": {**ENDLESS_POD, "restartPolicy": "Never"}},
}


@on_virtual_time
async def test_workloads_with_deadlines_in_ages_run() -> None:
    world = World()
    world.add_node("n", cpu="16")
    with living(world):
        scheduled = {"schedule": "* * * * *", "startingDeadlineSeconds": MOST}
        cron = {**scheduled, "jobTemplate": {"spec": ENDLESS_JOB}}
        meta = {"name": "endless", "namespace": "default"}
        rollout = deployment("slow", 1, progressDeadlineSeconds=2**31 - 1)
        world.store.create(JOB, {"metadata": meta, "spec": ENDLESS_JOB})
        world.store.create(CRON_JOB, {"metadata": meta, "spec": cron})
        world.store.create(DEPLOYMENT, rollout)
        world.store.create(POD, {"metadata": meta, "spec": ENDLESS_POD})
        await asyncio.sleep(3 * MINUTE)
        world.store.delete(POD, "endless", namespace="default")
        await asyncio.sleep(MINUTE)
        phases = {each["status"]["phase"] for each in world.store.list(POD)}
        names = [each["metadata"]["name"] for each in world.store.list(POD)]

    assert phases == {"Running", "Succeeded"}
    assert "endless" not in names


async def test_a_key_that_is_put_off_for_ages_holds_up_no_other() -> None:
    queue, done = WorkQueue(), list[str]()

    async def work(key: str) -> float | None:
        done.append(key)
        queue.close()
        return None

    queue.add_after("never", 30 * LONGEST.total_seconds())
    queue.add_after("soon", 0.01)
    await queue.run(work)

    assert done == ["soon"]
