"""
Measure the CPU use of the operator on an idle cluster of 1,000 nodes.

    python -m benchmarks.resting [--nodes 1000] [--seconds 120]

Runs on a real control plane with KWOK for kubelets, whose nodes report as real ones do. Two pods
fill each node; consolidation is on and finds nothing. Once the nodes are unchanged for a while, the
CPU time of the operator is measured for two minutes. Prints one line; exits with 3 above the limit.
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from benchmarks.measuring import tell
from benchmarks.peer.measuring import KARPY, OperatorEnded, command_of, prepare
from benchmarks.peer.scenarios import deployment
from benchmarks.peer.usage import usage_of
from karpy.adapters.controlplane.building import ensure_programs
from karpy.adapters.controlplane.operators import OperatorProcess
from karpy.adapters.controlplane.plane import ControlPlane
from karpy.adapters.kube.connection import Connection, find_access
from karpy.errors import KarpyError
from karpy.model.kinds import DEPLOYMENT, NODE_CLAIM
from karpy.ports.objects import Objects

SHARE_MAX: Final = 0.03
_PODS_PER_NODE: Final = 2
_CPU_MILLI: Final = 7_600
"""The request of a pod: two pods fill a node of 16 vCPU, the largest that the NodePool allows."""
_MEMORY_MIB: Final = 24_000
_SECONDS_BETWEEN_LOOKS: Final = 2.0
_SECONDS_WITHOUT_CHANGE: Final = 60.0
_SECONDS_MAX: Final = 900.0
_MISSED: Final = 3


class Rest(Struct, frozen=True):
    """The CPU use of the operator while the cluster was idle."""

    nodes: int
    seconds: float
    cpu_s: float
    is_complete: bool
    """Whether all pods ran, and no NodeClaim was created or deleted meanwhile."""

    @property
    def share(self) -> float:
        """The CPU use as a share of one core."""
        return self.cpu_s / self.seconds


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print one line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=120)
    asked = parser.parse_args(words)
    try:
        programs = ensure_programs(os.environ, tell)
        with ControlPlane(programs) as plane:
            prepare(plane)
            with OperatorProcess(plane, command_of(KARPY, os.environ), name="karpy") as process:
                rest = asyncio.run(_measure(plane, process, asked.nodes, asked.seconds))
    except (KarpyError, OperatorEnded) as error:
        print(f"resting: {error}")
        return 1
    print(
        f"resting: {rest.nodes:,} nodes and {_PODS_PER_NODE * asked.nodes:,} pods at rest for"
        f" {rest.seconds:.0f} s: {rest.cpu_s:.2f} s of CPU, {rest.share:.1%} of a core"
        f" (at most {SHARE_MAX:.0%}){'' if rest.is_complete else '; the cluster was not at rest'}"
    )
    return 0 if rest.is_complete and rest.share <= SHARE_MAX else _MISSED


async def _measure(
    plane: ControlPlane, process: OperatorProcess, nodes: int, seconds: float
) -> Rest:
    pods = _PODS_PER_NODE * nodes
    async with Connection(find_access(kubeconfig=str(plane.kubeconfig)), rate=None) as connection:
        objects = connection.objects
        filling = deployment("filling", pods, cpu_milli=_CPU_MILLI, memory_mib=_MEMORY_MIB)
        await objects.create(DEPLOYMENT, filling)
        await _until_at_rest(objects, pods)
        before, began, used = await _claims(objects), time.monotonic(), usage_of(process.pid)
        await asyncio.sleep(seconds)
        cpu_s, took = usage_of(process.pid).cpu_s - used.cpu_s, time.monotonic() - began
        if not process.is_running:
            raise OperatorEnded(process.log.read_text()[-2000:])
        after, running = await _claims(objects), await _running(objects)
        return Rest(len(after), took, cpu_s, is_complete=after == before and running == pods)


async def _until_at_rest(objects: Objects, pods: int) -> None:
    """Wait until all pods run and the NodeClaims stay the same, or until the timeout."""
    began = changed = now = time.monotonic()
    claims: frozenset[str] = frozenset()
    while now - changed < _SECONDS_WITHOUT_CHANGE and now - began < _SECONDS_MAX:
        await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)
        last, claims, now = claims, await _claims(objects), time.monotonic()
        if claims != last or await _running(objects) < pods:
            changed = now


async def _claims(objects: Objects) -> frozenset[str]:
    found = (await objects.list(NODE_CLAIM)).items
    return frozenset(each["metadata"]["name"] for each in found)


async def _running(objects: Objects) -> int:
    found = (await objects.list(DEPLOYMENT)).items
    return sum(each["status"].get("readyReplicas", 0) for each in found)


if __name__ == "__main__":
    sys.exit(main())
