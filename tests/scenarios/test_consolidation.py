"""Nodes in use go when the others are enough or something cheaper is, and then all is quiet."""

import asyncio

import pytest

from karpy.codec.fields import JsonObject
from karpy.model.kinds import (
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    KWOK_NODE_CLASS,
    NODE_POOL,
    POD,
)
from karpy.model.labels import CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE
from karpy.model.settings import Gates, Options
from karpy.ports.objects import Patch, PatchType
from tests.scenarios.ledger import Ledger
from tests.scenarios.manifests import budget, deployment, node_class, one_of, pod_spec, pool
from tests.scenarios.stage import NAMESPACE, Stage, staged
from tests.sim.stories import on_virtual_time

ON_DEMAND = one_of(CAPACITY_TYPE, "on-demand")
SPOT = one_of(CAPACITY_TYPE, "spot")
FOUR_CPUS = one_of(INSTANCE_TYPE, "c-4x-amd64-linux")
FREELY: JsonObject = {"consolidateAfter": "30s", "budgets": [{"nodes": "100%"}]}
PROTECTED = "karpenter.sh/do-not-disrupt"


def furnish(stage: Stage, *requirements: JsonObject, disruption: JsonObject | None = None) -> None:
    stage.apply(KWOK_NODE_CLASS, node_class())
    stage.apply(
        NODE_POOL,
        pool(requirements=list(requirements) or [ON_DEMAND], disruption=disruption or FREELY),
    )


async def until_alone(stage: Stage, app: str, replicas: int) -> None:
    """Have pods of a Deployment that needs half of a node each, and leave every node one."""
    stage.apply(DEPLOYMENT, deployment(app, 2 * replicas, pod=pod_spec("1700m")))
    await stage.until_running(app, 2 * replicas)
    seen = set()
    for each in stage.pods(app):
        node = each["spec"]["nodeName"]
        if node in seen:
            # The ReplicaSet takes those first that cost least to delete.
            note = {"controller.kubernetes.io/pod-deletion-cost": "-1"}
            patch = Patch(PatchType.MERGE, {"metadata": {"annotations": note}})
            stage.store.patch(POD, each["metadata"]["name"], patch, namespace=NAMESPACE)
        seen.add(node)
    stage.scale(app, replicas)
    await stage.until_running(app, replicas)


@on_virtual_time
async def test_after_a_scale_in_the_cluster_gets_cheaper_and_stays_as_it_is() -> None:
    async with staged() as stage:
        ledger = Ledger(stage)
        furnish(stage)
        stage.apply(DEPLOYMENT, deployment(replicas=60))
        await stage.until_running("inflate", 60)
        stage.apply(DEPLOYMENT, deployment("web", 10, pod=pod_spec("500m")))
        await stage.until_running("web", 10)
        full = ledger.price
        stage.scale("inflate", 20)
        await asyncio.sleep(30 * 60)
        lean, settled = ledger.price, ledger.second
        await asyncio.sleep(24 * 3600)

        assert stage.is_running("inflate", 20)
        assert stage.is_running("web", 10)
        assert lean < 0.5 * full
        assert ledger.price == lean
        assert ledger.names("created", after=settled) == []
        assert ledger.names("deleted", after=settled) == []
        assert stage.voice.failures == []


@on_virtual_time
async def test_nodes_that_are_half_empty_become_fewer() -> None:
    async with staged() as stage:
        furnish(stage, ON_DEMAND, FOUR_CPUS)
        await until_alone(stage, "web", 4)
        before = len(stage.nodes)
        await stage.until(lambda: len(stage.nodes) == 2)
        await stage.until_running("web", 4)

        assert before == 4
        assert stage.voice.counted("voluntary_disruption_decisions_total", decision="delete") >= 1
        assert stage.voice.counted("nodeclaims_created_total", reason="underutilized") == 0


@on_virtual_time
async def test_pods_that_move_find_the_room_that_was_planned_for_them() -> None:
    """
    Small pods would take it from the large ones, for which nodes would then be bought, and so on.
    """
    sizes = ("300m", "700m", "1300m", "2200m", "3700m", "5100m")
    async with staged() as stage:
        ledger = Ledger(stage)
        furnish(stage, ON_DEMAND, one_of("karpenter.kwok.sh/instance-cpu", "16"))
        for size in sizes:
            stage.apply(DEPLOYMENT, deployment(f"web-{size}", 10, pod=pod_spec(size)))
        for size in sizes:
            await stage.until_running(f"web-{size}", 10)
        before = len(stage.claims)
        for size in sizes:
            stage.scale(f"web-{size}", 7)
        await asyncio.sleep(1800)

        assert len(stage.claims) < before
        assert len(ledger.names("created")) == before
        assert all(stage.is_running(f"web-{size}", 7) for size in sizes)


@on_virtual_time
async def test_a_node_that_is_too_large_is_replaced_by_a_cheaper_one() -> None:
    async with staged() as stage:
        ledger = Ledger(stage)
        furnish(stage)
        stage.apply(DEPLOYMENT, deployment(replicas=7))
        await stage.until_running("inflate", 7)
        full = ledger.price
        stage.scale("inflate", 1)
        await stage.until(lambda: ledger.price < full and len(stage.claims) == 1)
        await stage.until_running("inflate", 1)

        assert len(ledger.names("created")) == 2
        assert stage.voice.counted("nodeclaims_created_total", reason="underutilized") == 1
        assert stage.voice.counted("consolidation_moves_total", decision="approved") == 1


@pytest.mark.parametrize("has_gate", [True, False], ids=["behind its gate", "without it"])
@on_virtual_time
async def test_a_spot_node_is_replaced_by_a_spot_node_only_behind_a_gate(*, has_gate: bool) -> None:
    options = Options(gates=Gates(spot_to_spot_consolidation=has_gate))
    async with staged(options=options) as stage:
        ledger = Ledger(stage)
        furnish(stage, SPOT)
        stage.apply(DEPLOYMENT, deployment(replicas=100))
        await stage.until_running("inflate", 100)
        full = ledger.price
        stage.scale("inflate", 9)
        await stage.until_running("inflate", 9)
        await asyncio.sleep(600)

        assert (ledger.price < full) is has_gate
        assert len(ledger.names("created")) == (2 if has_gate else 1)


@on_virtual_time
async def test_a_pod_that_must_not_be_disrupted_keeps_its_node() -> None:
    async with staged() as stage:
        furnish(stage, ON_DEMAND, FOUR_CPUS)
        await until_alone(stage, "web", 2)
        protect(stage, "web", "true")
        await asyncio.sleep(1800)
        held = len(stage.nodes)
        protect(stage, "web", None)
        await stage.until(lambda: len(stage.nodes) == 1)
        await stage.until_running("web", 2)

        assert held == 2


def protect(stage: Stage, app: str, value: str | None) -> None:
    """Write the annotation on all pods of an app, or remove it."""
    for each in stage.pods(app):
        note = {"metadata": {"annotations": {PROTECTED: value}}}
        stage.change(POD, each["metadata"]["name"], note, f"{PROTECTED}: {value}")


@on_virtual_time
async def test_a_protection_that_ends_lets_its_node_go_then() -> None:
    async with staged() as stage:
        ledger = Ledger(stage)
        furnish(stage, ON_DEMAND, FOUR_CPUS)
        await until_alone(stage, "web", 2)
        protect(stage, "web", "45m")
        await stage.until(lambda: len(stage.nodes) == 1, seconds=3600)
        gone = ledger.second
        await stage.until_running("web", 2)

        assert 45 * 60 < gone < 47 * 60


@on_virtual_time
async def test_a_budget_of_pods_keeps_nodes_until_it_lets_one_go() -> None:
    async with staged() as stage:
        furnish(stage, ON_DEMAND, FOUR_CPUS)
        await until_alone(stage, "web", 2)
        stage.apply(DISRUPTION_BUDGET, budget("web", minAvailable=2))
        await asyncio.sleep(1800)
        held = len(stage.nodes)
        stage.change(DISRUPTION_BUDGET, "web", {"spec": {"minAvailable": 1}}, "let one pod go")
        await stage.until(lambda: len(stage.nodes) == 1)

        assert held == 2


@pytest.mark.parametrize(
    ("policy", "nodes"), [("WhenEmptyOrUnderutilized", 1), ("Balanced", 2), ("WhenEmpty", 2)]
)
@on_virtual_time
async def test_a_move_that_saves_little_for_many_pods_is_made_by_some_policies_only(
    policy: str, nodes: int
) -> None:
    """The smaller node is full of small pods; the larger one has room for them all."""
    async with staged() as stage:
        furnish(stage, ON_DEMAND, disruption={**FREELY, "consolidationPolicy": policy})
        stage.apply(DEPLOYMENT, deployment("big", 1, pod=pod_spec("3")))
        await stage.until_running("big", 1)
        apart = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "big"}}}
        away = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
        stage.apply(DEPLOYMENT, deployment("small", 9, pod=pod_spec("100m", affinity=away)))
        await stage.until_running("small", 9)
        stage.delete(DEPLOYMENT, "small")
        stage.apply(DEPLOYMENT, deployment("other", 9, pod=pod_spec("30m")))
        await stage.until_running("other", 9)
        await asyncio.sleep(1200)

        assert len(stage.nodes) == nodes


@on_virtual_time
async def test_a_budget_of_nothing_holds_every_node() -> None:
    async with staged() as stage:
        ledger = Ledger(stage)
        furnish(
            stage,
            ON_DEMAND,
            FOUR_CPUS,
            disruption={"consolidateAfter": "0s", "budgets": [{"nodes": "0"}]},
        )
        await until_alone(stage, "web", 4)
        labels = {"spec": {"template": {"metadata": {"labels": {"team": "shop"}}}}}
        stage.change(NODE_POOL, "default", labels, "label its nodes")
        stage.scale("web", 1)
        await asyncio.sleep(3600)

        assert len(stage.nodes) == 4
        assert ledger.names("deleted") == []
        assert len(ledger.names("created")) == 4


@on_virtual_time
async def test_a_pod_that_can_never_be_scheduled_holds_nothing_up() -> None:
    async with staged() as stage:
        furnish(stage, ON_DEMAND, FOUR_CPUS)
        await until_alone(stage, "web", 2)
        stage.apply(DEPLOYMENT, deployment("never", 1, pod=pod_spec("400")))
        ledger = Ledger(stage)
        await stage.until(lambda: len(stage.nodes) == 1)

        assert ledger.second < 120


@on_virtual_time
async def test_while_nodes_for_pending_pods_are_on_their_way_no_pod_is_moved() -> None:
    async with staged(has_cloud=True) as stage:
        ledger = Ledger(stage)
        furnish(stage, ON_DEMAND, FOUR_CPUS, disruption={**FREELY, "consolidateAfter": "0s"})
        await until_alone(stage, "web", 2)
        stage.apply(DEPLOYMENT, deployment("burst", 10, pod=pod_spec("3")))
        await stage.until_running("burst", 10)
        burst = ledger.second
        await stage.until(lambda: stage.is_running("web", 2) and len(ledger.names("deleted")) > 0)

        assert ledger.names("deleted", before=burst) == []


@on_virtual_time
async def test_a_deployment_in_the_middle_of_a_rollout_is_left_alone_but_not_for_ever() -> None:
    async with staged() as stage:
        furnish(stage, ON_DEMAND, FOUR_CPUS)
        await until_alone(stage, "web", 2)
        ledger = Ledger(stage)
        # A new pod takes the place of an old one and never gets ready, so that the other stays.
        stuck = {"metadata": {"annotations": {"sim.karpy.dev/ready-seconds": "never"}}}
        steps = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
        body = {"spec": {"template": stuck, "strategy": steps}}
        stage.change(DEPLOYMENT, "web", body, "roll out what never gets ready")
        await asyncio.sleep(8 * 60)
        early = ledger.names("deleted")
        await stage.until(lambda: bool(ledger.names("deleted")), seconds=1200)
        late = ledger.second

        assert early == []
        assert 10 * 60 < late < 17 * 60
