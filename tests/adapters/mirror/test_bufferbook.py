import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from karpy.adapters.mirror.bufferbook import BufferBook
from karpy.codec.schemas.definitions import CUSTOM_KINDS
from karpy.core.buffers import PODS_MAX, TOGETHER_MAX
from karpy.model.kinds import CAPACITY_BUFFER, CUSTOM_RESOURCE, POD_TEMPLATE
from karpy.ports.objects import Patch, PatchType
from karpy.sim.loop import run
from karpy.sim.world import World
from tests.controllers.bufferwriters import buffer, pod_template

DEFINITION = "capacitybuffers.autoscaling.x-k8s.io"
BUFFER = buffer(podTemplateRef={"name": "web"}, replicas=2)
KEY = "default/spare"


@asynccontextmanager
async def following(world: World) -> AsyncIterator[BufferBook]:
    """Have a book that is up to date."""
    book = BufferBook(world.objects, world.clock)
    task = asyncio.create_task(book.run())
    await book.wait_until_listed()
    try:
        yield book
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_virtual_pods_are_the_same_until_something_changes() -> None:
    async def story() -> tuple[bool, int, int]:
        world = World()
        world.store.create(POD_TEMPLATE, pod_template())
        world.store.create(CAPACITY_BUFFER, BUFFER)
        async with following(world) as book:
            before = book.room_of(KEY)
            status = Patch(PatchType.MERGE, {"status": {"replicas": 7}})
            patch = world.store.patch
            patch(CAPACITY_BUFFER, "spare", status, namespace="default", subresource="status")
            await asyncio.sleep(1)
            is_same = book.room_of(KEY) is before
            more = Patch(PatchType.MERGE, {"spec": {"replicas": 3}})
            patch(CAPACITY_BUFFER, "spare", more, namespace="default")
            await asyncio.sleep(1)
            return is_same, len(before), len(book.virtual_pods())

    assert run(story()) == (True, 2, 3)


def test_virtual_pods_look_as_their_template_does_now() -> None:
    async def story() -> set[int]:
        world = World()
        made = world.store.create(POD_TEMPLATE, pod_template())
        world.store.create(CAPACITY_BUFFER, BUFFER)
        async with following(world) as book:
            book.virtual_pods()
            changed = {**made, "template": pod_template(cpu="5")["template"]}
            world.store.replace(POD_TEMPLATE, changed)
            await asyncio.sleep(1)
            return {each.requests["cpu"] for each in book.virtual_pods()}

    assert run(story()) == {5000}


def test_a_buffer_that_is_gone_leaves_nothing() -> None:
    async def story() -> tuple[int, int]:
        world = World()
        world.store.create(POD_TEMPLATE, pod_template())
        world.store.create(CAPACITY_BUFFER, BUFFER)
        async with following(world) as book:
            before = len(book.virtual_pods())
            world.store.delete(CAPACITY_BUFFER, "spare", namespace="default")
            await asyncio.sleep(1)
            return before, len(book.virtual_pods())

    assert run(story()) == (2, 0)


def test_a_kind_that_is_installed_later_is_found() -> None:
    async def story() -> tuple[int, int]:
        world = World()
        world.store.create(POD_TEMPLATE, pod_template())
        world.store.delete(CUSTOM_RESOURCE, DEFINITION)
        async with following(world) as book:
            before = len(book.virtual_pods())
            (kind,) = (each for each in CUSTOM_KINDS if each.kind == CAPACITY_BUFFER)
            world.store.create(CUSTOM_RESOURCE, kind.to_json())
            world.store.create(CAPACITY_BUFFER, BUFFER)
            await asyncio.sleep(60)
            return before, len(book.virtual_pods())

    assert run(story()) == (0, 2)


def test_only_the_optional_kind_may_be_absent() -> None:
    async def story() -> list[bool]:
        world = World()
        book = BufferBook(world.objects, world.clock)
        book.note_absent(POD_TEMPLATE)
        book.note_absent(CAPACITY_BUFFER)
        return [book.buffers.is_synced, book.sources["PodTemplate"].is_synced, book.is_listed]

    assert run(story()) == [True, False, False]


def test_many_large_buffers_share_what_all_may_have_together() -> None:
    async def story() -> list[int]:
        world = World()
        world.store.create(POD_TEMPLATE, pod_template())
        for number in range(4):
            meta = {**BUFFER["metadata"], "name": f"vast-{number}"}
            spec = {**BUFFER["spec"], "replicas": 2**31 - 1}
            world.store.create(CAPACITY_BUFFER, {"metadata": meta, "spec": spec})
        async with following(world) as book:
            names = [each.key.rpartition("/")[2] for each in book.virtual_pods()]
            return [sum(f"vast-{number}" in each for each in names) for number in range(4)]

    assert run(story()) == [TOGETHER_MAX // 4] * 4


def test_no_more_pods_are_made_than_decisions_look_at() -> None:
    """Each of them takes memory; a hundred buffers may ask for all there is."""

    async def story() -> tuple[int, int, int]:
        world = World()
        world.store.create(POD_TEMPLATE, pod_template())
        world.store.create(CAPACITY_BUFFER, BUFFER)
        async with following(world) as book:
            for number in range(100):
                meta = {**BUFFER["metadata"], "name": f"vast-{number}"}
                spec = {**BUFFER["spec"], "replicas": 2**31 - 1}
                world.store.create(CAPACITY_BUFFER, {"metadata": meta, "spec": spec})
            await asyncio.sleep(1)
            made = sum(len(book.room_of(key)) for key in book.buffers.values)
            return made, len(book.room_of(KEY)), book.allowed_of("default/vast-0")

    made, small, vast = run(story())

    assert (made, small, vast) == (TOGETHER_MAX, 2, (TOGETHER_MAX - 2) // 100)
    assert vast < PODS_MAX


def test_a_buffer_has_its_room_again_once_another_is_gone() -> None:
    async def story() -> list[int]:
        world = World()
        world.store.create(POD_TEMPLATE, pod_template())
        for number in range(4):
            meta = {**BUFFER["metadata"], "name": f"vast-{number}"}
            spec = {**BUFFER["spec"], "replicas": PODS_MAX}
            world.store.create(CAPACITY_BUFFER, {"metadata": meta, "spec": spec})
        async with following(world) as book:
            sizes = [len(book.room_of("default/vast-0"))]
            for number in (1, 2):
                world.store.delete(CAPACITY_BUFFER, f"vast-{number}", namespace="default")
            await asyncio.sleep(1)
            return [*sizes, len(book.room_of("default/vast-0"))]

    assert run(story()) == [TOGETHER_MAX // 4, PODS_MAX]
