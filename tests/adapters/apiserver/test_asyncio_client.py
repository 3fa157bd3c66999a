"""kubernetes_asyncio, in the event loop of the server."""

import asyncio
from collections.abc import AsyncIterator
from importlib import import_module
from typing import Any

import pytest

from karpy.wiring.embedded import ServedCluster
from tests.adapters.apiserver.stranger import config_map, node_pool

# The annotations of the client are incomplete and partly wrong.
kubernetes: Any = import_module("kubernetes_asyncio.client")
config: Any = import_module("kubernetes_asyncio.config")
dynamic: Any = import_module("kubernetes_asyncio.dynamic")
elections: Any = import_module("kubernetes_asyncio.leaderelection.leaderelection")
election_config: Any = import_module("kubernetes_asyncio.leaderelection.electionconfig")
locks: Any = import_module("kubernetes_asyncio.leaderelection.resourcelock.leaselock")
watch: Any = import_module("kubernetes_asyncio.watch")

SOON = 10


@pytest.fixture
async def api(served: ServedCluster) -> AsyncIterator[object]:
    api = await config.new_client_from_config(str(served.kubeconfig))
    yield api
    await api.close()


async def test_objects_are_made_read_changed_and_deleted(api: object) -> None:
    core = kubernetes.CoreV1Api(api)

    await core.create_namespaced_config_map("default", config_map("a", x="1"))
    await core.patch_namespaced_config_map("a", "default", {"data": {"y": "2"}})
    read = await core.read_namespaced_config_map("a", "default")
    await core.delete_namespaced_config_map("a", "default")
    left = await core.list_config_map_for_all_namespaces()

    assert (read.data, left.items) == ({"x": "1", "y": "2"}, [])


async def test_a_refusal_is_an_exception_with_its_status(api: object) -> None:
    core = kubernetes.CoreV1Api(api)
    await core.create_namespaced_config_map("default", config_map("a"))

    with pytest.raises(kubernetes.ApiException) as raised:
        await core.create_namespaced_config_map("default", config_map("a"))

    assert (raised.value.status, "AlreadyExists" in raised.value.body) == (409, True)


async def test_a_watch_goes_on_where_a_list_ended(api: object) -> None:
    core = kubernetes.CoreV1Api(api)
    await core.create_namespaced_config_map("default", config_map("a"))
    version = (await core.list_namespaced_config_map("default")).metadata.resource_version
    await core.create_namespaced_config_map("default", config_map("b"))

    async with (
        asyncio.timeout(SOON),
        watch.Watch().stream(
            core.list_namespaced_config_map, "default", resource_version=version
        ) as stream,
    ):
        event = await anext(stream)

    assert (event["type"], event["object"].metadata.name) == ("ADDED", "b")


async def test_custom_objects_need_no_model(api: object) -> None:
    customs = kubernetes.CustomObjectsApi(api)
    where = ("karpenter.sh", "v1", "nodepools")

    await customs.create_cluster_custom_object(*where, node_pool("a"))
    await customs.patch_cluster_custom_object(
        *where, "a", {"spec": {"weight": 7}}, _content_type="application/merge-patch+json"
    )
    found = await customs.list_cluster_custom_object(*where)

    assert [each["spec"]["weight"] for each in found["items"]] == [7]


async def test_the_dynamic_client_finds_its_way(api: object) -> None:
    client = await dynamic.DynamicClient(api)
    pods = await client.resources.get(api_version="v1", kind="Pod")

    found = await pods.get(namespace="default")

    assert (found.kind, len(found.items)) == ("PodList", 0)


async def test_a_leader_is_elected_by_lease(api: object) -> None:
    leads = asyncio.Event()

    async def lead() -> None:
        leads.set()

    async def rest() -> None:
        return

    settings = election_config.Config(
        locks.LeaseLock("leader", "default", "me", api),
        lease_duration=17,
        renew_deadline=15,
        retry_period=5,
        onstarted_leading=lead,
        onstopped_leading=rest,
    )
    running = asyncio.create_task(elections.LeaderElection(settings).run())
    async with asyncio.timeout(SOON):
        await leads.wait()
    running.cancel()
    await asyncio.wait([running])

    lease = await kubernetes.CoordinationV1Api(api).read_namespaced_lease("leader", "default")
    assert lease.spec.holder_identity == "me"
