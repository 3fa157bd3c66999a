"""
Measure how many objects a second the embedded store writes: `python -m benchmarks.store`.

The writes are those of pods in a running cluster: create, bind, status patches, delete. Three
watchers read the events meanwhile: of all pods, of a label, and of a node.
"""

import argparse
import asyncio
from contextlib import suppress
from datetime import UTC, datetime
from time import process_time
from typing import Final

from karpy.codec.fields import JsonObject
from karpy.model.kinds import POD
from karpy.ports.objects import EVERYTHING, Patch, PatchType, Query, Removal
from karpy.sim.objects import EmbeddedObjects
from karpy.sim.store.store import Store

_NODES: Final = 100
_BATCH: Final = 50
_WRITES_PER_POD: Final = 5
_TARGET: Final = 20_000
_AT_ONCE: Final = Removal(grace_seconds=0)
_WATCHES: Final = (EVERYTHING, Query(labels="app=web-1"), Query(fields="spec.nodeName=node-7"))
_RUNNING: Final = {
    "phase": "Running",
    "podIP": "10.0.0.1",
    "conditions": [
        {"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    ],
}


class _Clock:
    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)


def _pod(number: int) -> JsonObject:
    # Every pod has a spec object of its own, as if decoded from a request.
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"web-{number}",
            "namespace": "default",
            "labels": {"app": f"web-{number % 10}", "pod-template-hash": "5d78c9869d"},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": f"web-{number % 10}",
                    "uid": f"00000000-0000-4000-a000-{number % 10:012}",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "containers": [
                {
                    "name": "web",
                    "image": "example.com/web:1",
                    "ports": [{"containerPort": 80}],
                    "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
                }
            ],
        },
    }


def _write(store: Store, number: int) -> None:
    name = f"web-{number}"
    store.create(POD, _pod(number))
    binding = {
        "metadata": {"name": name, "namespace": "default"},
        "target": {"kind": "Node", "name": f"node-{number % _NODES}"},
    }
    store.create(POD, binding, subresource="binding")
    for body in ({"status": _RUNNING}, {"status": {"phase": "Succeeded"}}):
        patch = Patch(PatchType.STRATEGIC, body)
        store.patch(POD, name, patch, namespace="default", subresource="status")
    store.delete(POD, name, namespace="default", removal=_AT_ONCE)


async def _watch(objects: EmbeddedObjects, query: Query, since: str) -> int:
    seen = 0
    with suppress(asyncio.CancelledError):
        async for _ in objects.watch(POD, query, since=since):
            seen += 1
    return seen


async def _measure(pods: int) -> float:
    store = Store(_Clock())
    objects = EmbeddedObjects(store)
    watches = [asyncio.ensure_future(_watch(objects, each, store.version)) for each in _WATCHES]
    await asyncio.sleep(0)
    start = process_time()
    for number in range(pods):
        _write(store, number)
        if number % _BATCH == 0:
            await asyncio.sleep(0)
    await asyncio.sleep(0)
    seconds = process_time() - start
    for each in watches:
        each.cancel()
    counts = await asyncio.gather(*watches)
    assert counts[0] >= pods * _WRITES_PER_POD, "a watcher missed events"
    return pods * _WRITES_PER_POD / seconds


def main() -> None:
    """Print one line: the best of some rounds."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.store", description=__doc__)
    parser.add_argument("--pods", type=int, default=4000, help="pods a round")
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    best = max(asyncio.run(_measure(asked.pods)) for _ in range(asked.rounds))
    print(
        f"embedded store: {best:,.0f} writes per second, 3 watchers "
        f"({1e6 / best:.1f} µs each; target {_TARGET:,})"
    )


if __name__ == "__main__":
    main()
