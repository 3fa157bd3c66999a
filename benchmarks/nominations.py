"""
What nominations save: prices of clusters whose pods are nominated, or left to kube-scheduler.

    python -m benchmarks.nominations               all workloads; rewrites docs/benchmarks.md
    python -m benchmarks.nominations basic-5000 --limits 300   one of them, with another limit

The whole operator runs on virtual time in an embedded cluster, whose scheduler scores nodes as
kube-scheduler does. Prints a table in Markdown; writes it if all workloads were measured as usual.
"""

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import Final
from unittest.mock import patch

from msgspec import Struct
from msgspec.structs import astuple

from benchmarks.measuring import tell
from benchmarks.peer.scenarios import NODE_CLASS, basic, deployment, mix
from benchmarks.peer.scenarios import NODE_POOL as BESIDE
from benchmarks.report import table
from benchmarks.sections import with_section
from karpy.adapters.clouds.kwok.provider import KwokProvider
from karpy.adapters.kube.connection import RATE
from karpy.adapters.kube.retry import TokenBucket
from karpy.bench.draws import Draws
from karpy.codec.catalogs import kwok_catalog
from karpy.codec.fields import JsonObject
from karpy.core import nominations
from karpy.core.lifecycle.changes import Count, Remark
from karpy.core.nominations import NOMINATED_MAX
from karpy.model.commands import DisruptionVerdict
from karpy.model.instances import MICROS_PER_DOLLAR
from karpy.model.kinds import DEPLOYMENT, KWOK_NODE_CLASS, NODE, NODE_POOL, POD, Kind
from karpy.model.labels import CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, ZONE
from karpy.model.notices import Notice
from karpy.model.settings import Options, PodNomination
from karpy.model.snapshot import NodeQuestion, PoolQuestion, Snapshot
from karpy.model.verdicts import PoolVerdict, Verdict
from karpy.ports.objects import Patch
from karpy.sim.kubelets.timing import KubeletTiming
from karpy.sim.loop import run
from karpy.sim.objects import EmbeddedObjects
from karpy.sim.store.conditions import is_true
from karpy.sim.world import World, WorldSettings
from karpy.wiring.operator import KarpyOperator
from karpy.wiring.surface import Surface

PAGE: Final = Path("docs/benchmarks.md")
TITLE: Final = "## Nominations"
_NOTE: Final = """\
`--nominate-pods` measured with the whole operator on virtual time, whose scheduler scores nodes as
kube-scheduler does; means of three seeds. Deployments appear at once, nothing is consolidated. The
price is that of all nodes once every pod is ready; pods that nodes were launched for more than once
have lost the place that was made for them. On KWOK a node is there at once; machines boot within
24 to 36 seconds. A client nominates 200 pods per second.

`shop` are 24 services in powers of two and a batch, `data` stores with much memory spread over
zones or hosts, `ci` very many small pods and a few huge ones, 500 to 850 pods each; `basic` and
`mix` are those of the section above; `shop x 6` has six times the replicas of `shop`. Four
workloads have more pods than the 3,000 that are nominated at most. A limit of 2,000 saves a third
less of `basic-5000` and as much of the other three; a limit of 10,000 saves no more of any, and the
last pods are ready ten to thirteen seconds later. `data` on KWOK is dearer with nominations:
kube-scheduler tries equal pods in another order than they were placed in, and a pod that a spread
keeps from its node takes the room of another pod.

```console
$ python -m benchmarks.nominations
```"""
_TITLES: Final = (
    *("workload", "nodes are", "`--nominate-pods`", "$/h", "difference"),
    *("nodes", "pods launched for again", "all ready after"),
)
LIMITS: Final = (1000, 2000, 10_000)
SEEDS: Final = 3
_SECONDS_MAX: Final = 1800
_SETTLING_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 0.5
_PATCH_SECONDS: Final = 0.01
"""What an API server takes to nominate one pod."""
_KWOK: Final = WorldSettings(timing=KubeletTiming(ready_seconds=0), has_events=False)
_MACHINES: Final = WorldSettings(timing=KubeletTiming(jitter_percent=20), has_events=False)


class Outcome(Struct, frozen=True):
    """How one run ended, once every pod was running."""

    dollars: float
    nodes: float
    again: float
    """Pods that nodes were launched for more than once."""
    seconds: float


class Way(Struct, frozen=True):
    """Whether pods are nominated, and at most how many."""

    name: str
    which: PodNomination = PodNomination.ALWAYS
    limit: int = NOMINATED_MAX


_WAYS: Final = {each.name: each for each in (Way("Never", PodNomination.NEVER), Way("Always"))}
"""What users can choose."""


def shop(seed: int) -> list[JsonObject]:
    """Make services in sizes that are powers of two, and a batch of one size beside them."""
    draws = Draws("shop", seed)
    made = []
    for number in range(24):
        cpu = 125 << draws.weighted(((0, 3), (1, 5), (2, 6), (3, 4), (4, 2), (5, 1)))
        memory = cpu * draws.pick((1, 2, 4, 8)) * 1024 // 1000
        name, rules = f"shop-{number:02}", None
        if draws.happens(30):
            rules = _spread(name, ZONE)
        made.append(
            deployment(name, draws.between(4, 48), cpu_milli=cpu, memory_mib=memory, rules=rules)
        )
    return [*made, deployment("batch", 200, cpu_milli=1000, memory_mib=1024)]


def data(seed: int) -> list[JsonObject]:
    """Make a data platform: stores with much memory, over zones or hosts, and small pods."""
    draws = Draws("data", seed)
    made = []
    for number in range(16):
        cpu = draws.pick((500, 1000, 2000, 4000, 7000))
        memory = cpu * draws.pick((6, 7, 8, 10))
        name = f"store-{number:02}"
        rules = draws.weighted(((None, 3), (_spread(name, ZONE), 5), (_apart(name), 2)))
        replicas = draws.between(3, 9) if draws.happens(50) else draws.between(10, 40)
        made.append(deployment(name, replicas, cpu_milli=cpu, memory_mib=memory, rules=rules))
    for number in range(6):
        cpu, memory = draws.pick((100, 250, 500)), draws.pick((256, 1500, 3000))
        made.append(
            deployment(f"tool-{number}", draws.between(30, 90), cpu_milli=cpu, memory_mib=memory)
        )
    return made


def ci(seed: int) -> list[JsonObject]:
    """Make a CI farm: very many small pods, some of middling size, and a few huge ones."""
    draws = Draws("ci", seed)
    lint, unit, build, image = (
        draws.between(*each) for each in ((350, 500), (120, 200), (40, 80), (6, 14))
    )
    return [
        deployment("lint", lint, cpu_milli=400, memory_mib=900),
        deployment("unit", unit, cpu_milli=1800, memory_mib=draws.pick((2500, 5000))),
        deployment("build", build, cpu_milli=3500, memory_mib=draws.pick((6000, 13000))),
        deployment("image", image, cpu_milli=14500, memory_mib=26000),
    ]


def scaled(deployments: Iterable[JsonObject], factor: int) -> list[JsonObject]:
    """Make every deployment of a workload some times as large."""
    return [
        {**each, "spec": {**each["spec"], "replicas": factor * each["spec"]["replicas"]}}
        for each in deployments
    ]


def _spread(name: str, key: str) -> JsonObject:
    return {
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": key,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": name}},
            }
        ]
    }


def _apart(name: str) -> JsonObject:
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": name}}}
    rule = "requiredDuringSchedulingIgnoredDuringExecution"
    return {"affinity": {"podAntiAffinity": {rule: [term]}}}


WORKLOADS: Final[dict[str, Callable[[int], list[JsonObject]]]] = {
    "shop": shop,
    "data": data,
    "ci": ci,
    "basic-1000": lambda _: basic(1000),
    "mix-1000": lambda _: mix(1000),
    "basic-60": lambda _: basic(60),
    "basic-5000": lambda _: basic(5000),
    "shop x 6": lambda seed: scaled(shop(seed), 6),
    "data x 8": lambda seed: scaled(data(seed), 8),
    "ci x 8": lambda seed: scaled(ci(seed), 8),
}


class Paced(EmbeddedObjects):
    """An API server as a client with the usual limit of requests meets it."""

    def __init__(self, world: World) -> None:
        super().__init__(world.store)
        self._pace = TokenBucket(RATE.qps, RATE.burst)

    async def patch(
        self,
        kind: Kind,
        name: str,
        patch: Patch,
        *,
        namespace: str = "",
        subresource: str = "",
        dry_run: bool = False,
    ) -> JsonObject:
        """Change an object, in turn."""
        await self._pace.take()
        await asyncio.sleep(_PATCH_SECONDS)
        return await super().patch(
            kind, name, patch, namespace=namespace, subresource=subresource, dry_run=dry_run
        )


class Ledger:
    """Hears of everything; remembers how often nodes were launched for each pod."""

    def __init__(self) -> None:
        self.launches = Counter[str]()
        self.failures: list[BaseException] = []

    def record(self, snapshot: Snapshot, verdict: Verdict) -> None:
        """Count the pods of launches."""
        del snapshot
        for launch in verdict.launches:
            self.launches.update(launch.pods)

    def record_disruption(self, question: NodeQuestion, verdict: DisruptionVerdict) -> None:
        """Leave it."""

    def record_pool(self, question: PoolQuestion, verdict: PoolVerdict) -> None:
        """Leave it."""

    def emit(self, notice: Notice) -> None:
        """Leave it."""

    def count(self, count: Count) -> None:
        """Leave it."""

    def remark(self, remark: Remark) -> None:
        """Leave it."""

    def fail(self, controller: str, key: str, error: BaseException) -> None:
        """Keep what went wrong."""
        del controller, key
        self.failures.append(error)


class Run:
    """One workload in one cluster, until every pod runs."""

    def __init__(self, deployments: Sequence[JsonObject], seed: int, *, has_machines: bool) -> None:
        self._deployments = deployments
        self._wanted = sum(each["spec"]["replicas"] for each in deployments)
        self._world = World(_MACHINES if has_machines else _KWOK, seed=seed)
        self._kwok = None if has_machines else self._make_kwok()
        self._ledger = Ledger()

    async def live(self, which: PodNomination) -> Outcome:
        """Have the operator work; return what came of it."""
        world, kwok = self._world, self._kwok
        operator = self._operator(which)
        world.start()
        if kwok is not None:
            kwok.start()
        task = asyncio.create_task(operator.run())
        try:
            return await self._until_running(task)
        finally:
            task.cancel()
            await asyncio.wait((task,))
            if kwok is not None:
                await kwok.close()
            world.stop()

    async def _until_running(self, task: asyncio.Task[None]) -> Outcome:
        store, now = self._world.store, asyncio.get_running_loop().time
        store.create(KWOK_NODE_CLASS, NODE_CLASS)
        store.create(NODE_POOL, _pool())
        await asyncio.sleep(_SETTLING_SECONDS)
        began = now()
        for each in self._deployments:
            store.create(DEPLOYMENT, each)
        while sum(is_true(each, "Ready") for each in store.list(POD)) < self._wanted:
            if now() > began + _SECONDS_MAX or task.done() or self._ledger.failures:
                raise RuntimeError(f"pods wait: {self._ledger.failures}")
            await asyncio.sleep(_LOOK_SECONDS)
        nodes = store.list(NODE)
        again = sum(count > 1 for count in self._ledger.launches.values())
        return Outcome(_price(nodes), len(nodes), again, now() - began)

    def _operator(self, which: PodNomination) -> KarpyOperator:
        world, ledger = self._world, self._ledger
        surface = Surface(
            objects=world.objects,
            feed=world.objects,
            clock=world.clock,
            cloud=self._kwok or world.cloud,
            nominations=Paced(world),
        )
        options = Options(nominate_pods=which)
        return KarpyOperator(surface, options, notices=ledger, voice=ledger, journal=ledger)

    def _make_kwok(self) -> KwokProvider:
        world = self._world
        return KwokProvider(world.objects, world.clock, kwok_catalog())


def _pool() -> JsonObject:
    return {**BESIDE, "spec": {**BESIDE["spec"], "disruption": {"consolidateAfter": "Never"}}}


def _price(nodes: Sequence[JsonObject]) -> float:
    prices = {
        (each.name, offering.zone, offering.capacity_type): offering.price
        for each in kwok_catalog().types
        for offering in each.offerings
    }
    labels = [each["metadata"]["labels"] for each in nodes]
    total = sum(prices[each[INSTANCE_TYPE], each[ZONE], each[CAPACITY_TYPE]] for each in labels)
    return total / MICROS_PER_DOLLAR


def _measure(name: str, way: Way, seeds: int, *, has_machines: bool) -> Outcome:
    """Run a workload with several seeds; return the mean."""
    with patch.object(nominations, "NOMINATED_MAX", way.limit):
        outcomes = [
            run(Run(WORKLOADS[name](seed), seed, has_machines=has_machines).live(way.which))
            for seed in range(seeds)
        ]
    return Outcome(*(mean(column) for column in zip(*map(astuple, outcomes), strict=True)))


def _rows(name: str, ways: Sequence[Way], seeds: int) -> Iterator[list[str]]:
    pods = sum(each["spec"]["replicas"] for each in WORKLOADS[name](0))
    is_large = pods > NOMINATED_MAX
    # A limit above the number of pods is none.
    for has_machines in (False,) if is_large else (False, True):
        tell(f"  {name} {'with machines' if has_machines else 'on KWOK'} ...")
        first: float | None = None
        for way in ways if is_large else _WAYS.values():
            found = _measure(name, way, seeds, has_machines=has_machines)
            first = found.dollars if first is None else first
            yield [
                f"`{name}`",
                "machines" if has_machines else "KWOK",
                way.name,
                f"{found.dollars:.2f}",
                f"{found.dollars / first - 1:+.1%}",
                f"{found.nodes:.1f}",
                f"{found.again:.1f}",
                f"{found.seconds:.1f} s",
            ]


def main() -> int:
    """Measure what the command line asks for."""
    asked = _parse()
    ways = [*_WAYS.values(), *(Way(f"{each:,} at most", limit=each) for each in asked.limits)]
    rows = [row for name in asked.names or WORKLOADS for row in _rows(name, ways, asked.seeds)]
    text = table(_TITLES, rows)
    print(text)
    if not asked.names and asked.seeds == SEEDS:
        section = f"{TITLE}\n\n{_NOTE}\n\n{text}"
        PAGE.write_text(with_section(PAGE.read_text(), section))
        tell(f"wrote {PAGE}")
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.nominations",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", help=f"of {', '.join(WORKLOADS)}; all by default")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--limits", type=int, nargs="*", default=LIMITS, metavar="PODS")
    asked = parser.parse_args()
    if unknown := {*asked.names} - {*WORKLOADS}:
        parser.error(f"no such workload: {', '.join(sorted(unknown))}")
    return asked


if __name__ == "__main__":
    sys.exit(main())
