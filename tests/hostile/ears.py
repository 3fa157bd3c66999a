"""An operator on the embedded cluster whose log and metrics are listened to."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from io import BytesIO
from typing import Any

from karpy.adapters.clouds.kwok.provider import KwokProvider
from karpy.adapters.telemetry.logs import LogStreams, Reporter, make_log
from karpy.adapters.telemetry.metrics import Metrics
from karpy.adapters.telemetry.specs import metric_specs
from karpy.codec.catalogs import kwok_catalog
from karpy.codec.fields import JsonObject
from karpy.model.kinds import KWOK_NODE_CLASS, NODE_POOL
from karpy.model.notices import Notice
from karpy.model.settings import Options
from karpy.sim.kubelets.timing import KubeletTiming
from karpy.sim.objects import EmbeddedObjects
from karpy.sim.world import World, WorldSettings
from karpy.wiring.instruments import class_label
from karpy.wiring.operator import KarpyOperator
from karpy.wiring.surface import Surface

KWOK = WorldSettings(timing=KubeletTiming(ready_seconds=0), has_events=False)
NODE_CLASS = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}


class Noon:
    """A clock that stands still, for stable log lines."""

    def now(self) -> datetime:
        return datetime(2026, 1, 1, 12, tzinfo=UTC)


class Telemetry:
    """Records the log, the metrics and the events of an operator."""

    def __init__(self) -> None:
        self._lines = BytesIO()
        specs = metric_specs(kwok_catalog().well_known, (class_label(KWOK_NODE_CLASS),))
        self.metrics = Metrics(specs)
        log = make_log(LogStreams([self._lines], []), Noon())
        self.voice = Reporter(self.metrics, log)
        self.notices: list[Notice] = []

    def emit(self, notice: Notice) -> None:
        self.notices.append(notice)

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._lines.getvalue().splitlines()]

    @property
    def failures(self) -> list[tuple[str, str, str]]:
        """Controller, object and last line of the stack trace of each logged failure."""
        return [
            (line["controller"], line["name"], line.get("stacktrace", "").splitlines()[-1:][0])
            for line in self.lines
            if line["message"] == "Reconciler error" and "stacktrace" in line
        ]

    def counted(self, metric: str, controller: str) -> float:
        """Return the value of a counter of a controller."""
        start = f'{metric}{{controller="{controller}"}} '
        lines = self.metrics.render().decode().splitlines()
        return sum(float(line.removeprefix(start)) for line in lines if line.startswith(start))


@asynccontextmanager
async def operated(
    telemetry: Telemetry, objects: type[EmbeddedObjects]
) -> AsyncIterator[tuple[World, KarpyOperator]]:
    """Run a cluster with a NodePool and an operator on an implementation of Objects."""
    world = World(KWOK)
    world.start()
    world.store.create(KWOK_NODE_CLASS, {"metadata": {"name": "default"}})
    world.store.create(NODE_POOL, pool())
    api = objects(world.store)
    cloud = KwokProvider(world.objects, world.clock, kwok_catalog())
    operator = KarpyOperator(
        Surface(api, api, world.clock, cloud),
        Options(),
        notices=telemetry,
        voice=telemetry.voice,
        metrics=telemetry.metrics,
    )
    cloud.start()
    task = asyncio.create_task(operator.run())
    try:
        yield world, operator
    finally:
        task.cancel()
        await asyncio.wait((task,))
        await cloud.close()
        world.stop()
    assert task.cancelled(), task.exception()


def pool() -> JsonObject:
    template = {"spec": {"requirements": [], "nodeClassRef": NODE_CLASS}}
    return {"metadata": {"name": "default"}, "spec": {"template": template}}


def pod(name: str, cpu: str = "1") -> JsonObject:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"containers": [container]},
    }
