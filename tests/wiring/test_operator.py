"""An operator whose ClusterRole is of an older version."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.core.lifecycle.changes import Count, Remark
from karpy.errors import ClusterError, Forbidden, Unreachable
from karpy.model.kinds import DAEMON_SET, LIMIT_RANGE, NODE, RUNTIME_CLASS, Kind
from karpy.model.notices import Notice
from karpy.model.settings import Options
from karpy.ports.objects import EVERYTHING, Change, Page, Query, Reader, Synced
from karpy.sim.objects import EmbeddedObjects
from karpy.sim.store.store import Store
from karpy.sim.world import World
from karpy.wiring.embedded import embedded_world
from karpy.wiring.operator import KarpyOperator
from karpy.wiring.resident import BRISK
from karpy.wiring.surface import Surface
from tests.scenarios.manifests import IMAGE, daemon_set, pod_spec
from tests.sim.stories import on_virtual_time

OPEN: JsonObject = {"containers": [{"name": "main", "image": IMAGE}]}


class GuardedObjects(EmbeddedObjects):
    """An API server that refuses some kinds, and a feed that tries again until it may."""

    def __init__(self, store: Store, refused: dict[Kind, ClusterError]) -> None:
        super().__init__(store)
        self.refused = refused
        self._granted = asyncio.Event()

    def grant(self) -> None:
        """Refuse nothing from now on."""
        self.refused.clear()
        self._granted.set()

    async def list(
        self, kind: Kind, query: Query = EVERYTHING, *, limit: int = 0, token: str = ""
    ) -> Page:
        if kind in self.refused:
            raise self.refused[kind]
        return await super().list(kind, query, limit=limit, token=token)

    async def follow(
        self, kind: Kind, reader: Reader[Any], query: Query = EVERYTHING
    ) -> AsyncIterator[Change[Any] | Synced]:
        if kind in self.refused:
            await self._granted.wait()
        async for change in super().follow(kind, reader, query):
            yield change


class Heard(Struct):
    """Keeps what is said to the log."""

    remarks: list[Remark] = []

    def emit(self, notice: Notice) -> None:
        del notice

    def count(self, count: Count) -> None:
        del count

    def remark(self, remark: Remark) -> None:
        self.remarks.append(remark)

    def fail(self, controller: str, key: str, error: BaseException) -> None:
        raise AssertionError((controller, key, error))


@asynccontextmanager
async def watching(
    world: World, objects: GuardedObjects, heard: Heard
) -> AsyncIterator[KarpyOperator]:
    surface = Surface(objects, objects, world.clock, world.cloud)
    operator = KarpyOperator(surface, Options(), notices=heard, voice=heard)
    task = asyncio.create_task(operator.watch())
    try:
        yield operator
    finally:
        task.cancel()
        await asyncio.wait((task,))


def forbidden(kind: Kind) -> Forbidden:
    return Forbidden(f"cannot list {kind}", status=403)


@on_virtual_time
async def test_rules_that_may_not_be_read_are_done_without_and_the_log_names_the_right() -> None:
    refused: dict[Kind, ClusterError] = {
        kind: forbidden(kind) for kind in (LIMIT_RANGE, RUNTIME_CLASS)
    }
    heard = Heard()
    async with embedded_world(BRISK) as world:
        world.store.create(DAEMON_SET, daemon_set("agent", pod_spec(cpu="1")))
        async with watching(world, GuardedObjects(world.store, refused), heard) as operator:
            await asyncio.sleep(10)
            listed, daemons = operator.mirror.is_listed, operator.mirror.snapshot().daemons

    assert (listed, [each.name for each in daemons]) == (True, ["agent"])
    assert [(each.is_error, each.fields) for each in heard.remarks] == [
        (
            True,
            {
                "kind": "limitranges",
                "rule": 'apiGroups: [""], resources: [limitranges], verbs: [list, watch]',
            },
        ),
        (
            True,
            {
                "kind": "runtimeclasses.node.k8s.io",
                "rule": (
                    'apiGroups: ["node.k8s.io"], resources: [runtimeclasses], verbs: [list, watch]'
                ),
            },
        ),
    ]


@on_virtual_time
async def test_an_api_server_that_does_not_answer_at_first_is_asked_again() -> None:
    refused: dict[Kind, ClusterError] = {LIMIT_RANGE: Unreachable("no answer")}
    async with embedded_world(BRISK) as world:
        objects = GuardedObjects(world.store, refused)
        async with watching(world, objects, Heard()) as operator:
            await asyncio.sleep(10)
            before = operator.mirror.waiting_for()
            objects.refused[LIMIT_RANGE] = forbidden(LIMIT_RANGE)
            await asyncio.sleep(10)
            after = operator.mirror.waiting_for()

    assert (before, after) == ([LIMIT_RANGE], [])


@on_virtual_time
async def test_what_decisions_need_is_waited_for() -> None:
    async with embedded_world(BRISK) as world:
        objects = GuardedObjects(world.store, {NODE: forbidden(NODE)})
        async with watching(world, objects, Heard()) as operator:
            await asyncio.sleep(60)
            waiting = operator.mirror.waiting_for()

    assert waiting == [NODE]


@on_virtual_time
async def test_rules_that_may_be_read_later_count_from_then_on() -> None:
    usual = {"spec": {"limits": [{"type": "Container", "default": {"cpu": "2"}}]}}
    meta = {"metadata": {"name": "usual", "namespace": "default"}}
    async with embedded_world(BRISK) as world:
        world.store.create(LIMIT_RANGE, {**meta, **usual})
        world.store.create(DAEMON_SET, daemon_set("agent", OPEN))
        objects = GuardedObjects(world.store, {LIMIT_RANGE: forbidden(LIMIT_RANGE)})
        async with watching(world, objects, Heard()) as operator:
            await asyncio.sleep(10)
            before = operator.mirror.snapshot().daemons[0].pod.requests
            objects.grant()
            await asyncio.sleep(10)
            after = operator.mirror.snapshot().daemons[0].pod.requests

    assert (before, after) == ({"pods": 1}, {"cpu": 2000, "pods": 1})
