import asyncio
from collections.abc import Callable, Coroutine

import pytest

from karpy.codec.fields import JsonObject
from karpy.model.kinds import CONFIG_MAP
from karpy.ports.objects import Objects
from karpy.sim.crashes import Life
from karpy.sim.faults import Faults
from karpy.sim.faultyports import FaultyObjects
from karpy.sim.world import World
from tests.sim.stories import bare_world, on_virtual_time

Operator = Callable[[Objects], Coroutine[object, object, None]]


def _config(name: str) -> JsonObject:
    return {"metadata": {"name": name, "namespace": "default"}}


def _names(world: World) -> list[str]:
    return [each["metadata"]["name"] for each in world.store.list(CONFIG_MAP)]


async def _make_three(objects: Objects) -> None:
    for name in ("a", "b", "c"):
        await objects.create(CONFIG_MAP, _config(name))
        await asyncio.sleep(1)


async def _make_two_side_by_side(objects: Objects) -> None:
    async def make(name: str) -> None:
        await asyncio.sleep(1)
        await objects.create(CONFIG_MAP, _config(name))
        await asyncio.sleep(1)
        await objects.create(CONFIG_MAP, _config(f"{name}-again"))

    async with asyncio.TaskGroup() as group:
        group.create_task(make("a"))
        group.create_task(make("b"))


async def _say_goodbye(objects: Objects) -> None:
    try:
        await asyncio.sleep(3600)
    finally:
        await objects.create(CONFIG_MAP, _config("goodbye"))


async def _run(world: World, life: Life, operator: Operator) -> bool:
    return await life.run(operator(FaultyObjects(world.objects, Faults())))


@on_virtual_time
async def test_an_operator_that_is_left_alone_ends_by_itself() -> None:
    with bare_world() as world:
        life = Life()

        is_crashed = await _run(world, life, _make_three)

        assert (is_crashed, life.calls, _names(world)) == (False, 3, ["a", "b", "c"])


@pytest.mark.parametrize(
    ("life", "left"),
    [
        (Life(crash_at_call=1), []),
        (Life(crash_at_call=2), ["a"]),
        (Life(crash_at_call=2, is_call_done=True), ["a", "b"]),
        (Life(crash_at_call=3, is_call_done=True), ["a", "b", "c"]),
    ],
)
@on_virtual_time
async def test_an_operator_dies_at_a_call_before_or_after_it_is_done(
    life: Life, left: list[str]
) -> None:
    with bare_world() as world:
        is_crashed = await _run(world, life, _make_three)

        assert (is_crashed, _names(world)) == (True, left)


@pytest.mark.parametrize(("step", "left"), [(1, []), (2, ["a"]), (3, ["a", "b"])])
@on_virtual_time
async def test_an_operator_dies_at_an_await(step: int, left: list[str]) -> None:
    with bare_world() as world:
        is_crashed = await _run(world, Life(crash_at_await=step), _make_three)

        assert (is_crashed, _names(world)) == (True, left)


@on_virtual_time
async def test_all_tasks_of_an_operator_die_together() -> None:
    with bare_world() as world:
        is_crashed = await _run(world, Life(crash_at_call=2), _make_two_side_by_side)
        await asyncio.sleep(100)

        assert (is_crashed, _names(world)) == (True, ["a"])


@on_virtual_time
async def test_the_awaits_of_all_tasks_count() -> None:
    with bare_world() as world:
        life = Life()

        await _run(world, life, _make_two_side_by_side)

        assert (life.calls, life.awaits) == (4, 8)


@on_virtual_time
async def test_the_cleanup_of_a_dying_operator_is_lost() -> None:
    with bare_world() as world:
        is_crashed = await _run(world, Life(crash_at_await=2), _say_goodbye)

        assert (is_crashed, _names(world)) == (True, [])


@on_virtual_time
async def test_an_operator_can_be_killed_from_outside() -> None:
    with bare_world() as world:
        life = Life()
        asyncio.get_running_loop().call_later(60, life.end)

        is_crashed = await _run(world, life, _say_goodbye)

        assert (is_crashed, asyncio.get_running_loop().time()) == (True, 60)


@on_virtual_time
async def test_another_operator_can_take_over() -> None:
    async def make_the_rest(objects: Objects) -> None:
        page = await objects.list(CONFIG_MAP)
        await objects.create(CONFIG_MAP, _config(f"after-{len(page.items)}"))

    with bare_world() as world:
        await _run(world, Life(crash_at_call=3), _make_three)

        is_crashed = await _run(world, Life(), make_the_rest)

        assert (is_crashed, _names(world)) == (False, ["a", "after-2", "b"])


@on_virtual_time
async def test_an_error_of_an_operator_is_no_crash() -> None:
    async def slip(_: Objects) -> None:
        raise LookupError

    with bare_world() as world:
        with pytest.raises(LookupError):
            await _run(world, Life(), slip)

        assert _names(world) == []


@on_virtual_time
async def test_tasks_outside_of_an_operator_go_on() -> None:
    with bare_world() as world:
        life = Life(crash_at_await=2)
        other = asyncio.create_task(asyncio.sleep(100, "done"))

        await _run(world, life, _make_three)

        assert await other == "done"
