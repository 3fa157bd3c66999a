"""`karpy doctor` on the embedded cluster, over HTTP."""

import asyncio
import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from karpy.codec.fields import JsonObject
from karpy.codec.schemas.definitions import CUSTOM_KINDS
from karpy.model.kinds import (
    CUSTOM_RESOURCE,
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    KWOK_NODE_CLASS,
    LEASE,
    NAMESPACE,
    NODE,
    NODE_POOL,
    Kind,
)
from karpy.sim.world import World
from karpy.wiring.embedded import embedded_world, serve
from tests.cli.conftest import Karpy
from tests.scenarios.manifests import budget, deployment, node_class, pod_spec, pool

Found = dict[str, dict[str, Any]]
BIG = pod_spec("1", "1Gi")


def _named(obj: JsonObject, **meta: object) -> JsonObject:
    return {**obj, "metadata": {**obj["metadata"], **meta}}


async def _examine(world: World, karpy: Karpy, *words: str) -> tuple[int, Found]:
    """Run doctor on a cluster; return its exit code and the worst result of each check."""
    async with serve(world) as served:
        place = f"--kubeconfig={served.kubeconfig}"
        run = await asyncio.to_thread(karpy, "doctor", place, "--output=json", *words)
    answer = json.loads(run.out)
    order = ("green", "yellow", "red")
    ranked = sorted(answer["checks"], key=lambda each: order.index(each["health"]))
    return run.code, {each["check"]: each for each in ranked}


@pytest.fixture
def operator() -> list[tuple[Kind, JsonObject]]:
    """The objects of the chart that doctor checks."""
    env = [{"name": "KARPY_PROVIDER", "value": "kwok"}]
    container = {**BIG["containers"][0], "name": "controller", "image": "karpy:0.1.0", "env": env}
    made = deployment("karpenter", 2, pod={**BIG, "containers": [container]})
    return [
        (NAMESPACE, {"metadata": {"name": "karpenter"}}),
        (DEPLOYMENT, _named(made, namespace="karpenter")),
    ]


def _create(world: World, *objects: tuple[Kind, JsonObject]) -> None:
    for kind, obj in objects:
        world.store.create(kind, obj)


async def test_an_empty_cluster_may_have_karpy(karpy: Karpy) -> None:
    async with embedded_world() as world:
        code, found = await _examine(world, karpy)

    assert code == 0
    assert {name for name, each in found.items() if each["health"] == "green"} >= {
        "Kubernetes",
        "clock",
        "definitions",
        "rights",
        "leader",
        "other autoscalers",
        "workloads",
    }
    assert found["replicas"]["text"] == "Karpy is not installed in karpenter"
    assert found["NodePools"]["health"] == "yellow"


async def test_problems_of_a_cluster_are_found(
    karpy: Karpy, operator: list[tuple[Kind, JsonObject]]
) -> None:
    handler = pod_spec("1")
    handler["containers"][0].update(
        image="public.ecr.aws/aws-ec2/aws-node-termination-handler:v1",
        args=["--queue-url=https://sqs.eu-west-1.amazonaws.com/1/shop"],
    )
    async with embedded_world() as world:
        _create(
            world,
            *operator,
            (KWOK_NODE_CLASS, node_class()),
            (NODE_POOL, pool("general")),
            (NODE_POOL, pool("bounded", limits={"cpu": "10"})),
            (DEPLOYMENT, deployment("web", 3, pod=BIG)),
            (DEPLOYMENT, deployment("api", 3, pod=BIG)),
            (DEPLOYMENT, deployment("handler", 1, pod=handler)),
            (DISRUPTION_BUDGET, budget("api", maxUnavailable=1)),
        )
        code, found = await _examine(world, karpy, "--interruption-queue=shop")

    assert code == 3
    assert found["other autoscalers"]["health"] == "red"
    assert found["other autoscalers"]["objects"] == [
        "Node Termination Handler, Deployment default/handler"
    ]
    assert found["NodePools"]["objects"] == ["general"]
    assert found["replicas"]["health"] == "red"
    assert found["leader"]["health"] == "red"
    assert found["workloads"]["text"] == "ask for no CPU or no memory"


async def test_definitions_are_compared_with_those_of_today(karpy: Karpy) -> None:
    old, gone, *_ = CUSTOM_KINDS
    async with embedded_world() as world:
        stale = deepcopy(world.store.get(CUSTOM_RESOURCE, old.name))
        schema = stale["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        dropped = min(schema["properties"]["spec"]["properties"])
        del schema["properties"]["spec"]["properties"][dropped]
        world.store.replace(CUSTOM_RESOURCE, stale)
        first, with_old = await _examine(world, karpy)
        world.store.delete(CUSTOM_RESOURCE, gone.name)
        second, with_gap = await _examine(world, karpy)

    assert (first, with_old["definitions"]["health"]) == (0, "yellow")
    assert with_old["definitions"]["objects"][0].startswith(f"{old.name}: spec.{dropped}")
    assert (second, with_gap["definitions"]["health"]) == (3, "red")
    assert with_gap["definitions"]["objects"] == [gone.name]


async def test_two_leaders_are_found_by_their_leases(karpy: Karpy) -> None:
    async with embedded_world() as world:
        now = world.clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        for place in ("karpenter", "kube-system"):
            spec = {"holderIdentity": f"{place}_1", "renewTime": now}
            meta = {"name": "karpenter-leader-election", "namespace": place}
            if place == "karpenter":
                world.store.create(NAMESPACE, {"metadata": {"name": place}})
            world.store.create(LEASE, {"metadata": meta, "spec": spec})
        code, found = await _examine(world, karpy)

    assert code == 3
    assert found["leader"]["objects"] == ["karpenter: karpenter_1", "kube-system: kube-system_1"]


async def test_an_operator_on_a_node_that_it_launched_is_found(
    karpy: Karpy, operator: list[tuple[Kind, JsonObject]]
) -> None:
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    meta = {
        "name": "own",
        "labels": {"karpenter.sh/nodepool": "general"},
        "annotations": {"kwok.x-k8s.io/node": "fake"},
    }
    node = {"metadata": meta, "status": {"capacity": amounts, "allocatable": amounts}}
    async with embedded_world() as world:
        _create(world, (NODE, node), *operator)
        async with asyncio.timeout(30):
            while True:
                code, found = await _examine(world, karpy)
                if found["replicas"]["text"] != "none is ready":
                    break
                await asyncio.sleep(0.2)

    assert code == 3
    assert found["replicas"]["text"] == "run on nodes that Karpy may remove"
    assert [each.endswith(" on own") for each in found["replicas"]["objects"]] == [True, True]


async def test_people_get_a_table_with_hints(karpy: Karpy) -> None:
    async with embedded_world() as world, serve(world) as served:
        place = f"--kubeconfig={served.kubeconfig}"
        run = await asyncio.to_thread(karpy, "doctor", place)

    assert run.code == 0
    lines = run.out.splitlines()
    assert lines[0].startswith("ok    Kubernetes")
    assert any(each.startswith("care  NodePools") for each in lines)
    assert any(each.strip() == "hint: apply a NodePool" for each in lines)
    assert lines[-1].endswith(" 0 red")


@pytest.fixture
def fake_environ(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    server = pytest.importorskip("karpy.adapters.clouds.awsfake.server")
    fake = server.AwsFake(server.FakeAccount("us-west-2", "shop", "1.34", ("m5", "c6g")))
    fake.start()
    for key, value in fake.environ.items():
        monkeypatch.setenv(key, value)
    yield
    fake.stop()


@pytest.mark.usefixtures("fake_environ")
async def test_an_account_is_asked_who_it_is_and_what_it_may_do(karpy: Karpy) -> None:
    words = ("--provider=aws", "--cluster-name=shop")
    async with embedded_world() as world:
        _, well = await _examine(world, karpy, *words, "--interruption-queue=shop")
        code, ill = await _examine(world, karpy, *words, "--interruption-queue=gone")

    assert well["AWS identity"]["text"].endswith("in us-west-2")
    assert well["AWS permissions"]["health"] == "green"
    assert well["AWS queue"]["text"] == "shop"
    assert code == 3
    assert ill["AWS sqs:GetQueueUrl"]["hint"]
