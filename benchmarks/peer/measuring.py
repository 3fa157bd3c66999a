"""Let an operator scale a cluster out, and measure it."""

import asyncio
import json
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from benchmarks.peer.scenarios import NODE_CLASS, NODE_POOL, Scenario
from benchmarks.peer.usage import usage_of
from karpy.adapters.controlplane.bundles import PEER
from karpy.adapters.controlplane.operators import NAMESPACE, Operator
from karpy.adapters.controlplane.plane import ControlPlane
from karpy.adapters.controlplane.programs import find_program, require_programs
from karpy.adapters.kube.connection import Connection, find_access
from karpy.codec.catalogs import kwok_catalog
from karpy.codec.fields import JsonObject
from karpy.model.instances import MICROS_PER_DOLLAR
from karpy.model.kinds import DEPLOYMENT, NODE, NODE_CLAIM
from karpy.ports.objects import Objects, Query

KARPENTER: Final = "Karpenter"
KARPY: Final = "Karpy"
CRDS: Final = Path("deploy/crds")
_SECONDS_TO_SETTLE: Final = 10.0
_SECONDS_BETWEEN_LOOKS: Final = 0.25
_POOL_LABEL: Final = "karpenter.sh/nodepool"
_TYPE_LABEL: Final = "node.kubernetes.io/instance-type"
_CAPACITY_LABEL: Final = "karpenter.sh/capacity-type"


class Run(Struct, frozen=True):
    """What one operator made of one scenario."""

    operator: str
    scenario: str
    pods: int
    ready: int
    """How many pods ran in the end; fewer than there are if time was up."""
    seconds: float
    """From the first pod on until all run, or until time was up."""
    first_claim_s: float | None
    half_s: float | None
    """When half of the pods ran."""
    cpu_s: float
    peak_mib: float
    idle_mib: float
    nodes: int
    dollars_per_hour: float

    @property
    def is_complete(self) -> bool:
        return self.ready >= self.pods


class OperatorEnded(Exception):
    """The operator ended by itself, so that there is nothing to measure."""


def command_of(operator: str, environ: Mapping[str, str], ours: str = "") -> list[str]:
    """Return how an operator is started; `ours` is a command in the place of Karpy's."""
    if operator == KARPENTER:
        return [str(find_program(require_programs(environ, PEER), "karpenter", PEER))]
    return shlex.split(ours) or [sys.executable, "-m", "karpy", "run"]


def measure(
    scenario: Scenario,
    operator: str,
    argv: Sequence[str],
    programs: Path,
    *,
    seconds_max: float,
    home: Path | None = None,
) -> Run:
    """Measure an operator on a control plane of its own; with a home, its logs are kept there."""
    with ControlPlane(programs, home) as plane:
        prepare(plane)
        with Operator(plane, argv, name=operator.lower()) as process:
            return asyncio.run(_scale_out(plane, process, scenario, operator, seconds_max))


def prepare(plane: ControlPlane, *objects: JsonObject) -> None:
    """Install the CRDs, and what operators need to work with."""
    plane.kubectl("apply", "--server-side", "-f", str(CRDS))
    plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    plane.kubectl("create", "namespace", NAMESPACE)
    for each in objects or (NODE_CLASS, NODE_POOL):
        plane.kubectl("apply", "-f", "-", stdin=json.dumps(each))


def price_of(node: JsonObject) -> float:
    """Return what a node of KWOK's costs, in dollars per hour."""
    labels = node["metadata"]["labels"]
    return _PRICES[labels[_TYPE_LABEL], labels[_CAPACITY_LABEL]] / MICROS_PER_DOLLAR


_PRICES: Final = {
    (type_.name, offering.capacity_type): offering.price
    for type_ in kwok_catalog().types
    for offering in type_.offerings
}


async def _scale_out(
    plane: ControlPlane, process: Operator, scenario: Scenario, operator: str, seconds_max: float
) -> Run:
    deployments = scenario.deployments
    wanted = sum(each["spec"]["replicas"] for each in deployments)
    async with Connection(find_access(kubeconfig=str(plane.kubeconfig)), rate=None) as connection:
        objects = connection.objects
        await asyncio.sleep(_SECONDS_TO_SETTLE)
        idle, began = usage_of(process.pid), time.monotonic()
        await asyncio.gather(*(objects.create(DEPLOYMENT, each) for each in deployments))
        ready, first_claim, half, seconds = 0, None, None, 0.0
        while ready < wanted and seconds < seconds_max:
            await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)
            ready = await _ready(objects)
            seconds = time.monotonic() - began
            if first_claim is None and (await objects.list(NODE_CLAIM, limit=1)).items:
                first_claim = round(seconds, 2)
            if half is None and 2 * ready >= wanted:
                half = round(seconds, 2)
        used = usage_of(process.pid)
        if not process.is_running:
            raise OperatorEnded(process.log.read_text()[-2000:])
        nodes = (await objects.list(NODE, Query(labels=_POOL_LABEL))).items
    return Run(
        operator,
        scenario.name,
        pods=wanted,
        ready=ready,
        seconds=round(seconds, 2),
        first_claim_s=first_claim,
        half_s=half,
        cpu_s=round(used.cpu_s - idle.cpu_s, 2),
        peak_mib=round(used.peak_mib, 1),
        idle_mib=round(idle.peak_mib, 1),
        nodes=len(nodes),
        dollars_per_hour=round(sum(map(price_of, nodes)), 3),
    )


async def _ready(objects: Objects) -> int:
    found = (await objects.list(DEPLOYMENT)).items
    return sum(each["status"].get("readyReplicas", 0) for each in found)


def read_runs(path: Path) -> list[Run]:
    """Read runs that were written down."""
    return [msgspec.json.decode(line, type=Run) for line in path.read_text().splitlines()]
