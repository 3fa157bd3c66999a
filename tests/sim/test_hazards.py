import asyncio

from karpy.model.kinds import NODE, POD
from karpy.ports.objects import WatchEvent
from karpy.sim.hazards import Chaos, Hazards
from karpy.sim.world import World
from tests.sim.stories import bare_world, bind, condition, on_virtual_time, phase, pod


async def _live(world: World, hazards: Hazards, hours: float, *, seed: int = 0) -> None:
    world.add_node("n1")
    await asyncio.sleep(1)
    chaos = Chaos(world.kubelets, hazards, seed=seed)
    chaos.start()
    await asyncio.sleep(hours * 3600)
    chaos.stop()


@on_virtual_time
async def test_nothing_happens_without_hazards() -> None:
    with bare_world() as world:
        await _live(world, Hazards(), 24)

        assert condition(world, "Ready", node="n1") == "True"


@on_virtual_time
async def test_a_lost_node_stays_lost() -> None:
    with bare_world() as world:
        await _live(world, Hazards(lost_percent=100), 3)

        assert condition(world, "Ready", node="n1") == "Unknown"


@on_virtual_time
async def test_a_node_that_was_away_comes_back() -> None:
    seen: list[WatchEvent] = []
    with bare_world() as world:
        world.store.subscribe(NODE, lambda event, _: seen.append(event))

        await _live(world, Hazards(away_percent=100), 0.99)
        await asyncio.sleep(400)

        statuses = [_ready(event) for event in seen]
        assert "Unknown" in statuses
        assert condition(world, "Ready", node="n1") == "True"


@on_virtual_time
async def test_a_broken_node_says_so() -> None:
    with bare_world() as world:
        await _live(world, Hazards(broken_percent=100), 2)

        assert condition(world, "Ready", node="n1") == "False"


@on_virtual_time
async def test_a_node_reboots_now_and_then() -> None:
    seen: list[WatchEvent] = []
    with bare_world() as world:
        world.store.subscribe(NODE, lambda event, _: seen.append(event))

        await _live(world, Hazards(reboot_percent=100), 5)
        await asyncio.sleep(60)

        boots = {event.object["status"]["nodeInfo"]["bootID"] for event in seen}
        assert condition(world, "Ready", node="n1") == "True"
        assert len(boots) > 3


@on_virtual_time
async def test_a_node_may_become_slow() -> None:
    with bare_world() as world:
        await _live(world, Hazards(slow_percent=100), 2)
        world.store.create(POD, pod("web"))
        bind(world.store, "web", "n1")

        await asyncio.sleep(15)

        assert phase(world, "web") == "Pending"


@on_virtual_time
async def test_the_same_seed_strikes_at_the_same_time() -> None:
    versions = []
    with bare_world() as first:
        await _live(first, Hazards(away_percent=30, reboot_percent=10), 48, seed=5)
        versions.append(first.store.version)
    with bare_world() as second:
        await _live(second, Hazards(away_percent=30, reboot_percent=10), 48, seed=5)
        versions.append(second.store.version)

    assert versions[0] == versions[1]


def _ready(event: WatchEvent) -> str:
    conditions = event.object["status"]["conditions"]
    return "".join(each["status"] for each in conditions if each["type"] == "Ready")
