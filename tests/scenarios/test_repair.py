"""Broken nodes are repaired, but for a veto."""

import asyncio

import pytest

from karpy.adapters.clouds.kwok.repairs import UNHEALTHY
from karpy.codec.fields import JsonObject
from karpy.model.kinds import DEPLOYMENT, KWOK_NODE_CLASS, NODE, NODE_POOL, POD, Kind
from karpy.model.labels import HOSTNAME
from karpy.model.settings import Gates, Options
from karpy.sim.kubelets.nodes import Health
from tests.scenarios.ledger import Ledger
from tests.scenarios.manifests import deployment, node_class, pod_spec, pool
from tests.scenarios.stage import Stage, staged
from tests.sim.stories import on_virtual_time

REPAIR = Options(gates=Gates(node_repair=True))
SMOKE = Health(UNHEALTHY, "True", "Smoke", "it smokes")
NODES = 5


async def furnish(stage: Stage, **disruption: object) -> None:
    """Have five nodes with a pod each."""
    stage.apply(KWOK_NODE_CLASS, node_class())
    stage.apply(NODE_POOL, pool(disruption={"consolidateAfter": "Never", **disruption}))
    apart = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "web"}}}
    alone = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    stage.apply(DEPLOYMENT, deployment("web", NODES, pod=pod_spec(affinity=alone)))
    await stage.until_running("web", NODES)


def smoke(stage: Stage) -> str:
    """Break a node; return its name."""
    name = stage.names(NODE)[0]
    stage.world.kubelets.trouble(name, SMOKE)
    return name


def annotate(stage: Stage, kind: Kind, name: str, key: str, value: str | None) -> None:
    note: JsonObject = {"metadata": {"annotations": {key: value}}}
    stage.change(kind, name, note, f"{key}: {value}")


@on_virtual_time
async def test_a_broken_node_is_replaced_before_it_goes() -> None:
    async with staged(options=REPAIR, has_cloud=True) as stage:
        ledger = Ledger(stage)
        await furnish(stage)
        broken = smoke(stage)
        await stage.until(lambda: broken not in stage.names(NODE))
        await stage.until_running("web", NODES)
        last, deleted = ledger.deeds[-2:]

        assert (last.what, deleted.what) == ("created", "deleted")
        assert len(ledger.deeds) == NODES + 2
        assert stage.voice.counted("nodeclaims_unhealthy_disrupted_total") == 1


@pytest.mark.parametrize("veto", ["karpenter.sh/do-not-repair", "budget"])
@on_virtual_time
async def test_a_veto_keeps_a_broken_node_until_it_is_lifted(veto: str) -> None:
    async with staged(options=REPAIR, has_cloud=True) as stage:
        ledger = Ledger(stage)
        is_budget = veto == "budget"
        nothing = {"budgets": [{"nodes": "0", "reasons": ["Unhealthy"]}]}
        await furnish(stage, **(nothing if is_budget else {}))
        name = stage.names(NODE)[0]
        if not is_budget:
            annotate(stage, NODE, name, veto, "true")
        broken = smoke(stage)
        await asyncio.sleep(1800)
        deeds = len(ledger.deeds)
        if is_budget:
            freely = {"spec": {"disruption": {"budgets": [{"nodes": "100%"}]}}}
            stage.change(NODE_POOL, "default", freely, "lift the veto")
        else:
            annotate(stage, NODE, name, veto, None)
        await stage.until(lambda: broken not in stage.names(NODE))

        assert deeds == NODES


@on_virtual_time
async def test_a_pod_that_must_not_be_disrupted_delays_a_repair_by_a_grace_period_at_most() -> None:
    """That of the policy: 45 seconds."""
    async with staged(options=REPAIR, has_cloud=True) as stage:
        await furnish(stage)
        for each in stage.pods("web"):
            annotate(stage, POD, each["metadata"]["name"], "karpenter.sh/do-not-disrupt", "true")
        broken = smoke(stage)
        await stage.until(lambda: broken not in stage.names(NODE), seconds=240)
        await stage.until_running("web", NODES)

        assert stage.voice.counted("nodeclaims_unhealthy_disrupted_total") == 1
