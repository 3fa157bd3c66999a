"""Nodes that differ from what is asked for are replaced, within budgets and their calendar."""

import asyncio
from datetime import UTC, datetime

import pytest

from karpy.codec.fields import JsonObject
from karpy.model.kinds import DEPLOYMENT, DISRUPTION_BUDGET, KWOK_NODE_CLASS, NODE_POOL, POD
from karpy.model.labels import CAPACITY_TYPE, HOSTNAME
from karpy.model.settings import Gates, Options
from karpy.ports.objects import EventType, WatchEvent
from tests.scenarios.ledger import Ledger
from tests.scenarios.manifests import budget, deployment, node_class, one_of, pod_spec, pool
from tests.scenarios.stage import Stage, staged
from tests.sim.stories import on_virtual_time

STATIC = Options(gates=Gates(static_capacity=True))
SHORTLY_BEFORE_NINE = datetime(2026, 1, 5, 8, 59, tzinfo=UTC)
"""On a Monday."""
NINE = 60.0
FIVE = NINE + 8 * 3600
OFFICE_HOURS: JsonObject = {"nodes": "0", "schedule": "0 9 * * mon-fri", "duration": "8h"}


async def furnish(stage: Stage, nodes: int, *budgets: JsonObject, **template: object) -> None:
    """Have so many nodes with one pod each."""
    stage.apply(KWOK_NODE_CLASS, node_class())
    disruption = {"consolidateAfter": "1h", "budgets": list(budgets)}
    stage.apply(
        NODE_POOL,
        pool(
            requirements=[one_of(CAPACITY_TYPE, "on-demand")],
            disruption=disruption,
            template=dict(template),
        ),
    )
    apart = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "web"}}}
    alone = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    stage.apply(DEPLOYMENT, deployment("web", nodes, pod=pod_spec(affinity=alone)))
    await stage.until_running("web", nodes)


def relabel(stage: Stage, team: str = "shop") -> None:
    """Change the NodePool so that all its nodes drift."""
    labels = {"spec": {"template": {"metadata": {"labels": {"team": team}}}}}
    stage.change(NODE_POOL, "default", labels, f"label its nodes with {team}")


def teams(stage: Stage) -> list[str]:
    return sorted(each["metadata"]["labels"].get("team", "") for each in stage.nodes)


@on_virtual_time
async def test_a_pool_is_rolled_within_its_budget_and_outside_of_office_hours() -> None:
    async with staged(start=SHORTLY_BEFORE_NINE) as stage:
        ledger = Ledger(stage)
        await furnish(stage, 20, {"nodes": "10%"}, OFFICE_HOURS)
        relabel(stage)
        await stage.until(lambda: teams(stage) == ["shop"] * 20, seconds=10 * 3600)
        await stage.until_running("web", 20)

        # A command that has begun by nine ends a moment later.
        before = ledger.names("deleted", before=NINE + 5)
        within = ledger.names("deleted", after=NINE + 5, before=FIVE)
        after = ledger.names("deleted", after=FIVE)
        assert 0 < len(before) < 20
        assert within == []
        assert len(before) + len(after) == 20
        # Replacements are nodes of the pool, too, and a tenth of 21 or 22 is rounded up.
        assert ledger.most_deleting <= 3
        assert len(stage.claims) == 20


@pytest.mark.parametrize(("nodes", "seconds"), [("1", 90), ("100%", 40)])
@on_virtual_time
async def test_the_next_node_goes_as_soon_as_a_budget_lets_it(nodes: str, seconds: int) -> None:
    """A drain takes five seconds; there is no wait for the next regular pass after it."""
    async with staged() as stage:
        ledger = Ledger(stage)
        await furnish(stage, 10, {"nodes": nodes})
        await asyncio.sleep(60)
        relabel(stage)
        began = ledger.second
        await stage.until(lambda: teams(stage) == ["shop"] * 10)

        assert ledger.second - began < seconds


@on_virtual_time
async def test_no_pod_waits_while_a_pool_is_rolled() -> None:
    async with staged(has_cloud=True) as stage:
        await furnish(stage, 6, {"nodes": "50%"})
        stage.apply(DISRUPTION_BUDGET, budget("web", maxUnavailable=1))
        await asyncio.sleep(60)
        relabel(stage)
        least = 6
        for _ in range(1200):
            await asyncio.sleep(1)
            least = min(least, sum(map(is_running, stage.pods("web"))))
        await stage.until(lambda: teams(stage) == ["shop"] * 6)

        assert least == 5
        assert stage.is_running("web", 6)


def on_a_port(cpu: str) -> JsonObject:
    """A pod that shares its node with no other one of its kind, whatever their sizes."""
    spec = pod_spec(cpu)
    spec["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
    return spec


@on_virtual_time
async def test_each_node_of_a_roll_out_has_a_replacement_before_it_goes() -> None:
    """Also those of large pods, while small ones of the node before are on their way."""
    async with staged() as stage:
        stage.apply(KWOK_NODE_CLASS, node_class())
        disruption = {"consolidateAfter": "Never", "budgets": [{"nodes": "50%"}]}
        eight = one_of("node.kubernetes.io/instance-type", "c-8x-amd64-linux")
        stage.apply(NODE_POOL, pool(requirements=[eight], disruption=disruption))
        for app, cpu in (("small", "1"), ("middle", "2"), ("large", "3")):
            stage.apply(DEPLOYMENT, deployment(app, 2, pod=on_a_port(cpu)))
            await stage.until_running(app, 2)
        await asyncio.sleep(60)
        relabel(stage)
        await stage.until(lambda: teams(stage) == ["shop"] * 6)

        assert stage.voice.counted("nodeclaims_created_total", reason="drifted") == 6
        assert stage.voice.counted("nodeclaims_created_total", reason="provisioned") == 6


class Waits:
    """Measures how long pods wait for a node from now on, and how many nodes there are at most."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._created: dict[str, float] = {}
        self.longest = 0.0
        self.most_nodes = 0
        stage.store.subscribe(POD, self._on_pod)

    def _on_pod(self, event: WatchEvent, before: JsonObject | None) -> None:
        del before
        self.most_nodes = max(self.most_nodes, len(self._stage.nodes))
        name, now = event.object["metadata"]["name"], asyncio.get_running_loop().time()
        if event.type is EventType.ADDED:
            self._created[name] = now
        elif event.object["spec"].get("nodeName") or event.type is EventType.DELETED:
            self.longest = max(self.longest, now - self._created.pop(name, now))


@pytest.mark.parametrize("share", [10, 50, 100])
@pytest.mark.parametrize("has_cloud", [True, False])
@on_virtual_time
async def test_a_large_roll_out_launches_hardly_more_than_it_replaces(
    share: int, *, has_cloud: bool
) -> None:
    """Pods of three sizes share the nodes, and kube-scheduler puts them where it likes."""
    async with staged(has_cloud=has_cloud) as stage:
        stage.apply(KWOK_NODE_CLASS, node_class())
        disruption = {"consolidateAfter": "Never", "budgets": [{"nodes": f"{share}%"}]}
        four = one_of("node.kubernetes.io/instance-type", "c-4x-amd64-linux")
        stage.apply(NODE_POOL, pool(requirements=[four], disruption=disruption))
        apps = {"small": ("500m", 60), "middle": ("1", 30), "large": ("3", 15)}
        for app, (cpu, count) in apps.items():
            stage.apply(DEPLOYMENT, deployment(app, count, pod=pod_spec(cpu)))
        for app, (_, count) in apps.items():
            await stage.until_running(app, count)
        await asyncio.sleep(60)
        before, ledger, waits = len(stage.nodes), Ledger(stage), Waits(stage)
        relabel(stage)
        await stage.until(lambda: set(teams(stage)) == {"shop"})
        for app, (_, count) in apps.items():
            await stage.until_running(app, count)

        assert before == 30
        assert len(ledger.names("created")) <= before + 3
        # Replacements are nodes of the pool, too.
        assert ledger.most_deleting <= -(-share * waits.most_nodes // 100)
        # A batch takes ten seconds at most, and a machine some forty to boot.
        assert waits.longest < (60 if has_cloud else 20)


def is_running(pod: JsonObject) -> bool:
    return pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]


@on_virtual_time
async def test_a_replacement_stays_while_a_budget_of_pods_delays_the_drain() -> None:
    async with staged(has_cloud=True) as stage:
        ledger = Ledger(stage)
        await furnish(stage, 2, {"nodes": "1"})
        at_once = {"spec": {"disruption": {"consolidateAfter": "0s"}}}
        stage.change(NODE_POOL, "default", at_once, "let empty nodes go at once")
        stage.apply(DISRUPTION_BUDGET, budget("web", minAvailable=1))
        await asyncio.sleep(60)
        relabel(stage)
        await stage.until(lambda: len(stage.claims) == 3)
        stage.change(DISRUPTION_BUDGET, "web", {"spec": {"minAvailable": 2}}, "hold the pods")
        await asyncio.sleep(900)
        created, deleted = ledger.names("created"), ledger.names("deleted")
        stage.change(DISRUPTION_BUDGET, "web", {"spec": {"minAvailable": 1}}, "let one go")
        await stage.until(lambda: teams(stage) == ["shop"] * 2)
        await stage.until_running("web", 2)

        assert len(created) == 3
        assert len(deleted) == 1
        assert deleted[0] in created[:2]


@on_virtual_time
async def test_a_replacement_stays_though_the_operator_dies_during_the_drain() -> None:
    async with staged(has_cloud=True) as stage:
        ledger = Ledger(stage)
        await furnish(stage, 2, {"nodes": "1"})
        at_once = {"spec": {"disruption": {"consolidateAfter": "0s"}}}
        stage.change(NODE_POOL, "default", at_once, "let empty nodes go at once")
        stage.apply(DISRUPTION_BUDGET, budget("web", minAvailable=1))
        await asyncio.sleep(60)
        relabel(stage)
        await stage.until(lambda: len(stage.claims) == 3)
        stage.change(DISRUPTION_BUDGET, "web", {"spec": {"minAvailable": 2}}, "hold the pods")
        await stage.until(lambda: len(ledger.names("deleted")) == 1)
        await stage.kill()
        stage.hire()
        await asyncio.sleep(900)
        created, deleted = ledger.names("created"), ledger.names("deleted")
        stage.change(DISRUPTION_BUDGET, "web", {"spec": {"minAvailable": 1}}, "let one go")
        await stage.until(lambda: teams(stage) == ["shop"] * 2)
        await stage.until_running("web", 2)

        assert len(created) == 3
        assert len(deleted) == 1
        assert deleted[0] in created[:2]


@on_virtual_time
async def test_drifted_nodes_of_a_static_pool_are_replaced_one_for_one() -> None:
    async with staged(options=STATIC) as stage:
        ledger = Ledger(stage)
        stage.apply(KWOK_NODE_CLASS, node_class())
        stage.apply(
            NODE_POOL, pool("default", replicas=4, disruption={"budgets": [{"nodes": "2"}]})
        )
        await stage.until(lambda: len(stage.nodes) == 4)
        relabel(stage)
        await stage.until(lambda: teams(stage) == ["shop"] * 4)
        await asyncio.sleep(600)

        assert len(stage.nodes) == 4
        assert len(ledger.names("created")) == 8
        assert ledger.most_deleting <= 2
        assert stage.voice.counted("nodeclaims_disrupted_total", reason="drifted") == 4


@on_virtual_time
async def test_drifted_nodes_of_a_full_static_pool_are_held_by_its_limit() -> None:
    async with staged(options=STATIC) as stage:
        ledger = Ledger(stage)
        stage.apply(KWOK_NODE_CLASS, node_class())
        stage.apply(NODE_POOL, pool("default", replicas=2, limits={"nodes": "2"}))
        await stage.until(lambda: len(stage.nodes) == 2)
        relabel(stage)
        await asyncio.sleep(600)

        assert ledger.names("deleted") == []
        assert len(ledger.names("created")) == 2


@on_virtual_time
async def test_a_pod_that_must_not_be_disrupted_delays_drift_until_its_grace_period_ends() -> None:
    async with staged() as stage:
        ledger = Ledger(stage)
        await furnish(stage, 1, {"nodes": "100%"}, terminationGracePeriod="10m")
        pod = stage.pods("web")[0]["metadata"]["name"]
        note = {"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}}
        stage.change(POD, pod, note, "protect the pod")
        relabel(stage)
        await stage.until(lambda: bool(ledger.names("deleted")))
        deleted = ledger.second
        await stage.until(lambda: teams(stage) == ["shop"])
        await stage.until_running("web", 1)

        assert ledger.second - deleted >= 9 * 60
