"""The HTTP adapter against a real API server."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Final, TypeVar
from uuid import uuid4

import msgspec
import pytest
from msgspec import structs

from karpy.adapters.clock import WallClock
from karpy.adapters.controlplane.plane import ControlPlane
from karpy.adapters.kube.access import EXEC_V1, ExecPlugin, User
from karpy.adapters.kube.connection import Connection, connect, find_access
from karpy.adapters.kube.events import EventRecorder
from karpy.adapters.kube.leases import Candidacy, Election
from karpy.codec.fields import JsonObject
from karpy.errors import (
    AlreadyExists,
    Conflict,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
    Throttled,
    TlsRefused,
    Unauthorized,
)
from karpy.model.kinds import (
    CONFIG_MAP,
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    EVENTS_EVENT,
    LEASE,
    NAMESPACE,
    NODE,
    POD,
    SECRET,
    SERVICE_ACCOUNT,
)
from karpy.model.notices import Notice, Subject
from karpy.ports.objects import Change, EventType, Patch, PatchType, Query, Removal, Synced
from tests.adapters.kube.certificates import Authority
from tests.e2e.planes import STRANGER

T = TypeVar("T")

SPEC: Final[JsonObject] = {"containers": [{"name": "main", "image": "example.com/none"}]}


class Names:
    """Reads the data of a ConfigMap."""

    def from_object(self, obj: JsonObject) -> str:
        return str((obj.get("data") or {}).get("word", ""))

    def from_bytes(self, data: bytes) -> str:
        return self.from_object(msgspec.json.decode(data))


@pytest.fixture
async def cluster(control_plane: ControlPlane) -> AsyncIterator[Connection]:
    await asyncio.to_thread(control_plane.restart_ended)
    async with connect(kubeconfig=str(control_plane.kubeconfig)) as connection:
        yield connection


@pytest.fixture
async def namespace(cluster: Connection) -> str:
    made = await cluster.objects.create(NAMESPACE, {"metadata": {"generateName": "client-"}})
    return str(made["metadata"]["name"])


async def eventually(ask: Callable[[], Awaitable[T]], *passing: type[Exception]) -> T:
    """Ask until the answer is neither empty nor an error that passes."""
    async with asyncio.timeout(30):
        while True:
            try:
                if answer := await ask():
                    return answer
            except passing:
                pass
            await asyncio.sleep(0.1)


def config(namespace: str, name: str, word: str = "") -> JsonObject:
    return {"metadata": {"name": name, "namespace": namespace}, "data": {"word": word}}


async def test_a_stale_write_is_a_conflict(cluster: Connection, namespace: str) -> None:
    first = await cluster.objects.create(CONFIG_MAP, config(namespace, "a", "one"))
    second = await cluster.objects.replace(CONFIG_MAP, {**first, "data": {"word": "two"}})

    with pytest.raises(Conflict):
        await cluster.objects.replace(CONFIG_MAP, {**first, "data": {"word": "three"}})

    assert await cluster.objects.get(CONFIG_MAP, "a", namespace) == second


async def test_errors_are_distinguished(cluster: Connection, namespace: str) -> None:
    objects = cluster.objects
    made = await objects.create(CONFIG_MAP, config(namespace, "a"))

    with pytest.raises(AlreadyExists):
        await objects.create(CONFIG_MAP, config(namespace, "a"))
    with pytest.raises(NotFound):
        await objects.get(CONFIG_MAP, "b", namespace)
    with pytest.raises(Invalid, match=r"metadata\.name"):
        await objects.create(CONFIG_MAP, config(namespace, "No Name"))
    with pytest.raises(Conflict):
        await objects.delete(CONFIG_MAP, "a", namespace=namespace, removal=Removal(uid="other"))
    await objects.delete(
        CONFIG_MAP, "a", namespace=namespace, removal=Removal(uid=made["metadata"]["uid"])
    )
    with pytest.raises(NotFound):
        await objects.get(CONFIG_MAP, "a", namespace)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (PatchType.JSON, [{"op": "add", "path": "/data/word", "value": "new"}]),
        (PatchType.MERGE, {"data": {"word": "new"}}),
        (PatchType.STRATEGIC, {"data": {"word": "new"}}),
        (PatchType.APPLY, {"data": {"word": "new"}}),
    ],
)
async def test_every_kind_of_patch_is_taken(
    cluster: Connection, namespace: str, kind: PatchType, body: JsonObject
) -> None:
    await cluster.objects.create(CONFIG_MAP, config(namespace, "a", "old"))

    patch = Patch(kind, body, is_forced=True)
    changed = await cluster.objects.patch(CONFIG_MAP, "a", patch, namespace=namespace)

    assert changed["data"] == {"word": "new"}
    assert "karpy" in {each["manager"] for each in changed["metadata"]["managedFields"]}


async def test_a_patch_with_a_stale_version_is_a_conflict(
    cluster: Connection, namespace: str
) -> None:
    await cluster.objects.create(CONFIG_MAP, config(namespace, "a"))
    patch = Patch(PatchType.MERGE, {"metadata": {"resourceVersion": "1"}, "data": {"word": "x"}})

    with pytest.raises(Conflict):
        await cluster.objects.patch(CONFIG_MAP, "a", patch, namespace=namespace)


async def test_fields_of_another_owner_are_taken_only_by_force(
    cluster: Connection, namespace: str
) -> None:
    await cluster.objects.create(CONFIG_MAP, config(namespace, "a", "old"))
    patch = Patch(PatchType.APPLY, {"data": {"word": "new"}}, manager="somebody")

    with pytest.raises(Conflict, match="conflict with"):
        await cluster.objects.patch(CONFIG_MAP, "a", patch, namespace=namespace)


async def test_a_dry_run_changes_nothing(cluster: Connection, namespace: str) -> None:
    await cluster.objects.create(CONFIG_MAP, config(namespace, "a"), dry_run=True)

    with pytest.raises(NotFound):
        await cluster.objects.get(CONFIG_MAP, "a", namespace)


async def test_pages_make_up_the_list(cluster: Connection, namespace: str) -> None:
    names = ["a", "b", "c", "d", "e"]
    metas = [{"name": name, "namespace": namespace} for name in names]
    await asyncio.gather(*(cluster.objects.create(SECRET, {"metadata": meta}) for meta in metas))
    query = Query(namespace)

    first = await cluster.objects.list(SECRET, query, limit=2)
    second = await cluster.objects.list(SECRET, query, limit=2, token=first.token)
    third = await cluster.objects.list(SECRET, query, limit=2, token=second.token)

    found = [each["metadata"]["name"] for page in (first, second, third) for each in page.items]
    assert found == names
    assert (first.remaining, second.remaining, third.token) == (3, 1, "")
    assert first.items[0]["kind"] == "Secret"


async def test_a_watch_delivers_the_events_after_a_version(
    cluster: Connection, namespace: str
) -> None:
    since = (await cluster.objects.list(CONFIG_MAP, Query(namespace))).version
    query = Query(namespace, fields="metadata.name=a")
    await cluster.objects.create(CONFIG_MAP, config(namespace, "a", "one"))
    await cluster.objects.create(CONFIG_MAP, config(namespace, "b", "two"))
    await cluster.objects.delete(CONFIG_MAP, "a", namespace=namespace)

    watch = cluster.objects.watch(CONFIG_MAP, query, since=since, seconds=1)
    seen = [each.type async for each in watch if each.type is not EventType.BOOKMARK]

    assert seen == [EventType.ADDED, EventType.DELETED]


async def test_a_deployment_is_scaled_by_its_subresource(
    cluster: Connection, namespace: str
) -> None:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": SPEC}
    meta = {"name": "web", "namespace": namespace}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    await cluster.objects.create(DEPLOYMENT, {"metadata": meta, "spec": spec})

    scaled = await cluster.objects.replace(
        DEPLOYMENT, {"metadata": meta, "spec": {"replicas": 3}}, subresource="scale"
    )

    assert (scaled["kind"], scaled["spec"]) == ("Scale", {"replicas": 3})


async def test_an_eviction_against_a_budget_is_throttled_and_says_by_which(
    cluster: Connection, namespace: str
) -> None:
    objects, node = cluster.objects, f"node-{uuid4().hex[:8]}"
    meta = {"name": "web-1", "namespace": namespace, "labels": {"app": "web"}}
    selector = {"matchLabels": {"app": "web"}}
    kept = {"name": node, "annotations": {"kwok.x-k8s.io/node": "fake"}}
    await objects.create(NODE, {"metadata": kept, "spec": {"unschedulable": True}})
    # The service account that every pod has appears a moment after its namespace.
    pod = {"metadata": meta, "spec": {**SPEC, "schedulerName": "nobody"}}
    await eventually(lambda: objects.create(POD, pod), Forbidden)
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    await objects.create(POD, {"metadata": meta, "target": target}, subresource="binding")
    budget = {"name": "keep-web", "namespace": namespace}
    await objects.create(
        DISRUPTION_BUDGET, {"metadata": budget, "spec": {"minAvailable": 1, "selector": selector}}
    )

    async def is_counted() -> bool:
        found = await objects.get(DISRUPTION_BUDGET, "keep-web", namespace)
        return bool(found.get("status", {}).get("currentHealthy"))

    await eventually(is_counted)

    with pytest.raises(Throttled, match=r"DisruptionBudget: .*keep-web"):
        await objects.create(POD, {"metadata": meta}, subresource="eviction")

    await objects.delete(POD, "web-1", namespace=namespace, removal=Removal(grace_seconds=0))
    await objects.delete(NODE, node)


async def test_a_status_is_written_apart_from_the_rest(cluster: Connection) -> None:
    objects, name = cluster.objects, f"node-{uuid4().hex[:8]}"
    await objects.create(NODE, {"metadata": {"name": name}})
    body = {"metadata": {"labels": {"a": "b"}}, "status": {"capacity": {"cpu": "4"}}}

    patch = Patch(PatchType.MERGE, body)
    changed = await objects.patch(NODE, name, patch, subresource="status")
    await objects.delete(NODE, name)

    assert changed["status"]["capacity"] == {"cpu": "4"}
    assert "cpu" not in (changed["metadata"].get("labels") or {})


async def test_a_user_without_rights_is_forbidden(control_plane: ControlPlane) -> None:
    access = find_access(kubeconfig=str(control_plane.kubeconfig))
    user = User(token=control_plane.token_of(STRANGER))

    async with Connection(structs.replace(access, user=user)) as stranger:
        with pytest.raises(Forbidden, match=STRANGER):
            await stranger.objects.list(SECRET)


async def test_a_wrong_token_is_unauthorized(control_plane: ControlPlane) -> None:
    access = find_access(kubeconfig=str(control_plane.kubeconfig))

    async with Connection(structs.replace(access, user=User("wrong"))) as stranger:
        with pytest.raises(Unauthorized):
            await stranger.objects.list(SECRET)


async def test_a_server_of_another_authority_is_refused(control_plane: ControlPlane) -> None:
    access = find_access(kubeconfig=str(control_plane.kubeconfig))
    endpoint = structs.replace(access.endpoint, ca_pem=Authority().pem)

    async with Connection(structs.replace(access, endpoint=endpoint)) as connection:
        with pytest.raises(TlsRefused):
            await connection.objects.list(NODE)


async def test_a_plugin_gives_the_token(control_plane: ControlPlane, tmp_path: Path) -> None:
    program = tmp_path / "plugin.py"
    program.write_text(
        "import json, os\n"
        f"print(json.dumps({{'apiVersion': '{EXEC_V1}', 'kind': 'ExecCredential',"
        " 'status': {'token': os.environ['MINE']}}))"
    )
    plugin = ExecPlugin(
        sys.executable, (str(program),), (("MINE", control_plane.token_of()),), EXEC_V1
    )
    access = find_access(kubeconfig=str(control_plane.kubeconfig))

    async with Connection(structs.replace(access, user=User(plugin=plugin))) as connection:
        page = await connection.objects.list(NAMESPACE)

    assert page.items


async def test_a_feed_loses_nothing_over_a_restart_and_a_compaction(
    control_plane: ControlPlane, cluster: Connection, namespace: str
) -> None:
    objects, query = cluster.objects, Query(namespace, fields="metadata.name!=kube-root-ca.crt")
    await objects.create(CONFIG_MAP, config(namespace, "a", "one"))
    seen: list[str | None] = []
    versions: list[str] = []

    async def follow() -> None:
        async with aclosing(cluster.feed.follow(CONFIG_MAP, Names(), query)) as feed:
            async for each in feed:
                versions.extend([each.version] if isinstance(each, Change) else [])
                seen.append("synced" if isinstance(each, Synced) else each.value)

    following = asyncio.create_task(follow())

    async def has_told(count: int) -> bool:
        return len(seen) >= count

    await eventually(lambda: has_told(2))
    # The controllers have started; they would not survive a restart before that.
    await eventually(lambda: objects.get(SERVICE_ACCOUNT, "default", namespace), NotFound)
    await asyncio.to_thread(control_plane.restart)
    await objects.create(CONFIG_MAP, config(namespace, "b", "two"))
    await eventually(lambda: has_told(3))
    await objects.create(SECRET, {"metadata": {"name": "later", "namespace": namespace}})
    await asyncio.to_thread(control_plane.halt)
    await asyncio.to_thread(control_plane.compact)
    await asyncio.to_thread(control_plane.resume)
    with pytest.raises(Expired):
        await anext(objects.watch(CONFIG_MAP, query, since=versions[0], seconds=5))
    await objects.delete(CONFIG_MAP, "a", namespace=namespace)
    await eventually(lambda: has_told(4))
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)

    assert seen == ["one", "synced", "two", None]


async def test_a_released_lease_is_taken_at_once(cluster: Connection, namespace: str) -> None:
    first = Election(cluster.objects, WallClock(), Candidacy(namespace, identity="first"))
    second = Election(cluster.objects, WallClock(), Candidacy(namespace, identity="second"))
    await first.acquire()
    waiting = asyncio.create_task(second.acquire())
    await asyncio.sleep(0.5)

    await first.release()
    async with asyncio.timeout(5):
        await waiting

    lease = await cluster.objects.get(LEASE, "karpenter-leader-election", namespace)
    assert lease["spec"]["holderIdentity"] == "second"
    assert not first.is_leader


async def test_events_are_taken_about_pods_and_nodes(cluster: Connection, namespace: str) -> None:
    troubles: list[str] = []
    recorder = EventRecorder(
        cluster.objects,
        WallClock(),
        instance="karpy-0",
        on_trouble=lambda _, error: troubles.append(error.message),
    )
    node = f"node-{uuid4().hex[:8]}"
    recorder.emit(Notice(Subject(POD, "web-1", namespace, "u1"), "Nominated", "x" * 2000))
    recorder.emit(Notice(Subject(NODE, node), "FailedDraining", "no", is_warning=True))
    recorder.close()
    await recorder.run()

    about_pods = await cluster.objects.list(EVENTS_EVENT, Query(namespace))
    about_nodes = await cluster.objects.list(EVENTS_EVENT, Query("default"))

    assert troubles == []
    assert [each["reason"] for each in about_pods.items] == ["Nominated"]
    assert node in {each["regarding"]["name"] for each in about_nodes.items}
