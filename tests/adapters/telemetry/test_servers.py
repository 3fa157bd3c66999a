import asyncio
import gzip
from collections.abc import Callable
from functools import partial
from threading import current_thread

import pytest
from aiohttp import ClientConnectorError, ClientSession
from prometheus_client.parser import text_string_to_metric_families

from karpy.adapters.telemetry.health import Check, health_application
from karpy.adapters.telemetry.metrics import GaugeValues, Metrics
from karpy.adapters.telemetry.servers import HttpServer, metrics_application, profiling_application
from karpy.core.lifecycle.changes import Count
from karpy.errors import OptionInvalid


async def _get(site: HttpServer, path: str, host: str = "localhost") -> tuple[int, str]:
    async with ClientSession() as session, session.get(_url(site, path, host)) as response:
        return response.status, await response.text()


def _url(site: HttpServer, path: str, host: str = "localhost") -> str:
    return f"http://{host}:{site.port}{path}"


async def test_prometheus_can_scrape() -> None:
    metrics = Metrics()
    metrics.announce(version="1")
    metrics.count(Count("nodes_created_total", {"nodepool": "a", "zone": "b"}))

    async with (
        HttpServer(metrics_application(metrics), 0, flag="--metrics-port") as site,
        ClientSession() as session,
        session.get(_url(site, "/metrics")) as response,
    ):
        text, kind = await response.text(), response.headers["Content-Type"]

    families = {each.name: each for each in text_string_to_metric_families(text)}
    assert kind == "text/plain; version=0.0.4; charset=utf-8"
    assert families["karpenter_nodes_created"].samples[0].value == 1.0
    assert families["karpenter_build_info"].type == "gauge"


async def test_gauges_can_be_worked_out_for_each_scrape() -> None:
    metrics, values = Metrics(), iter([1.0, 2.0])
    threads = []

    def count() -> Callable[[], GaugeValues]:
        threads.append(current_thread())
        return partial(work_out, next(values))

    def work_out(value: float) -> GaugeValues:
        threads.append(current_thread())
        return {"cluster_state_node_count": {(): value}}

    metrics.add_source(count)
    async with HttpServer(metrics_application(metrics), 0, flag="-") as site:
        texts = [(await _get(site, "/metrics"))[1], (await _get(site, "/metrics"))[1]]

    assert "karpenter_cluster_state_node_count 1.0" in texts[0]
    assert "karpenter_cluster_state_node_count 2.0" in texts[1]
    assert [each is current_thread() for each in threads] == [True, False, True, False]


async def test_a_scrape_is_compressed_for_clients_that_accept_it() -> None:
    async with (
        HttpServer(metrics_application(Metrics()), 0, flag="--metrics-port") as site,
        ClientSession(auto_decompress=False, headers={"Accept-Encoding": "gzip"}) as session,
        session.get(_url(site, "/metrics")) as response,
    ):
        body = await response.read()

    assert b"process_cpu_seconds_total" in gzip.decompress(body)


async def test_a_port_that_is_taken_is_an_error_of_its_flag() -> None:
    async with HttpServer(metrics_application(Metrics()), 0, flag="--metrics-port") as first:
        second = HttpServer(metrics_application(Metrics()), first.port, flag="--metrics-port")

        with pytest.raises(OptionInvalid, match=f"`--metrics-port` is {first.port}, where we"):
            await second.__aenter__()


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/healthz", (200, "ok")),
        ("/healthz/ping", (200, "ok")),
        (
            "/readyz",
            (500, "[+]manager ok\n[-]crd failed: no NodePool\n[+]readyz ok\nreadyz check failed\n"),
        ),
        ("/readyz/manager", (200, "ok")),
        ("/readyz/crd", (500, "no NodePool")),
        ("/readyz/x", (404, "use one of: manager, crd, readyz\n")),
    ],
)
async def test_a_failed_readiness_check_says_why(path: str, expected: tuple[int, str]) -> None:
    checks: dict[str, Check] = {"manager": lambda: "", "crd": lambda: "no NodePool"}

    async with HttpServer(health_application(checks), 0, flag="--health-probe-port") as site:
        answer = await _get(site, path)

    assert answer == expected


async def test_readiness_is_asked_anew_each_time() -> None:
    problems = iter(["not yet", ""])

    async with HttpServer(health_application({"a": lambda: next(problems)}), 0, flag="-") as site:
        answers = [(await _get(site, "/readyz"))[0], (await _get(site, "/readyz"))[0]]

    assert answers == [500, 200]


async def test_a_probe_may_ask_for_more() -> None:
    async with HttpServer(health_application({"a": lambda: ""}), 0, flag="-") as site:
        answer = await _get(site, "/readyz?verbose")

    assert answer == (200, "[+]a ok\n[+]readyz ok\nreadyz check passed\n")


async def test_what_has_one_address_is_served_on_no_other() -> None:
    application = metrics_application(Metrics())

    async with HttpServer(application, 0, flag="-", host="127.0.0.2") as site:
        with pytest.raises(ClientConnectorError):
            await _get(site, "/metrics", "127.0.0.1")
        status, _ = await _get(site, "/metrics", "127.0.0.2")

    assert status == 200


async def test_an_address_that_this_machine_does_not_have_is_an_error_of_its_flag() -> None:
    site = HttpServer(metrics_application(Metrics()), 0, flag="--metrics-port", host="192.0.2.1")

    with pytest.raises(OptionInvalid, match=r"`--bind-address` is 192\.0\.2\.1, where we"):
        await site.__aenter__()


async def test_profiles_are_texts() -> None:
    async with HttpServer(profiling_application(), 0, flag="-") as site:
        index = await _get(site, "/debug/pprof/")
        profile = await _get(site, "/debug/pprof/profile?seconds=0.01")
        stacks = await _get(site, "/debug/pprof/goroutine")

    assert (index[0], profile[0], stacks[0]) == (200, 200, 200)
    assert "function calls" in profile[1]
    assert "test_profiles_are_texts" in stacks[1]


async def test_a_second_profile_waits_for_the_first() -> None:
    path = "/debug/pprof/profile?seconds=1"

    async with HttpServer(profiling_application(), 0, flag="-") as site:
        answers = await asyncio.gather(_get(site, path), _get(site, path))

    assert sorted(status for status, _ in answers) == [200, 409]


async def test_metrics_come_without_profiles() -> None:
    async with HttpServer(metrics_application(Metrics()), 0, flag="-") as site:
        assert (await _get(site, "/debug/pprof/"))[0] == 404
