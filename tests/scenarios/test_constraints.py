"""What pods and pools ask for, and what comes of it."""

import asyncio

from syrupy.assertion import SnapshotAssertion

from karpy.model.kinds import (
    DAEMON_SET,
    DEPLOYMENT,
    KWOK_NODE_CLASS,
    NODE_POOL,
    STATEFUL_SET,
    STORAGE_CLASS,
)
from karpy.model.labels import HOSTNAME, ZONE
from tests.scenarios.manifests import (
    daemon_set,
    deployment,
    node_class,
    one_of,
    pod_spec,
    pool,
    stateful_set,
    storage_class,
)
from tests.scenarios.stage import staged
from tests.sim.stories import on_virtual_time

ZONES = ("test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d")
GPU_TAINT = {"key": "example.com/gpu", "effect": "NoSchedule"}
BOOTING = {"key": "example.com/booting", "effect": "NoSchedule"}


@on_virtual_time
async def test_a_pool_does_not_grow_beyond_its_limits(snapshot: SnapshotAssertion) -> None:
    async with staged() as stage:
        stage.apply(KWOK_NODE_CLASS, node_class())
        stage.apply(NODE_POOL, pool(limits={"cpu": "8"}))
        stage.apply(DEPLOYMENT, deployment(replicas=10))
        await asyncio.sleep(90)
        running = sum(each["status"]["phase"] == "Running" for each in stage.pods("inflate"))
        stage.change(NODE_POOL, "default", {"spec": {"limits": {"cpu": "16"}}}, "limit 16 CPUs")
        await stage.until_running("inflate", 10)

    assert running == 7
    assert stage.timeline.text() == snapshot


@on_virtual_time
async def test_only_pods_that_tolerate_a_taint_get_its_nodes(snapshot: SnapshotAssertion) -> None:
    tolerant = pod_spec(tolerations=[{"key": GPU_TAINT["key"], "operator": "Exists"}])
    async with staged() as stage:
        stage.apply(KWOK_NODE_CLASS, node_class())
        stage.apply(NODE_POOL, pool("gpu", template={"taints": [GPU_TAINT]}))
        stage.apply(DEPLOYMENT, deployment("train", 2, pod=tolerant))
        stage.apply(DEPLOYMENT, deployment("web", 1))
        await stage.until_running("train", 2)
        await asyncio.sleep(20)
        waiting = [each["status"]["phase"] for each in stage.pods("web")]

    assert waiting == ["Pending"]
    assert stage.timeline.text() == snapshot


@on_virtual_time
async def test_pods_are_spread_over_zones(snapshot: SnapshotAssertion) -> None:
    spread = {
        "topologyKey": ZONE,
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    async with staged(has_zones=True) as stage:
        stage.apply(KWOK_NODE_CLASS, node_class())
        stage.apply(NODE_POOL, pool(requirements=[one_of(ZONE, *ZONES[:3])]))
        web = pod_spec(topologySpreadConstraints=[spread])
        stage.apply(DEPLOYMENT, deployment("web", 6, pod=web))
        await stage.until_running("web", 6)
        counts = stage.pods_by_label("web", ZONE)

    assert counts == {"test-zone-a": 2, "test-zone-b": 2, "test-zone-c": 2}
    assert stage.timeline.text() == snapshot


@on_virtual_time
async def test_pods_come_near_to_some_and_stay_away_from_others(
    snapshot: SnapshotAssertion,
) -> None:
    near = _term("cache", ZONE)
    apart = _term("web", HOSTNAME)
    async with staged(has_zones=True) as stage:
        stage.apply(KWOK_NODE_CLASS, node_class())
        stage.apply(NODE_POOL, pool())
        cache = pod_spec(nodeSelector={ZONE: "test-zone-b"})
        stage.apply(DEPLOYMENT, deployment("cache", 1, pod=cache))
        web = pod_spec(affinity={"podAffinity": near, "podAntiAffinity": apart})
        stage.apply(DEPLOYMENT, deployment("web", 3, pod=web))
        await stage.until_running("cache", 1)
        await stage.until_running("web", 3)
        zones, hosts = stage.pods_by_label("web", ZONE), stage.pods_by_label("web", HOSTNAME)

    assert zones == {"test-zone-b": 3}
    assert sorted(hosts.values()) == [1, 1, 1]
    assert stage.timeline.text() == snapshot


@on_virtual_time
async def test_a_volume_keeps_its_pod_in_its_zone(snapshot: SnapshotAssertion) -> None:
    async with staged(has_zones=True) as stage:
        stage.apply(KWOK_NODE_CLASS, node_class())
        stage.apply(NODE_POOL, pool())
        stage.apply(STORAGE_CLASS, storage_class("zonal", zones=["test-zone-d"]))
        stage.apply(STATEFUL_SET, stateful_set("db", 1, storage_class="zonal"))
        await stage.until_running("db", 1)
        first = stage.pods_by_label("db", ZONE)
        stage.delete_node_of("db")
        await asyncio.sleep(60)
        await stage.until_running("db", 1)
        second = stage.pods_by_label("db", ZONE)

    assert first == second == {"test-zone-d": 1}
    assert stage.timeline.text() == snapshot


@on_virtual_time
async def test_a_new_node_has_room_for_daemons(snapshot: SnapshotAssertion) -> None:
    async with staged() as stage:
        stage.apply(KWOK_NODE_CLASS, node_class())
        stage.apply(NODE_POOL, pool())
        stage.apply(DAEMON_SET, daemon_set("agent", pod_spec(cpu="1500m")))
        stage.apply(DEPLOYMENT, deployment("web", 1, pod=pod_spec(cpu="2")))
        await stage.until_running("web", 1)
        await stage.until_running("agent", 1)
        sizes = [each["status"]["capacity"]["cpu"] for each in stage.nodes]

    assert sizes == ["4"]
    assert stage.timeline.text() == snapshot


@on_virtual_time
async def test_a_startup_taint_is_waited_for(snapshot: SnapshotAssertion) -> None:
    async with staged() as stage:
        stage.apply(KWOK_NODE_CLASS, node_class())
        stage.apply(NODE_POOL, pool(template={"startupTaints": [BOOTING]}))
        stage.apply(DEPLOYMENT, deployment("web", 2))
        await asyncio.sleep(60)
        nodes, phases = len(stage.nodes), {each["status"]["phase"] for each in stage.pods("web")}
        stage.untaint("the agent has booted", BOOTING["key"])
        await stage.until_running("web", 2)

    assert (nodes, phases) == (1, {"Pending"})
    assert stage.timeline.text() == snapshot


def _term(app: str, key: str) -> dict[str, object]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
