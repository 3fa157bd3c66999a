"""Tests on virtual time: worlds, objects to put into them, and their state."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec

from karpy.codec.fields import JsonObject
from karpy.model.kinds import NODE, POD
from karpy.model.verdicts import LaunchOption
from karpy.ports.cloud import LaunchSpec
from karpy.sim.kubelets.timing import KubeletTiming
from karpy.sim.loop import run
from karpy.sim.store.conditions import condition_of
from karpy.sim.store.store import Store
from karpy.sim.world import World, WorldSettings

P = ParamSpec("P")

TIMING = KubeletTiming(boot_seconds=30, ready_seconds=10, start_seconds=2, stop_seconds=1)
SMALL = "c-1x-amd64-linux"
SETTINGS = WorldSettings(timing=TIMING)


def on_virtual_time(story: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Turn a coroutine into a test that runs on virtual time."""

    @wraps(story)
    def test(*args: P.args, **kwargs: P.kwargs) -> None:
        run(story(*args, **kwargs))

    return test


@contextmanager
def living(world: World) -> Iterator[World]:
    """Start a world and stop it in the end."""
    world.start()
    try:
        yield world
    finally:
        world.stop()


@contextmanager
def bare_world(settings: WorldSettings = SETTINGS, *, seed: int = 0) -> Iterator[World]:
    """Run a world with machines and a cloud, without workload controllers and scheduler."""
    with living(World(settings, seed=seed, parts=())) as world:
        yield world


def pod(name: str, *, annotations: dict[str, str] | None = None, **spec: object) -> JsonObject:
    container = {"name": "app", "image": "shop/app:1", "resources": {"requests": {"cpu": "100m"}}}
    metadata: JsonObject = {"name": name, "namespace": "default"}
    if annotations:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": {"containers": [container], **spec}}


def deployment(replicas: int) -> JsonObject:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": pod("x")["spec"]}
    return {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": template,
        },
    }


def bind(store: Store, name: str, node: str) -> None:
    metadata = {"name": name, "namespace": "default"}
    target = {"kind": "Node", "name": node}
    store.create(POD, {"metadata": metadata, "target": target}, subresource="binding")


def launch_spec(
    claim: str = "c1", *options: LaunchOption, uid: str = "", reservations: tuple[str, ...] = ()
) -> LaunchSpec:
    """Return the spec of a launch, by default of a small machine that never sells out."""
    return LaunchSpec(
        claim=claim,
        token=uid or f"uid-of-{claim}",
        pool="general",
        node_class="default",
        options=options or (option(),),
        reservations=reservations,
    )


def option(
    instance_type: str = SMALL,
    zone: str = "test-zone-a",
    capacity_type: str = "on-demand",
    price: int = 100,
) -> LaunchOption:
    return LaunchOption(instance_type, price, zone, capacity_type)


async def world_with_pod(world: World, made: JsonObject, *, node: str = "n1") -> None:
    """Add a Ready node, and a pod that is bound to it now."""
    world.add_node(node)
    await asyncio.sleep(1)
    world.store.create(POD, made)
    bind(world.store, made["metadata"]["name"], node)


def get_pod(world: World, name: str) -> JsonObject:
    return world.store.get(POD, name, "default")


def phase(world: World, name: str) -> str:
    """Return the phase of a pod, `gone` if it was deleted."""
    found = world.store.find(POD, name, "default")
    return "gone" if found is None else str(found["status"]["phase"])


def condition(world: World, type_: str, *, pod: str = "", node: str = "") -> str:
    """Return the status of a condition of a pod or a node, empty if there is none."""
    obj = get_pod(world, pod) if pod else world.store.get(NODE, node)
    found = condition_of(obj, type_)
    return "" if found is None else str(found["status"])


def taints(world: World, node: str) -> list[str]:
    """List the taints of a node as `key:effect`, without the domain of the key."""
    found = world.store.get(NODE, node).get("spec", {}).get("taints") or []
    return sorted(f"{each['key'].rpartition('/')[2]}:{each['effect']}" for each in found)
