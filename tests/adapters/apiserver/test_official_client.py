"""The official Python client, which blocks and thus runs in a thread."""

import asyncio
import threading
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from karpy.codec.fields import JsonObject
from karpy.wiring.embedded import ServedCluster
from tests.adapters.apiserver.stranger import config_map, node_pool

# The annotations of the client are incomplete and partly wrong.
kubernetes: Any = import_module("kubernetes.client")
config: Any = import_module("kubernetes.config")
dynamic: Any = import_module("kubernetes.dynamic")
informers: Any = import_module("kubernetes.informer.informer")
locks: Any = import_module("kubernetes.leaderelection.resourcelock.leaselock")
records: Any = import_module("kubernetes.leaderelection.leaderelectionrecord")
watch: Any = import_module("kubernetes.watch")

SOON = 10
BEGUN = "2026-01-01 00:00:00.000001"
RENEWED = "2026-01-01 00:00:10.000001"


@pytest.fixture
def api(served: ServedCluster) -> Iterator[object]:
    with config.new_client_from_config(str(served.kubeconfig)) as api:
        yield api


async def test_objects_are_made_read_changed_and_deleted(api: object) -> None:
    core = kubernetes.CoreV1Api(api)

    def work() -> list[object]:
        core.create_namespaced_config_map("default", config_map("a", x="1"))
        core.patch_namespaced_config_map("a", "default", {"data": {"y": "2"}})
        read = core.read_namespaced_config_map("a", "default")
        read.data["z"] = "3"
        replaced = core.replace_namespaced_config_map("a", "default", read)
        before = core.list_namespaced_config_map("default", limit=10)
        core.delete_namespaced_config_map("a", "default")
        after = core.list_namespaced_config_map("default")
        return [replaced.data, len(before.items), len(after.items)]

    assert await asyncio.to_thread(work) == [{"x": "1", "y": "2", "z": "3"}, 1, 0]


async def test_a_refusal_is_an_exception_with_its_status(api: object) -> None:
    core = kubernetes.CoreV1Api(api)

    with pytest.raises(kubernetes.ApiException) as raised:
        await asyncio.to_thread(core.read_namespaced_pod, "nope", "default")

    assert raised.value.status == 404


async def test_typed_objects_go_back_and_forth(api: object) -> None:
    labels = {"app": "web"}
    template = kubernetes.V1PodTemplateSpec(
        metadata=kubernetes.V1ObjectMeta(labels=labels),
        spec=kubernetes.V1PodSpec(containers=[kubernetes.V1Container(name="a", image="b")]),
    )
    spec = kubernetes.V1DeploymentSpec(
        replicas=0, selector=kubernetes.V1LabelSelector(match_labels=labels), template=template
    )
    deployment = kubernetes.V1Deployment(metadata=kubernetes.V1ObjectMeta(name="web"), spec=spec)
    apps = kubernetes.AppsV1Api(api)

    made = await asyncio.to_thread(apps.create_namespaced_deployment, "default", deployment)
    scale = await asyncio.to_thread(apps.read_namespaced_deployment_scale, "web", "default")

    assert made.spec.template.spec.restart_policy == "Always"
    assert scale.status.selector == "app=web"


async def test_a_watch_delivers_changes(api: object) -> None:
    core = kubernetes.CoreV1Api(api)

    def work() -> list[tuple[str, str]]:
        core.create_namespaced_config_map("default", config_map("a"))
        listing = core.list_namespaced_config_map
        stream = watch.Watch().stream(listing, "default", timeout_seconds=5)
        first = next(stream)
        core.delete_namespaced_config_map("a", "default")
        second = next(stream)
        stream.close()
        return [(each["type"], each["object"].metadata.name) for each in (first, second)]

    assert await asyncio.to_thread(work) == [("ADDED", "a"), ("DELETED", "a")]


async def test_an_informer_keeps_up(api: object) -> None:
    core = kubernetes.CoreV1Api(api)
    is_there, is_gone = threading.Event(), threading.Event()
    informer = informers.SharedInformer(core.list_namespaced_config_map, namespace="default")
    informer.add_event_handler("ADDED", lambda _: is_there.set())
    informer.add_event_handler("DELETED", lambda _: is_gone.set())

    def work() -> list[object]:
        informer.start()
        core.create_namespaced_config_map("default", config_map("a"))
        seen = [is_there.wait(SOON), informer.cache.list_keys()]
        core.delete_namespaced_config_map("a", "default")
        seen.append(is_gone.wait(SOON))
        stopping = threading.Thread(target=informer.stop)
        stopping.start()
        # An informer notices `stop` only with the next event.
        core.create_namespaced_config_map("default", config_map("b"))
        stopping.join(SOON)
        return seen

    assert await asyncio.to_thread(work) == [True, ["default/a"], True]


async def test_the_dynamic_client_finds_custom_resources(api: object) -> None:
    def work() -> list[object]:
        client = dynamic.DynamicClient(api)
        pools = client.resources.get(api_version="karpenter.sh/v1", kind="NodePool")
        pools.create(body=node_pool("a", weight=3))
        applied = pools.server_side_apply(
            body=_applied("a", weight=4), name="a", field_manager="me", force_conflicts=True
        )
        pools.delete(name="a")
        return [pools.namespaced, applied.spec.weight, len(pools.get().items)]

    assert await asyncio.to_thread(work) == [False, 4, 0]


async def test_a_lock_is_held_by_lease(api: object) -> None:
    first = locks.LeaseLock("leader", "default", "me")
    second = locks.LeaseLock("leader", "default", "you")
    first.api_instance = second.api_instance = kubernetes.CoordinationV1Api(api)
    mine = records.LeaderElectionRecord("me", "15", BEGUN, BEGUN)
    yours = records.LeaderElectionRecord("you", "15", RENEWED, RENEWED)

    def work() -> list[object]:
        is_made = first.create("leader", "default", mine)
        is_read, record = second.get("leader", "default")
        is_taken = second.update("leader", "default", yours)
        # A candidate with the older version of the lease must not win it back.
        is_taken_back = first.update("leader", "default", mine)
        return [is_made, is_read, record.holder_identity, is_taken, is_taken_back]

    assert await asyncio.to_thread(work) == [True, True, "me", True, False]


def _applied(name: str, **spec: object) -> JsonObject:
    return {**node_pool(name), "spec": spec}
