"""The operator as a process: over HTTP, with its servers, its lease and its log."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from karpy.adapters.telemetry.health import health_application
from karpy.adapters.telemetry.servers import HttpServer
from karpy.codec.fields import JsonObject
from karpy.errors import FileUnreadable, OptionInvalid
from karpy.model.kinds import EVENTS_EVENT, KWOK_NODE_CLASS, LEASE, NODE, NODE_POOL, POD
from karpy.sim.kubelets.timing import KubeletTiming
from karpy.sim.world import World, WorldSettings
from karpy.wiring.clouds import registry
from karpy.wiring.embedded import embedded_world, serve
from karpy.wiring.operator import KarpyOperator
from karpy.wiring.options import read_options
from karpy.wiring.process import Crashed, run_process

NODE_CLASS = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
LEASE_NAME = "karpenter-leader-election"


@asynccontextmanager
async def process(tmp_path: Path, *flags: str) -> AsyncIterator[World]:
    """Have a served cluster with a NodePool, and an operator that works for it over HTTP."""
    settings = WorldSettings(timing=KubeletTiming(speed=50))
    async with embedded_world(settings) as world, serve(world) as served:
        world.store.create(KWOK_NODE_CLASS, {"metadata": {"name": "default"}})
        world.store.create(NODE_POOL, pool())
        words = (
            f"--kubeconfig={served.kubeconfig}",
            f"--log-output-paths={tmp_path / 'log'}",
            "--metrics-port=0",
            "--health-probe-port=0",
            "--batch-idle-duration=100ms",
            *flags,
        )
        end = asyncio.Event()
        task = asyncio.create_task(run_process(read_options(words, {}), {}, end))
        try:
            yield world
        finally:
            end.set()
            await task


def pool() -> JsonObject:
    template = {"spec": {"requirements": [], "nodeClassRef": NODE_CLASS}}
    return {"metadata": {"name": "default"}, "spec": {"template": template}}


def pod(name: str) -> JsonObject:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container]},
    }


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds, half a minute at most."""
    for _ in range(1500):
        if holds():
            return
        await asyncio.sleep(0.02)
    raise TimeoutError


def is_running(world: World, name: str) -> bool:
    found = world.store.find(POD, name, "default") or {}
    return bool(found.get("status", {}).get("phase") == "Running")


def lines(tmp_path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]


async def test_a_pending_pod_runs_and_the_log_says_how(tmp_path: Path) -> None:
    async with process(tmp_path) as world:
        world.store.create(POD, pod("web"))
        await until(lambda: is_running(world, "web"))
        nodes = world.store.list(NODE)

    said = [line["message"] for line in lines(tmp_path)]
    assert len(nodes) == 1
    assert [each for each in said if each in {"created nodeclaim", "launched nodeclaim"}] == [
        "created nodeclaim",
        "launched nodeclaim",
    ]
    assert said[-1] == "stopped"


async def test_a_provider_of_another_cloud_runs_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes its own module and one line of the registry, as the guide says."""
    known = {**registry.PROVIDERS, "example": "tests.contract.examplemodule"}
    monkeypatch.setattr(registry, "PROVIDERS", known)

    async with process(tmp_path, "--provider=example") as world:
        world.store.create(POD, pod("web"))
        await until(lambda: "nodeName" in world.store.get(POD, "web", "default")["spec"])
        [node] = world.store.list(NODE)

    assert world.store.get(POD, "web", "default")["spec"]["nodeName"] == node["metadata"]["name"]
    assert "example.com/claim" in node["metadata"]["labels"]


@pytest.mark.parametrize(
    ("module", "error"),
    [("karpy.nowhere", ModuleNotFoundError), ("nowhere", OptionInvalid)],
)
def test_a_provider_that_imports_what_does_not_exist_needs_an_extra_only_if_that_is_not_ours(
    module: str, error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "brokenprovider.py").write_text(f"import {module}\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "PROVIDERS", {"example": "brokenprovider"})

    with pytest.raises(error, match="nowhere"):
        registry.find_cloud("example")


async def test_the_log_may_be_for_people(tmp_path: Path) -> None:
    async with process(tmp_path, "--log-format=console") as world:
        world.store.create(POD, pod("web"))
        await until(lambda: is_running(world, "web"))

    said = [line[13:] for line in (tmp_path / "log").read_text().splitlines()]
    assert "decided on 1 new node(s) for 1 pod(s)" in said
    assert any(re.match(r"launched default-\w+: \S+, \S+, in test-zone", each) for each in said)


async def test_the_lease_is_held_while_it_runs_and_given_back(tmp_path: Path) -> None:
    async with process(tmp_path, "--leader-election-namespace=default") as world:
        await until(lambda: world.store.find(LEASE, LEASE_NAME, "default") is not None)
        held = world.store.get(LEASE, LEASE_NAME, "default")["spec"]["holderIdentity"]

    assert held
    freed = world.store.get(LEASE, LEASE_NAME, "default")["spec"]
    assert not freed.get("holderIdentity")


async def test_without_election_there_is_no_lease(tmp_path: Path) -> None:
    async with process(tmp_path, "--disable-leader-election") as world:
        world.store.create(POD, pod("web"))
        await until(lambda: is_running(world, "web"))
        found = world.store.find(LEASE, LEASE_NAME, "default")

    assert found is None


async def test_pods_hear_of_it_by_events(tmp_path: Path) -> None:
    async with process(tmp_path) as world:
        world.store.create(POD, pod("web"))
        await until(lambda: is_running(world, "web"))

    told = [each for each in world.store.list(EVENTS_EVENT) if each["reason"] == "Nominated"]
    assert [each["regarding"]["name"] for each in told] == ["web"]
    assert told[0]["reportingController"] == "karpenter"


async def test_decisions_are_recorded(tmp_path: Path) -> None:
    folder = tmp_path / "journal"
    async with process(tmp_path, f"--journal={folder}") as world:
        world.store.create(POD, pod("web"))
        await until(lambda: is_running(world, "web"))

    written = (folder / "decisions-000001.jsonl").read_text().splitlines()
    kinds = [json.loads(line)["karpy"].partition("/")[0] for line in written]
    assert kinds[:2] == ["catalog", "decision"]


async def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    taken = health_application({})
    async with HttpServer(taken, 0, flag="--metrics-port") as site:
        with pytest.raises(OptionInvalid, match=f"is {site.port}, where we cannot listen"):
            async with process(tmp_path, f"--metrics-port={site.port}"):
                await asyncio.sleep(1)


async def test_instance_types_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    read = read_options((f"--instance-types-file-path={tmp_path / 'none'}",), {})

    with pytest.raises(FileUnreadable, match="No such file"):
        await run_process(read, {}, asyncio.Event())


async def test_the_last_words_of_a_crash_are_a_line_like_all_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(_: KarpyOperator) -> None:
        raise ValueError("out of order")

    monkeypatch.setattr(KarpyOperator, "act", act)
    log = tmp_path / "log"

    async def story() -> None:
        async with process(tmp_path, "--disable-leader-election"):
            await until(lambda: log.exists() and "has ended" in log.read_text())

    with pytest.raises(Crashed) as raised:
        await story()

    line = json.loads(log.read_text().splitlines()[-1])
    assert isinstance(raised.value.__cause__, ValueError)
    assert (line["level"], line["message"]) == ("ERROR", "operator has ended")
    assert line["error"] == "karpy made a mistake: ValueError('out of order')"
    assert line["stacktrace"].splitlines()[-1] == "ValueError: out of order"
