"""A journal on disk holds every verdict in the life of a cluster, each to be decided on again."""

import asyncio
import json
from pathlib import Path
from typing import Final

import pytest

from karpy.adapters.clouds.kwok.repairs import UNHEALTHY
from karpy.adapters.journal import JournalFiles, journal_files, journal_lines
from karpy.cli.examples import CLUSTER, example_documents
from karpy.codec.fields import JsonObject
from karpy.model.kinds import CAPACITY_BUFFER, DEPLOYMENT, NODE_POOL, POD, POD_TEMPLATE, Kind
from karpy.model.settings import Gates, Options
from karpy.ports.objects import Patch, PatchType
from karpy.sim.kubelets.nodes import Health
from karpy.sim.world import World
from karpy.wiring.embedded import embedded_world
from karpy.wiring.resident import BRISK, apply_manifests, operating
from tests.cli.conftest import Karpy, Run
from tests.sim.stories import on_virtual_time
from tests.wiring.test_resident import Deaf

_SMOKE: Final = Health(UNHEALTHY, "True", "Smoke")
_GATES: Final = Gates(node_repair=True, static_capacity=True)
_ONE: Final = Patch(PatchType.MERGE, {"spec": {"replicas": 1}})
_TEMPLATE: Final[JsonObject] = {
    "metadata": {"name": "room", "namespace": "default"},
    "template": {"spec": {"containers": [{"name": "main", "image": "i"}]}},
}
_BUFFER: Final[JsonObject] = {
    "metadata": {"name": "room", "namespace": "default"},
    "spec": {"podTemplateRef": {"name": "room"}, "replicas": 1},
}


def fixed_pool(world: World) -> JsonObject:
    """Build a NodePool like the first one, with two nodes for ever."""
    spec = dict(world.store.get(NODE_POOL, "default")["spec"])
    del spec["disruption"]
    taints = [{"key": "fixed", "effect": "NoSchedule"}]
    inner = {**spec["template"]["spec"], "taints": taints}
    return {
        "metadata": {"name": "fixed"},
        "spec": {"replicas": 2, "template": {**spec["template"], "spec": inner}},
    }


def places(world: World, app: str) -> list[str]:
    """Name the nodes that the pods of a workload are on."""
    pods = [each for each in world.store.list(POD) if each["metadata"]["labels"].get("app") == app]
    return sorted({each["spec"]["nodeName"] for each in pods})


def stuck_pod(node: str) -> JsonObject:
    """Build a pod that has its place and would find no other one."""
    return {
        "metadata": {"name": "stuck", "namespace": "default"},
        "spec": {
            "containers": [{"name": "c", "image": "i"}],
            "nodeName": node,
            "nodeSelector": {"kubernetes.io/arch": "s390x"},
        },
    }


async def live(world: World) -> None:
    """Let pods and nodes come, break and go."""
    apply_manifests(world, example_documents(CLUSTER))
    await asyncio.sleep(60)
    world.store.create(NODE_POOL, fixed_pool(world))
    await asyncio.sleep(60)
    world.store.patch(NODE_POOL, "fixed", _ONE)
    node = places(world, "checkout")[0]
    world.store.create(POD, stuck_pod(node))
    world.kubelets.trouble(node, _SMOKE)
    await asyncio.sleep(120)
    delete_all(world, POD, "default")
    await asyncio.sleep(120)
    delete_all(world, DEPLOYMENT, "shop")
    await asyncio.sleep(300)


def delete_all(world: World, kind: Kind, namespace: str) -> None:
    for each in world.store.list(kind):
        if each["metadata"]["namespace"] == namespace:
            world.store.delete(kind, each["metadata"]["name"], namespace=namespace)


def kinds_of(folder: Path) -> list[str]:
    """Say of each decision what it is about."""
    lines = [json.loads(line) for path in journal_files(folder) for _, line in journal_lines(path)]
    return [_kind(each) for each in lines if each["karpy"] != "catalog/v1"]


def _kind(line: JsonObject) -> str:
    return str(line.get("question", {}).get("asks") or line["karpy"])


@pytest.mark.parametrize(
    ("is_legacy", "repairs"),
    [(False, set()), (True, {"legacy-repair"})],
    ids=["within budgets", "legacy"],
)
@on_virtual_time
async def test_all_that_is_decided_in_the_life_of_a_cluster_can_be_decided_again(
    tmp_path: Path, repairs: set[str], *, is_legacy: bool
) -> None:
    journal = JournalFiles(tmp_path, file_bytes=10**9, files=1)
    options = Options(gates=_GATES, has_legacy_repair=is_legacy)

    async with (
        embedded_world(BRISK) as world,
        operating(world, notices=Deaf(), voice=Deaf(), journal=journal, options=options),
    ):
        await live(world)
    journal.close()
    kinds = kinds_of(tmp_path)
    answer = Karpy()("replay", str(tmp_path))

    others = {"decision/v1", "disruption", "validation", "fill-up", "thin-out"}
    assert set(kinds) == others | repairs
    assert answer == Run(0, f"{len(kinds)} decisions replayed: {len(kinds)} the same.\n", "")


@on_virtual_time
async def test_a_repair_is_recorded_once_refused_and_once_begun(tmp_path: Path) -> None:
    """The whole cluster is not written every ten seconds for a node that cannot be repaired."""
    journal = JournalFiles(tmp_path, file_bytes=10**9, files=1)
    options = Options(gates=_GATES)

    async with (
        embedded_world(BRISK) as world,
        operating(world, notices=Deaf(), voice=Deaf(), journal=journal, options=options),
    ):
        await live(world)
    journal.close()

    lines = [json.loads(line) for _, line in journal_lines(tmp_path / "decisions-000001.jsonl")]
    verdicts = [each["verdict"] for each in lines if each["karpy"] == "disruption/v2"]
    repairs = [
        each.get("decision") or each["reason"]
        for verdict in verdicts
        for each in (*verdict["refusals"], *verdict["commands"])
        if each["method"] == "repair"
    ]
    assert list(dict.fromkeys(repairs)) == ["PODS_UNPLACED", "replace"]
    assert repairs.count("replace") == 1
    assert len(verdicts) < 30


@on_virtual_time
async def test_a_journal_explains_virtual_pods_and_the_nodes_that_keep_room_for_them(
    tmp_path: Path,
) -> None:
    journal = JournalFiles(tmp_path, file_bytes=10**9, files=1)
    options = Options(gates=Gates(capacity_buffer=True))

    async with (
        embedded_world(BRISK) as world,
        operating(world, notices=Deaf(), voice=Deaf(), journal=journal, options=options),
    ):
        apply_manifests(world, example_documents(CLUSTER))
        world.store.create(POD_TEMPLATE, _TEMPLATE)
        world.store.create(CAPACITY_BUFFER, _BUFFER)
        await asyncio.sleep(120)
        world.store.delete(DEPLOYMENT, "checkout", namespace="shop")
        await asyncio.sleep(300)
    journal.close()
    virtual = Karpy()(
        "explain", "default/capacity-buffer-room-1", str(tmp_path), "--output", "json"
    )
    node = json.loads(virtual.out)["node"]
    kept = Karpy()("explain", "node", node, str(tmp_path))

    assert json.loads(virtual.out)["buffer"] == "default/room"
    assert "it keeps room for a CapacityBuffer" in kept.out
