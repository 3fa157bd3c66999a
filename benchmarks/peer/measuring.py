"""Measure an operator that scales a cluster out and in."""

import asyncio
import json
import shlex
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from benchmarks.peer.scenarios import NODE_CLASS, NODE_POOL, Scenario
from benchmarks.peer.usage import Usage, usage_of
from karpy.adapters.controlplane.bundles import PEER
from karpy.adapters.controlplane.operators import NAMESPACE, OperatorProcess
from karpy.adapters.controlplane.plane import ControlPlane
from karpy.adapters.controlplane.programs import find_program, require_programs
from karpy.adapters.kube.connection import Connection, find_access
from karpy.codec.catalogs import kwok_catalog
from karpy.codec.fields import JsonObject
from karpy.model.instances import MICROS_PER_DOLLAR
from karpy.model.kinds import DEPLOYMENT, NODE, NODE_CLAIM
from karpy.ports.objects import Objects, Patch, PatchType, Query

KARPENTER: Final = "Karpenter"
KARPY: Final = "Karpy"
CRDS: Final = Path("deploy/crds")
_SECONDS_TO_SETTLE: Final = 10.0
_SECONDS_BETWEEN_LOOKS: Final = 0.25
_SECONDS_WITHOUT_CHANGE: Final = 90.0
"""A scale-in is over when the nodes are unchanged for this time."""
_POOL_LABEL: Final = "karpenter.sh/nodepool"
_TYPE_LABEL: Final = "node.kubernetes.io/instance-type"
_CAPACITY_LABEL: Final = "karpenter.sh/capacity-type"


class ScaleIn(Struct, frozen=True):
    """The result of one operator after the Deployments were scaled in."""

    pods: int
    ready: int
    seconds: float
    """From the scale-in until the last change of the nodes, or until the timeout."""
    cpu_s: float
    """Until the end of the quiet time after the last change of the nodes."""
    nodes: int
    dollars_per_hour: float
    removed: int
    """How many nodes were removed."""
    replacements: int
    """How many nodes were added."""
    is_settled: bool
    """Whether the nodes stopped changing before the timeout."""

    @property
    def is_complete(self) -> bool:
        return self.is_settled and self.ready >= self.pods


class Run(Struct, frozen=True):
    """The result of one operator on one scenario."""

    operator: str
    scenario: str
    pods: int
    ready: int
    """How many pods ran in the end; fewer than exist after a timeout."""
    seconds: float
    """From the first pod until all run, or until the timeout."""
    first_claim_s: float | None
    half_s: float | None
    """Seconds until half of the pods ran."""
    cpu_s: float
    peak_mib: float
    idle_mib: float
    nodes: int
    dollars_per_hour: float
    scale_in: ScaleIn | None = None
    """The scale-in, if the scenario has one."""

    @property
    def is_complete(self) -> bool:
        return self.ready >= self.pods


class OperatorEnded(Exception):
    """The process of the operator ended during the measurement."""


def command_of(operator: str, environ: Mapping[str, str], ours: str = "") -> list[str]:
    """Return the command that starts an operator; `ours` replaces the command of Karpy."""
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
    """Measure an operator on a control plane of its own; `home` keeps its logs."""
    with ControlPlane(programs, home) as plane:
        prepare(plane)
        with OperatorProcess(plane, argv, name=operator.lower()) as process:
            return asyncio.run(_measure(plane, process, scenario, operator, seconds_max))


def prepare(plane: ControlPlane, *objects: JsonObject) -> None:
    """Install the CRDs and the objects that operators need."""
    plane.kubectl("apply", "--server-side", "-f", str(CRDS))
    plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    plane.kubectl("create", "namespace", NAMESPACE)
    for each in objects or (NODE_CLASS, NODE_POOL):
        plane.kubectl("apply", "-f", "-", stdin=json.dumps(each))


def price_of(node: JsonObject) -> float:
    """Return the price of a KWOK node in dollars per hour."""
    labels = node["metadata"]["labels"]
    return _PRICES[labels[_TYPE_LABEL], labels[_CAPACITY_LABEL]] / MICROS_PER_DOLLAR


_PRICES: Final = {
    (type_.name, offering.capacity_type): offering.price
    for type_ in kwok_catalog().types
    for offering in type_.offerings
}


async def _measure(
    plane: ControlPlane,
    process: OperatorProcess,
    scenario: Scenario,
    operator: str,
    seconds_max: float,
) -> Run:
    async with Connection(find_access(kubeconfig=str(plane.kubeconfig)), rate=None) as connection:
        await asyncio.sleep(_SECONDS_TO_SETTLE)
        run = await _scale_out(connection.objects, process, scenario, operator, seconds_max)
        if scenario.is_scaled_in and run.is_complete:
            done = await _scale_in(connection.objects, process, scenario, 2 * seconds_max)
            run = replace(run, scale_in=done)
        return run


async def _scale_out(
    objects: Objects,
    process: OperatorProcess,
    scenario: Scenario,
    operator: str,
    seconds_max: float,
) -> Run:
    deployments = scenario.deployments
    wanted = sum(each["spec"]["replicas"] for each in deployments)
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
    used = _usage(process)
    nodes = await _nodes(objects)
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
        dollars_per_hour=_price(nodes.values()),
    )


async def _scale_in(
    objects: Objects, process: OperatorProcess, scenario: Scenario, seconds_max: float
) -> ScaleIn:
    """Scale all Deployments in, and wait until the nodes stop changing."""
    left, before, used = scenario.replicas_left, await _nodes(objects), _usage(process)
    began = changed = now = time.monotonic()
    for name, replicas in left.items():
        fewer = Patch(PatchType.MERGE, {"spec": {"replicas": replicas}})
        await objects.patch(DEPLOYMENT, name, fewer, namespace="default")
    nodes, seen = before, {*before}
    while now - changed < _SECONDS_WITHOUT_CHANGE and now - began < seconds_max:
        await asyncio.sleep(4 * _SECONDS_BETWEEN_LOOKS)
        last, nodes, now = nodes, await _nodes(objects), time.monotonic()
        seen |= nodes.keys()
        is_draining = any("deletionTimestamp" in each["metadata"] for each in nodes.values())
        if nodes.keys() != last.keys() or is_draining:
            changed = now
    return ScaleIn(
        pods=sum(left.values()),
        ready=await _ready(objects),
        seconds=round(changed - began, 2),
        cpu_s=round(_usage(process).cpu_s - used.cpu_s, 2),
        nodes=len(nodes),
        dollars_per_hour=_price(nodes.values()),
        removed=len(seen - nodes.keys()),
        replacements=len(seen - before.keys()),
        is_settled=now - changed >= _SECONDS_WITHOUT_CHANGE,
    )


def _usage(process: OperatorProcess) -> Usage:
    """Return the usage of the operator so far; raise OperatorEnded if its process ended."""
    used = usage_of(process.pid)
    if not process.is_running:
        raise OperatorEnded(process.log.read_text()[-2000:])
    return used


async def _nodes(objects: Objects) -> dict[str, JsonObject]:
    """Return the nodes of NodePools, by name."""
    found = (await objects.list(NODE, Query(labels=_POOL_LABEL))).items
    return {each["metadata"]["name"]: each for each in found}


def _price(nodes: Iterable[JsonObject]) -> float:
    return round(sum(map(price_of, nodes)), 3)


async def _ready(objects: Objects) -> int:
    found = (await objects.list(DEPLOYMENT)).items
    return sum(each["status"].get("readyReplicas", 0) for each in found)


def read_runs(path: Path) -> list[Run]:
    """Read recorded runs."""
    return [msgspec.json.decode(line, type=Run) for line in path.read_text().splitlines()]
