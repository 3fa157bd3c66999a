import asyncio
from collections.abc import Callable, Mapping

import pytest
from msgspec.structs import replace

from karpy.adapters.kube.connection import find_access
from karpy.adapters.mirror.mirror import Mirror
from karpy.codec.fields import JsonObject
from karpy.errors import Forbidden, NotFound
from karpy.model.instances import Catalog
from karpy.model.kinds import (
    CAPACITY_BUFFER,
    DEPLOYMENT,
    LIMIT_RANGE,
    NODE_CLAIM,
    NODE_OVERLAY,
    NODE_POOL,
    POD,
    POD_TEMPLATE,
    Kind,
)
from karpy.model.settings import Settings
from karpy.ports.objects import EVERYTHING, Page, Query
from karpy.sim.objects import EmbeddedObjects
from karpy.sim.world import World
from karpy.wiring.embedded import embedded_world, serve
from karpy.wiring.onlooker import ANY_CLUSTER, Sight, lenient, look, see, watch

POOL: JsonObject = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "general"},
    "spec": {
        "template": {
            "spec": {
                "nodeClassRef": {
                    "group": "karpenter.kwok.sh",
                    "kind": "KWOKNodeClass",
                    "name": "default",
                },
                "requirements": [
                    {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}
                ],
            }
        }
    },
}


def pod(name: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "main", "image": "main"}]},
    }


def pod_template(name: str) -> JsonObject:
    spec = pod(name)["spec"]
    return {"metadata": {"name": name, "namespace": "default"}, "template": {"spec": spec}}


def buffer(name: str, **spec: object) -> JsonObject:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"replicas": 2, **spec}}


class Troubled(EmbeddedObjects):
    """An API server that refuses some kinds, and returns an unreadable pod `odd`."""

    def __init__(self, world: World, refused: Mapping[Kind, type[Exception]]) -> None:
        super().__init__(world.store, manager="test")
        self._refused = refused

    async def list(
        self, kind: Kind, query: Query = EVERYTHING, *, limit: int = 0, token: str = ""
    ) -> Page:
        if kind in self._refused:
            raise self._refused[kind](f"cannot list {kind}")
        page = await super().list(kind, query, limit=limit, token=token)
        spoilt = {**pod("odd"), "spec": {"containers": "none"}, "template": {"spec": 5}}
        items = [spoilt if each["metadata"]["name"] == "odd" else each for each in page.items]
        return replace(page, items=tuple(items))


async def seen_by(refused: Mapping[Kind, type[Exception]] | None = None, *pods: str) -> Sight:
    async with embedded_world() as world:
        world.store.create(NODE_POOL, POOL)
        for each in pods:
            world.store.create(POD, pod(each))
        return await see(Troubled(world, refused or {}), world.clock, Settings())


async def test_everything_that_decisions_read_is_seen_over_http() -> None:
    async with embedded_world() as world, serve(world) as cluster:
        world.add_node("byhand")
        world.store.create(NODE_POOL, POOL)
        world.store.create(POD, pod("web"))
        sight = await look(find_access(None, str(cluster.kubeconfig), {}), Settings())

    seen = sight.snapshot
    assert [each.name for each in seen.nodes] == ["byhand"]
    assert [each.name for each in seen.pools] == ["general"]
    assert [each.key for each in seen.pods] == ["default/web"]
    assert (sight.unreadable, sight.withheld) == ((), ())


async def test_an_object_that_cannot_be_read_is_named_and_the_others_are_seen() -> None:
    sight = await seen_by({}, "odd", "web")

    ((kind, key, problem),) = sight.unreadable
    assert (kind, key, bool(problem)) == (POD, "default/odd", True)
    assert sorted(each.key for each in sight.snapshot.pods) == ["default/odd", "default/web"]


async def test_a_kind_that_decisions_go_on_without_may_be_refused() -> None:
    sight = await seen_by({LIMIT_RANGE: Forbidden, NODE_OVERLAY: NotFound})

    assert sight.withheld == (LIMIT_RANGE,)
    assert [each.name for each in sight.snapshot.pools] == ["general"]


@pytest.mark.parametrize(("kind", "error"), [(POD, Forbidden), (NODE_POOL, NotFound)])
async def test_a_kind_that_decisions_need_may_not(kind: Kind, error: type[Exception]) -> None:
    with pytest.raises(error, match=f"cannot list {kind}"):
        await seen_by({kind: error})


async def buffers_seen_by(
    refused: Mapping[Kind, type[Exception]], *buffers: JsonObject, template: str = "web"
) -> Sight:
    async with embedded_world() as world:
        world.store.create(POD_TEMPLATE, pod_template(template))
        for each in buffers:
            world.store.create(CAPACITY_BUFFER, each)
        return await see(Troubled(world, refused), world.clock, Settings())


OF_TEMPLATE = buffer("spare", podTemplateRef={"name": "web"})
OF_WORKLOAD = buffer("more", scalableRef={"apiGroup": "apps", "kind": "Deployment", "name": "web"})
OF_JOB = buffer("job", scalableRef={"apiGroup": "batch", "kind": "Job", "name": "web"})


async def test_buffers_are_seen_with_what_they_refer_to() -> None:
    sight = await buffers_seen_by({}, OF_TEMPLATE, OF_WORKLOAD, OF_JOB)

    found = {each.where: each.source and each.source.pod.name for each in sight.buffers}
    assert found == {
        "CapacityBuffer default/job": None,
        "CapacityBuffer default/more": None,
        "CapacityBuffer default/spare": "web",
    }
    assert (sight.unreadable, sight.withheld) == ((), ())


@pytest.mark.parametrize(
    ("refused", "withheld"),
    [
        ({CAPACITY_BUFFER: NotFound}, ()),
        ({CAPACITY_BUFFER: Forbidden}, (CAPACITY_BUFFER,)),
        ({POD_TEMPLATE: Forbidden, DEPLOYMENT: Forbidden}, (DEPLOYMENT, POD_TEMPLATE)),
    ],
    ids=["no CRD", "no right", "no right to what they refer to"],
)
async def test_buffers_that_cannot_be_looked_up_are_left_out(
    refused: Mapping[Kind, type[Exception]], withheld: tuple[Kind, ...]
) -> None:
    again = buffer("again", podTemplateRef={"name": "web"})
    sight = await buffers_seen_by(refused, OF_TEMPLATE, again, OF_WORKLOAD)

    assert (sight.buffers, sight.unreadable) == ((), ())
    assert tuple(sorted(sight.withheld, key=lambda kind: kind.name)) == withheld


async def test_what_no_buffer_refers_to_need_not_be_readable() -> None:
    sight = await buffers_seen_by({DEPLOYMENT: Forbidden}, OF_TEMPLATE)

    assert [each.record.key for each in sight.buffers] == ["default/spare"]
    assert sight.withheld == ()


async def test_a_buffer_whose_template_cannot_be_read_is_left_out() -> None:
    odd = buffer("spare", podTemplateRef={"name": "odd"})
    sight = await buffers_seen_by({}, odd, template="odd")

    ((kind, key, problem),) = sight.unreadable
    assert sight.buffers == ()
    assert (kind, key, bool(problem)) == (POD_TEMPLATE, "default/odd", True)


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(6000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise TimeoutError


ABSENT = {NODE_POOL: NotFound, NODE_CLAIM: NotFound, NODE_OVERLAY: NotFound, LIMIT_RANGE: Forbidden}


async def test_a_cluster_without_crds_is_seen_where_that_will_do() -> None:
    async with embedded_world() as world:
        world.add_node("byhand")
        sight = await see(Troubled(world, ABSENT), world.clock, Settings(), ANY_CLUSTER)

    assert [each.name for each in sight.snapshot.nodes] == ["byhand"]


async def test_a_cluster_without_crds_is_followed() -> None:
    async with embedded_world() as world:
        objects = Troubled(world, ABSENT)
        mirror = Mirror(lenient(objects, objects), world.clock, Catalog, Settings())
        running = asyncio.create_task(mirror.run())
        await mirror.wait_until_listed()
        world.store.create(POD, pod("web"))
        await until(lambda: [each.key for each in mirror.snapshot().pods] == ["default/web"])
        running.cancel()

    assert mirror.snapshot().pools == ()


async def test_a_watch_sees_buffers_that_come_and_go() -> None:
    async with embedded_world() as world, serve(world) as cluster:
        world.store.create(POD_TEMPLATE, pod_template("web"))
        access = find_access(None, str(cluster.kubeconfig), {})
        async with watch(access, Settings()) as watching:
            before = await watching.sight()
            world.store.create(CAPACITY_BUFFER, OF_TEMPLATE)
            between = await watching.sight()
            world.store.delete(CAPACITY_BUFFER, "spare", namespace="default")
            after = await watching.sight()

    found = [[each.record.key for each in seen.buffers] for seen in (before, between, after)]
    assert found == [[], ["default/spare"], []]
