"""
Measure the memory of the mirror per pod, and the time in which it reads pods.

    python -m benchmarks.mirror

Reads 50,000 pods of 500 workloads as JSON, as an API server sends them, and prints one line.
"""

import asyncio
import gc
import os
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from karpy.adapters.clock import WallClock
from karpy.adapters.mirror.mirror import Mirror
from karpy.model.instances import Catalog
from karpy.model.kinds import POD, Kind
from karpy.model.settings import Settings
from karpy.ports.objects import EVERYTHING, Change, Query, Reader, Synced

PODS: Final = 50_000
WORKLOADS: Final = 500
BYTES_MAX: Final = 900


def main() -> int:
    """Measure and print one line."""
    held, seconds, mirror = asyncio.run(_measure())
    each = held / PODS
    print(
        f"mirror: {PODS:,} pods of {WORKLOADS} workloads: {each:,.0f} bytes a pod "
        f"(at most {BYTES_MAX:,}), {seconds / PODS * 1e6:.1f} µs a pod to take in, "
        f"{_snapshot_ms(mirror):.1f} ms a snapshot"
    )
    return 0 if each <= BYTES_MAX else 3


async def _measure() -> tuple[int, float, Mirror]:
    mirror = Mirror(_Pods(), WallClock(), Catalog, Settings())
    gc.collect()
    before, began = _resident(), time.process_time()
    task = asyncio.create_task(mirror.run())
    await mirror.wait_until_listed()
    seconds = time.process_time() - began
    gc.collect()
    held = _resident() - before
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return held, seconds, mirror


def _snapshot_ms(mirror: Mirror) -> float:
    began = time.perf_counter()
    mirror.snapshot()
    return (time.perf_counter() - began) * 1e3


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


class _Pods:
    """A feed of pods, and of no other kind."""

    async def follow(
        self, kind: Kind, reader: Reader[Any], query: Query = EVERYTHING
    ) -> AsyncIterator[Change[Any] | Synced]:
        """Yield every pod, then Synced, then no change."""
        del query
        for key, data in _pods() if kind == POD else ():
            yield Change(key, reader.from_bytes(data), "1")
        yield Synced()
        await asyncio.Event().wait()


def _pods() -> Iterator[tuple[str, bytes]]:
    for number in range(PODS):
        workload = number % WORKLOADS
        name = f"app-{workload}-7d4b9c6f5d-{number:05}"
        yield f"shop/{name}", msgspec.json.encode(_pod(name, workload, number))


def _pod(name: str, workload: int, number: int) -> dict[str, Any]:
    resources = {"requests": {"cpu": f"{workload + 10}m", "memory": "256Mi"}}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"app-{workload}", "uid": "u"}
    return {
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": f"{number:08}-0000-4000-8000-000000000000",
            "resourceVersion": str(number),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": f"app-{workload}", "pod-template-hash": "7d4b9c6f5d"},
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": {
            "nodeName": f"node-{number % 2000}",
            "containers": [{"name": "c", "image": "i", "resources": resources}],
            "volumes": [{"name": f"kube-api-access-{number}", "projected": {"sources": []}}],
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}],
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": "PodScheduled", "status": "True"}],
            "podIP": f"10.0.{number // 256}.{number % 256}",
        },
    }


if __name__ == "__main__":
    raise SystemExit(main())
