"""The digest of all events of a busy hour: `python -m tests.sim.digests`."""

import asyncio
from hashlib import sha256

import msgspec

from karpy.codec.fields import JsonObject
from karpy.model.kinds import DEPLOYMENT, Kind
from karpy.ports.objects import WatchEvent
from karpy.sim.cloud.terms import Terms
from karpy.sim.hazards import Chaos, Hazards
from karpy.sim.kubelets.timing import KubeletTiming
from karpy.sim.loop import run
from karpy.sim.world import World, WorldSettings
from tests.sim.stories import deployment, launch_spec, living, option

JITTER = WorldSettings(
    timing=KubeletTiming(jitter_percent=30), terms=Terms(interruption_percent=20)
)


def digest_of(seed: int) -> str:
    """Return the digest of all events of a busy hour."""
    digest = sha256()

    def take(kind: Kind, event: WatchEvent, _: JsonObject | None) -> None:
        digest.update(f"{kind} {event.type.name} {event.version}".encode())
        digest.update(msgspec.json.encode(event.object))

    async def live() -> None:
        with living(World(JITTER, seed=seed)) as world:
            world.store.subscribe_all(take)
            world.add_node("n1")
            world.add_node("n2")
            chaos = Chaos(world.kubelets, Hazards(away_percent=50, reboot_percent=50), seed=seed)
            chaos.start()
            world.store.create(DEPLOYMENT, deployment(12))
            await world.cloud.launch(launch_spec("c1", option(capacity_type="spot")))
            await asyncio.sleep(5400)
            world.store.delete(DEPLOYMENT, "web", namespace="default")
            await asyncio.sleep(600)
            chaos.stop()

    run(live())
    return digest.hexdigest()


if __name__ == "__main__":
    print(digest_of(1))
