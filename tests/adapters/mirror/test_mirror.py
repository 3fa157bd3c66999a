import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from karpy.adapters.clock import WallClock
from karpy.adapters.mirror.mirror import Mirror
from karpy.codec.fields import JsonObject
from karpy.codec.manifests import read_manifests
from karpy.codec.schemas.definitions import CUSTOM_KINDS
from karpy.model.instances import Catalog
from karpy.model.kinds import (
    CUSTOM_RESOURCE,
    DAEMON_SET,
    LIMIT_RANGE,
    NAMESPACE,
    NODE,
    NODE_CLAIM,
    NODE_POOL,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    RUNTIME_CLASS,
    STORAGE_CLASS,
)
from karpy.model.settings import Settings
from karpy.ports.objects import Patch, PatchType
from karpy.sim.clock import LoopClock
from karpy.sim.objects import EmbeddedObjects
from karpy.sim.store.store import Store
from tests.builders.nodes import node_claim
from tests.scenarios.manifests import daemon_set
from tests.sim.stories import on_virtual_time

SOON = 5.0
OPEN: list[JsonObject] = [{"name": "c", "image": "i"}]


def a_pod(name: str, node: str = "") -> JsonObject:
    spec: JsonObject = {
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]
    }
    return {
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "web"}},
        "spec": {**spec, "nodeName": node} if node else spec,
    }


def a_node(name: str) -> JsonObject:
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {"providerID": f"kwok://{name}"},
        "status": {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "4"}},
    }


def a_claim(name: str) -> JsonObject:
    return {
        "metadata": {"name": name, "labels": {"karpenter.sh/nodepool": "default"}},
        "spec": {
            "nodeClassRef": {
                "group": "karpenter.kwok.sh",
                "kind": "KWOKNodeClass",
                "name": "default",
            },
            "requirements": [],
        },
    }


@pytest.fixture
def store() -> Store:
    return with_our_kinds(Store(WallClock()))


def with_our_kinds(store: Store) -> Store:
    for kind in CUSTOM_KINDS:
        store.create(CUSTOM_RESOURCE, kind.to_json())
    return store


@asynccontextmanager
async def running(store: Store) -> AsyncIterator[Mirror]:
    mirror = Mirror(EmbeddedObjects(store), WallClock(), Catalog, Settings())
    task = asyncio.create_task(mirror.run())
    try:
        async with asyncio.timeout(SOON):
            await mirror.wait_until_listed()
        yield mirror
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(SOON):
        while True:
            if holds():
                return
            await asyncio.sleep(0.001)


async def test_what_is_there_is_in_the_first_snapshot(store: Store) -> None:
    store.create(NODE, a_node("n1"))
    store.create(POD, a_pod("web-1", "n1"))
    store.create(POD, a_pod("web-2"))

    async with running(store) as mirror:
        snapshot = mirror.snapshot()

    assert [pod.name for pod in snapshot.pods] == ["web-1", "web-2"]
    assert [node.name for node in snapshot.nodes] == ["n1"]
    assert snapshot.namespaces["default"] == {"kubernetes.io/metadata.name": "default"}
    assert [pod.name for pod in mirror.pods.by_index("n1")] == ["web-1"]


async def test_a_snapshot_does_not_change_and_the_next_one_has_the_news(store: Store) -> None:
    async with running(store) as mirror:
        before = mirror.snapshot()
        store.create(POD, a_pod("web-1"))
        await until(lambda: "default/web-1" in mirror.pods.values)
        after = mirror.snapshot()

    assert before.pods == ()
    assert [pod.name for pod in after.pods] == ["web-1"]


async def test_a_mirror_and_a_dump_of_the_cluster_show_the_same(store: Store) -> None:
    """`karpy solve` on a recording must decide what the operator would."""
    store.create(NODE, a_node("n1"))
    store.create(POD, a_pod("web-1", "n1"))
    kinds = (NAMESPACE, NODE, POD, NODE_POOL, DAEMON_SET, STORAGE_CLASS, PERSISTENT_VOLUME_CLAIM)
    items = [each for kind in kinds for each in store.list(kind)]
    dump = [("dump", as_json({"kind": "List", "apiVersion": "v1", "items": items}))]

    async with running(store) as mirror:
        seen = mirror.snapshot()

    read = read_manifests(dump, Catalog(), Settings(), seen.now).snapshot
    assert (seen.pods, seen.nodes, seen.namespaces) == (read.pods, read.nodes, read.namespaces)


async def test_daemons_of_a_mirror_and_of_a_dump_take_the_same(store: Store) -> None:
    usual = {"type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}}
    meta = {"name": "usual", "namespace": "default"}
    store.create(LIMIT_RANGE, {"metadata": meta, "spec": {"limits": [usual]}})
    sandbox = {"handler": "runsc", "overhead": {"podFixed": {"cpu": "250m"}}}
    store.create(RUNTIME_CLASS, {"metadata": {"name": "sandboxed"}, **sandbox})
    store.create(DAEMON_SET, daemon_set("open", {"containers": OPEN}))
    pod = {"containers": OPEN, "runtimeClassName": "sandboxed"}
    store.create(DAEMON_SET, daemon_set("sandboxed", pod))
    made = store.create(DAEMON_SET, daemon_set("seen", {"containers": OPEN}))
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "seen", "controller": True}
    there = a_pod("seen-x", "n1")
    there["metadata"]["ownerReferences"] = [{**owner, "uid": made["metadata"]["uid"]}]
    there["spec"]["containers"][0]["resources"]["limits"] = {"memory": "1Gi"}
    store.create(POD, there)
    kinds = (LIMIT_RANGE, RUNTIME_CLASS, DAEMON_SET, POD)
    items = [each for kind in kinds for each in store.list(kind)]
    dump = [("dump", as_json({"kind": "List", "apiVersion": "v1", "items": items}))]

    async with running(store) as mirror:
        seen = mirror.snapshot()

    assert {each.name: each.pod.requests for each in seen.daemons} == {
        "open": {"cpu": 1000, "pods": 1},
        "sandboxed": {"cpu": 1250, "pods": 1},
        "seen": {"cpu": 1000, "memory": 2**30, "pods": 1},
    }
    assert seen.daemons == read_manifests(dump, Catalog(), Settings(), seen.now).snapshot.daemons


def as_json(obj: JsonObject) -> str:
    return msgspec.json.encode(obj).decode()


async def test_a_claim_without_a_machine_makes_the_mirror_unsynced(store: Store) -> None:
    """Until the launch of its machine, a decision could launch a second node for its pods."""
    async with running(store) as mirror:
        store.create(NODE_CLAIM, a_claim("default-a"))
        await until(lambda: not mirror.is_synced)
        patch = Patch(PatchType.MERGE, {"status": {"providerID": "kwok://n1"}})
        store.patch(NODE_CLAIM, "default-a", patch, subresource="status")
        await until(lambda: mirror.is_synced)


@on_virtual_time
async def test_decisions_go_on_once_they_waited_long_enough_for_a_machine() -> None:
    clock = LoopClock(datetime(2026, 1, 5, tzinfo=UTC))
    store = with_our_kinds(Store(clock))
    mirror = Mirror(EmbeddedObjects(store), clock, Catalog, Settings())
    task = asyncio.create_task(mirror.run())
    await mirror.wait_until_listed()
    store.create(NODE_CLAIM, a_claim("default-a"))
    await until(lambda: not mirror.is_synced)
    await asyncio.sleep(60)
    # An operator that has ended may have launched the machine already.
    was_synced = mirror.is_synced
    refused = {"type": "Launched", "status": "Unknown", "reason": "LaunchFailed"}
    patch = Patch(PatchType.MERGE, {"status": {"conditions": [refused]}})
    store.patch(NODE_CLAIM, "default-a", patch, subresource="status")
    async with asyncio.timeout(5):
        await mirror.wait_until_synced()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert not was_synced


async def test_a_claim_counts_from_the_moment_it_is_noted(store: Store) -> None:
    async with running(store) as mirror:
        mirror.note_claim(node_claim("default-a"))

        assert not mirror.is_synced
        assert [node.claim for node in mirror.snapshot().nodes] == ["default-a"]


async def test_a_noted_claim_that_never_came_can_be_forgotten(store: Store) -> None:
    async with running(store) as mirror:
        mirror.note_claim(node_claim("default-a"))
        later = datetime.now(UTC) + timedelta(seconds=15)

        untold = mirror.undelivered_claims(later)
        mirror.forget_claim("default-a")

        assert untold == ["default-a"]
        assert mirror.is_synced


async def test_a_delivered_claim_is_not_dropped(store: Store) -> None:
    async with running(store) as mirror:
        mirror.note_claim(node_claim("default-a"))
        store.create(NODE_CLAIM, a_claim("default-a"))
        await until(lambda: not mirror.undelivered_claims(datetime.now(UTC)))

        mirror.forget_claim("default-a")

        assert "default-a" in mirror.node_book.claims.values


async def test_a_mirror_says_what_it_waits_for(store: Store) -> None:
    mirror = Mirror(EmbeddedObjects(store), WallClock(), Catalog, Settings())

    assert POD in mirror.waiting_for()
    assert not mirror.is_synced


async def test_what_we_write_is_known_before_the_watch_tells(store: Store) -> None:
    async with running(store) as mirror:
        store.create(NODE_CLAIM, a_claim("default-a"))
        await until(lambda: mirror.records.claims.get("default-a") is not None)
        seen = mirror.records.claims.values["default-a"].record
        patch = Patch(PatchType.MERGE, {"status": {"providerID": "kwok://n1"}})

        mirror.note_written(
            NODE_CLAIM, store.patch(NODE_CLAIM, "default-a", patch, subresource="status")
        )

        assert mirror.records.claims.values["default-a"].record.provider_id == "kwok://n1"
        assert mirror.is_synced
        assert not mirror.is_current(NODE_CLAIM, seen.meta)


async def test_what_is_gone_does_not_come_back_by_a_late_answer(store: Store) -> None:
    async with running(store) as mirror:
        made = store.create(NODE_CLAIM, a_claim("default-a"))
        await until(lambda: mirror.records.claims.get("default-a") is not None)
        store.delete(NODE_CLAIM, "default-a")
        await until(lambda: mirror.records.claims.get("default-a") is None)

        mirror.note_written(NODE_CLAIM, made)

        assert mirror.records.claims.get("default-a") is None


async def test_old_news_change_nothing(store: Store) -> None:
    async with running(store) as mirror:
        made = store.create(NODE_CLAIM, a_claim("default-a"))
        patch = Patch(PatchType.MERGE, {"status": {"providerID": "kwok://n1"}})
        store.patch(NODE_CLAIM, "default-a", patch, subresource="status")
        await until(lambda: mirror.is_synced and bool(mirror.records.claims.values))

        mirror.note_written(NODE_CLAIM, made)

        assert mirror.records.claims.values["default-a"].record.provider_id == "kwok://n1"


@pytest.mark.parametrize(
    ("version", "provider_id"),
    [("9" * 5000, "kwok://late"), ("1", "kwok://n1"), ("no number", "kwok://n1")],
)
async def test_versions_compare_by_their_number_however_long(
    store: Store, version: str, provider_id: str
) -> None:
    async with running(store) as mirror:
        made = store.create(NODE_CLAIM, a_claim("default-a"))
        patch = Patch(PatchType.MERGE, {"status": {"providerID": "kwok://n1"}})
        store.patch(NODE_CLAIM, "default-a", patch, subresource="status")
        await until(lambda: mirror.is_synced and bool(mirror.records.claims.values))
        meta = {**made["metadata"], "resourceVersion": version}

        mirror.note_written(
            NODE_CLAIM, {**made, "metadata": meta, "status": {"providerID": "kwok://late"}}
        )

        assert mirror.records.claims.values["default-a"].record.provider_id == provider_id
