"""Listeners get what is decided about the size of NodePools, and on what."""

import asyncio

from karpy.controllers.nodepools import NodePoolController
from karpy.core.staticpools import decide_pool
from karpy.model.kinds import NODE_POOL, POD
from karpy.model.snapshot import PoolQuestion
from karpy.model.verdicts import PoolVerdict
from karpy.sim.loop import run
from tests.controllers.operators import Heard, node_of, until
from tests.controllers.poolwriters import (
    Loop,
    Scene,
    claim_writers,
    patch_pool,
    pool,
    running,
    scene_of,
)
from tests.controllers.test_nodetermination import pod
from tests.controllers.test_staticcapacity import are_ready, new_world, static, staying


class Listener:
    """Keeps what was decided."""

    def __init__(self) -> None:
        self.questions: list[PoolQuestion] = []
        self.verdicts: list[PoolVerdict] = []

    def on_verdict(self, question: PoolQuestion, verdict: PoolVerdict) -> None:
        self.questions.append(question)
        self.verdicts.append(verdict)


def all_loops(scene: Scene, listener: Listener) -> tuple[Loop, ...]:
    controller = static(scene)
    controller.listen(listener.on_verdict)
    pools = NodePoolController(scene.context, scene.classes, scene.nodes)
    return pools, controller, *claim_writers(scene.context)


def test_decisions_about_the_size_of_a_pool_are_reported_and_can_be_replayed() -> None:
    listener = Listener()

    async def story() -> tuple[list[str], str]:
        world = new_world()
        world.store.create(NODE_POOL, pool(replicas=3))
        async with (
            scene_of(world, Heard()) as scene,
            running(*all_loops(scene, listener)),
        ):
            await until(lambda: are_ready(world, 3))
            names = staying(world)
            busy = names.pop(1)
            world.store.create(POD, pod("a", node_of(world, busy)))
            await asyncio.sleep(5)
            patch_pool(world, {"replicas": 1})
            await until(lambda: are_ready(world, 1))
            found = names, node_of(world, busy)
        world.stop()
        return found

    given_up, busy = run(story())

    made = [each for each in listener.verdicts if each.creates]
    thinned = [each for each in listener.verdicts if each.deletes]
    assert [(each.creates, each.launch is not None) for each in made] == [(3, True)]
    assert [sorted(each.deletes) for each in thinned] == [sorted(given_up)]
    assert [(each.node, each.why.name) for each in thinned[0].refusals] == [(busy, "POOL_SIZE")]
    assert [decide_pool(each) for each in listener.questions] == listener.verdicts


def test_claims_that_a_limit_forbids_are_reported() -> None:
    listener = Listener()

    async def story() -> None:
        world = new_world()
        world.store.create(NODE_POOL, pool(replicas=5, limits={"nodes": "2"}))
        async with (
            scene_of(world, Heard()) as scene,
            running(*all_loops(scene, listener)),
        ):
            await asyncio.sleep(300)
        world.stop()

    run(story())

    withheld = [each.withheld for each in listener.verdicts if each.withheld is not None]
    assert [(each.constraint.name, each.count) for each in dict.fromkeys(withheld)] == [
        ("POOL_NOT_READY", 5),
        ("NODE_LIMIT", 3),
    ]
    assert [decide_pool(each) for each in listener.questions] == listener.verdicts
