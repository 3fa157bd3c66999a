"""
Measure lists of pods from a real API server, compared with kubernetes_asyncio.

    python -m benchmarks.listing [--pods 10000]

Starts a control plane, fills it, and lets each client list all pods in a process of its own. CPU
time is measured, since it varies little on a busy machine. Exits with 3 if Karpy needs more than a
fifth.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from karpy.adapters.controlplane.plane import ControlPlane
from karpy.adapters.controlplane.programs import require_programs
from karpy.adapters.kube.connection import Connection, Rate, find_access
from karpy.codec.podjson import PodJsonReader
from karpy.model.kinds import POD
from karpy.model.pods import Pod
from karpy.ports.objects import Change, Synced

SHARE_MAX: Final = 0.2
ROUNDS: Final = 3
_AT_ONCE: Final = 50
_PAGE: Final = 500


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print one line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--client", choices=["ours", "theirs"], help=argparse.SUPPRESS)
    parser.add_argument("--kubeconfig", help=argparse.SUPPRESS)
    asked = parser.parse_args(words)
    if asked.client:
        list_with = _list_ours if asked.client == "ours" else _list_theirs
        print(asyncio.run(list_with(asked.kubeconfig, asked.pods)))
        return 0
    with tempfile.TemporaryDirectory() as home:
        programs = require_programs(os.environ)
        with ControlPlane(programs, Path(home)) as plane:
            asyncio.run(_fill(str(plane.kubeconfig), asked.pods))
            best = {
                client: min(_run(client, plane, asked.pods) for _ in range(ROUNDS))
                for client in ("ours", "theirs")
            }
    share = best["ours"] / best["theirs"]
    print(
        f"listing {asked.pods:,} pods: {best['ours']:.2f} s of CPU, "
        f"kubernetes_asyncio {best['theirs']:.2f} s: {share:.3f} (at most {SHARE_MAX})"
    )
    return 0 if share <= SHARE_MAX else 3


def _run(client: str, plane: ControlPlane, pods: int) -> float:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "benchmarks.listing",
            f"--pods={pods}",
            f"--client={client}",
            f"--kubeconfig={plane.kubeconfig}",
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    return float(done.stdout)


async def _list_ours(kubeconfig: str, pods: int) -> float:
    async with Connection(find_access(kubeconfig=kubeconfig), rate=None) as connection:
        began, read = time.process_time(), dict[str, Pod]()
        async for change in connection.feed.follow(POD, PodJsonReader()):
            if isinstance(change, Synced):
                break
            assert isinstance(change, Change)
            assert change.value is not None
            read[change.key] = change.value
        spent = time.process_time() - began
    assert len(read) >= pods
    return spent


async def _list_theirs(kubeconfig: str, pods: int) -> float:
    # Import the large package only in the process that measures it.
    client, config = (import_module(f"kubernetes_asyncio.{each}") for each in ("client", "config"))
    await config.load_kube_config(kubeconfig)
    async with client.ApiClient() as api:
        core = client.CoreV1Api(api)
        began, read, more = time.process_time(), [], dict[str, str]()
        while True:
            page = await core.list_pod_for_all_namespaces(limit=_PAGE, **more)
            read += page.items
            more = {"_continue": page.metadata.to_dict()["_continue"] or ""}
            if not more["_continue"]:
                break
        spent = time.process_time() - began
    assert len(read) >= pods
    return spent


async def _fill(kubeconfig: str, pods: int) -> None:
    """Create pods like those of workloads, with a scheduler name that no scheduler serves."""
    gate = asyncio.Semaphore(_AT_ONCE)
    async with Connection(find_access(kubeconfig=kubeconfig), rate=Rate(5000, 5000)) as connection:

        async def make(number: int) -> None:
            async with gate:
                await connection.objects.create(POD, _pod(number))

        await asyncio.gather(*(make(number) for number in range(pods)))


def _pod(number: int) -> dict[str, Any]:
    app = f"app-{number % 500}"
    container = {
        "name": "main",
        "image": f"registry.example/{app}:1.2.3",
        "env": [{"name": f"SETTING_{each}", "value": "x" * 40} for each in range(10)],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{app}-{number:05}",
            "namespace": "default",
            "labels": {"app": app, "team": f"team-{number % 20}"},
        },
        "spec": {"schedulerName": "absent", "containers": [container]},
    }


if __name__ == "__main__":
    raise SystemExit(main())
