"""Every query of every dashboard and alert asks for metrics that a running operator exports."""

import asyncio
import json
import re
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest
from aiohttp import ClientError, ClientSession
from prometheus_client.parser import text_string_to_metric_families

from karpy.adapters.telemetry.specs import MetricSpec, MetricType, metric_specs
from karpy.codec.catalogs import kwok_catalog
from karpy.codec.fields import JsonObject
from karpy.model.kinds import DISRUPTION_BUDGET, NODE_CLAIM, NODE_POOL, POD
from karpy.model.labels import NODE_POOL as NODE_POOL_LABEL
from karpy.wiring.clouds.aws import METRICS as AWS_METRICS
from tests.scenarios.manifests import budget, pod_spec, pool
from tests.tidy.monitoring.alerts import ALERTS
from tests.tidy.monitoring.alerts import FILES as ALERT_FILES
from tests.tidy.monitoring.dashboards import DASHBOARDS, FOLDER
from tests.tidy.monitoring.dashboards import FILES as DASHBOARD_FILES
from tests.tidy.monitoring.promql import clause_labels, metrics_of
from tests.tidy.repository import shown
from tests.wiring.test_process import is_running, process, until

NODE_CLASS: Final = "karpenter.kwok.sh/kwoknodeclass"
SPECS: Final = {
    each.name: each
    for each in (*metric_specs(kwok_catalog().well_known, [NODE_CLASS]), *AWS_METRICS)
}
QUERIES: Final = [
    *(query.expr for dashboard in DASHBOARDS for query in dashboard.queries),
    *(alert.expr for alert in ALERTS),
]
ASKED: Final = [each for expr in QUERIES for each in metrics_of(expr)]
OF_TARGET: Final = frozenset({"instance", "pod", "namespace", "job"})
"""Labels that Prometheus puts on every series of a target."""
SUFFIXES: Final = ("_bucket", "_sum", "_count")
EVENTS: Final = frozenset({MetricType.COUNTER, MetricType.HISTOGRAM, MetricType.SUMMARY})
"""Metrics that have a series once what they count has happened."""
PATIENCE: Final = 120
"""Seconds; a pass over all nodes is made every ten."""
MOMENTARY: Final = frozenset({"karpenter_pods_provisioning_scheduling_undecided_time_seconds"})
"""Gauges with a series for a fraction of a second, unless something is wrong."""
ALWAYS_MEASURED: Final = frozenset({"process_resident_memory_bytes", "process_cpu_seconds_total"})
LEGEND: Final = re.compile(r"\{\{(\w+)\}\}")


def spec_of(name: str) -> MetricSpec | None:
    """Return the metric that a series is of."""
    if name in SPECS:
        return SPECS[name]
    for suffix in SUFFIXES:
        if name.endswith(suffix) and name.removesuffix(suffix) in SPECS:
            return SPECS[name.removesuffix(suffix)]
    return None


def labels_of(name: str) -> set[str]:
    """Return the labels that a series may have."""
    spec = spec_of(name)
    assert spec is not None, f"{name} is no metric"
    more = {"le"} if name.endswith("_bucket") else set()
    return {*spec.labels, *more, *({"quantile"} if spec.type is MetricType.SUMMARY else ())}


@pytest.mark.parametrize("path", [*DASHBOARD_FILES, *ALERT_FILES], ids=shown)
def test_a_file_is_up_to_date(path: Path) -> None:
    text = path.read_text(encoding="utf-8") if path.exists() else ""

    assert text == {**DASHBOARD_FILES, **ALERT_FILES}[path](), "run `make fix` and commit the file"


def test_there_is_no_dashboard_that_is_gone() -> None:
    assert set(FOLDER.glob("*")) == set(DASHBOARD_FILES), "delete the file"


def test_panels_do_not_lie_on_each_other() -> None:
    for path in DASHBOARD_FILES:
        panels = json.loads(path.read_text(encoding="utf-8"))["panels"]
        cells = [
            (column, line)
            for each in (panel["gridPos"] for panel in panels)
            for column in range(each["x"], each["x"] + each["w"])
            for line in range(each["y"], each["y"] + each["h"])
        ]
        assert len(cells) == len({*cells})
        assert {column for column, _ in cells} == set(range(24))


@pytest.mark.parametrize("expr", QUERIES)
def test_a_query_asks_for_metrics_and_labels_that_there_are(expr: str) -> None:
    asked = [each for each in metrics_of(expr) if each.metric not in ALWAYS_MEASURED]

    unknown = [each.metric for each in asked if spec_of(each.metric) is None]
    assert (bool(asked), unknown) == (True, [])
    wrong = [each for each in asked if each.labels - labels_of(each.metric) - OF_TARGET]
    assert wrong == []
    by = {*clause_labels(expr)} - OF_TARGET
    replaced = set(re.findall(r'label_replace\(.*?, "(\w+)", "\$', expr))
    assert by <= {label for each in asked for label in labels_of(each.metric)} | replaced


def test_a_legend_names_labels_that_are_left() -> None:
    lost = [
        (query.expr, query.legend)
        for dashboard in DASHBOARDS
        for query in dashboard.queries
        for label in LEGEND.findall(query.legend)
        if label not in {*clause_labels(query.expr)} and " by (" in query.expr
    ]

    assert lost == []


async def test_a_running_operator_tells_what_is_asked_for(tmp_path: Path) -> None:
    scraped = await scrape_of_an_operator(tmp_path)

    assert still_missing(scraped) == []
    strange = {
        f"{each.metric}: {sorted(each.labels)}"
        for each in ASKED
        if each.metric in scraped and each.labels - scraped[each.metric] - OF_TARGET
    }
    assert strange == set()
    assert len({each.metric for each in ASKED} & set(scraped)) > 40


def still_missing(told: Mapping[str, set[str]]) -> list[str]:
    """Return the metrics that queries need and the operator does not export."""
    return sorted(
        {
            each.metric
            for each in ASKED
            if each.metric not in told and not _may_be_silent(each.metric)
        }
    )


def _may_be_silent(name: str) -> bool:
    """Say whether a metric has no series in a cluster without trouble, or on this cloud."""
    spec = spec_of(name)
    if name in MOMENTARY:
        return True
    return spec is not None and (spec.type in EVENTS or spec in AWS_METRICS)


async def scrape_of_an_operator(tmp_path: Path) -> Mapping[str, set[str]]:
    """
    Return the labels of each series that an operator tells.

    A pod fits nowhere, a node is empty, and one is drained whose pod a PodDisruptionBudget holds.
    """
    port, told = _free_port(), dict[str, set[str]]()
    flags = (f"--metrics-port={port}", "--leader-election-namespace=default")
    async with process(tmp_path, *flags) as world:
        looking = asyncio.create_task(scrape(f"http://127.0.0.1:{port}/metrics", told))
        world.store.create(NODE_POOL, pool("bank", limits={"cpu": "100"}))
        world.store.create(NODE_POOL, pool("loft", disruption={"consolidateAfter": "0s"}))
        world.store.create(DISRUPTION_BUDGET, budget("held", maxUnavailable=0))
        for name, place, cpu in (
            ("held", "bank", "1"),
            ("brief", "loft", "1"),
            ("vast", "bank", "9000"),
        ):
            world.store.create(POD, _pod(name, place, cpu))
        await until(lambda: is_running(world, "held") and is_running(world, "brief"))
        await until(lambda: "karpenter_nodes_total_pod_requests" in told)
        world.store.delete(POD, "brief", namespace="default")
        held = [
            each
            for each in world.store.list(NODE_CLAIM)
            if each["metadata"]["labels"][NODE_POOL_LABEL] == "bank"
        ]
        world.store.delete(NODE_CLAIM, held[0]["metadata"]["name"])
        for _ in range(PATIENCE):
            if not still_missing(told):
                break
            await asyncio.sleep(1)
        looking.cancel()
    return told


def _pod(name: str, place: str, cpu: str) -> JsonObject:
    meta = {"name": name, "namespace": "default", "labels": {"app": name}}
    return {"metadata": meta, "spec": {**pod_spec(cpu), "nodeSelector": {NODE_POOL_LABEL: place}}}


async def scrape(url: str, told: dict[str, set[str]]) -> None:
    """Collect the metrics of an operator repeatedly: some series exist for a moment only."""
    async with ClientSession() as session:
        while True:
            with suppress(ClientError):
                answer = await session.get(url)
                gather(await answer.text(), told)
            await asyncio.sleep(0.3)


def gather(text: str, told: dict[str, set[str]]) -> None:
    """Add the labels of each series that there is."""
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            told.setdefault(sample.name, set()).update(sample.labels)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
