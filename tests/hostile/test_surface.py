"""The attack surface: open ports, credential plugins, and the rights of the operator's token."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import chain
from pathlib import Path
from typing import Final

import pytest
from aiohttp import ClientConnectorError, ClientSession

from karpy.adapters.clock import WallClock
from karpy.adapters.controlplane.loopback import free_ports
from karpy.adapters.kube.auth import RequestCredentials
from karpy.adapters.kube.connection import credentials_of, find_access
from karpy.adapters.telemetry.servers import HttpServer, profiling_application
from karpy.errors import CredentialsRefused
from karpy.sim.world import WorldSettings
from karpy.wiring.embedded import embedded_world, serve
from karpy.wiring.options import read_options
from karpy.wiring.process import run_process
from tests.wiring.grants import BY_CHOICE, grants

READING: Final = frozenset({"get", "list", "watch"})
HERE: Final = "127.0.0.1"
ELSEWHERE: Final = "127.0.0.2"
"""Another loopback address, at which a server on 127.0.0.1 is not reachable."""


async def _status(host: str, port: int, path: str) -> int:
    """Return the HTTP status, 0 if nothing listens at the address."""
    async with ClientSession() as session:
        try:
            async with session.get(f"http://{host}:{port}{path}") as response:
                return response.status
        except ClientConnectorError:
            return 0


@asynccontextmanager
async def operator(folder: Path, *flags: str) -> AsyncIterator[dict[str, int]]:
    ports = free_ports(("metrics", "health", "profiling"))
    async with embedded_world(WorldSettings()) as world, serve(world) as served:
        words = (
            f"--kubeconfig={served.kubeconfig}",
            f"--log-output-paths={folder / 'log'}",
            f"--metrics-port={ports['metrics']}",
            f"--health-probe-port={ports['health']}",
            f"--profiling-port={ports['profiling']}",
            *flags,
        )
        (folder / "log").touch()
        end = asyncio.Event()
        task = asyncio.create_task(run_process(read_options(words, {}), {}, end))
        try:
            await _until_started(folder / "log")
            yield ports
        finally:
            end.set()
            await task


async def _until_started(log: Path) -> None:
    for _ in range(1500):
        if b"starting controllers" in await asyncio.to_thread(log.read_bytes):
            return
        await asyncio.sleep(0.02)
    raise TimeoutError


@pytest.mark.parametrize(
    ("flags", "elsewhere"), [((), 200), ((f"--bind-address={HERE}",), 0)], ids=["all", "one"]
)
async def test_metrics_and_probes_are_served_where_they_should_be(
    tmp_path: Path, flags: tuple[str, ...], elsewhere: int
) -> None:
    async with operator(tmp_path, *flags) as ports:
        found = [
            await _status(HERE, ports["metrics"], "/metrics"),
            await _status(HERE, ports["health"], "/healthz"),
            await _status(ELSEWHERE, ports["metrics"], "/metrics"),
            await _status(ELSEWHERE, ports["health"], "/healthz"),
        ]

    assert found == [200, 200, elsewhere, elsewhere]


async def test_profiles_are_on_loopback_alone_whatever_else_is_served(tmp_path: Path) -> None:
    async with operator(tmp_path, "--enable-profiling") as ports:
        found = {
            "here": await _status(HERE, ports["profiling"], "/debug/pprof/"),
            "elsewhere": await _status(ELSEWHERE, ports["profiling"], "/debug/pprof/"),
            "with metrics": await _status(HERE, ports["metrics"], "/debug/pprof/"),
            "with probes": await _status(HERE, ports["health"], "/debug/pprof/"),
        }

    assert found == {"here": 200, "elsewhere": 0, "with metrics": 404, "with probes": 404}


async def test_nothing_is_profiled_unless_asked_for(tmp_path: Path) -> None:
    async with operator(tmp_path) as ports:
        assert await _status(HERE, ports["profiling"], "/debug/pprof/") == 0


@pytest.mark.parametrize(
    "seconds",
    [
        *("", "x", "-1", "nan", "inf", "1e3", "1_0", "0x10", "301", "99999", "300.001"),
        *("%D9%A3", "+1", " 1", "1 ", "1.", ".5", "1%00", "9" * 5000),
    ],
    ids=lambda each: each[:9],
)
async def test_a_profile_of_no_length_is_refused_at_once(seconds: str) -> None:
    async with HttpServer(profiling_application(), 0, flag="-", host=HERE) as site:
        path = f"/debug/pprof/profile?seconds={seconds}"
        assert await _status(HERE, site.port, path) == 400


PLUGIN: Final = """#!/bin/sh
echo "$0" >> "$MARKS"
echo '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
  "status": {"token": "t"}}'
"""


def _place(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(PLUGIN)
    file.chmod(0o755)
    return file


def _kubeconfig(folder: Path, command: str) -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / "config"
    file.write_text(f"""
current-context: here
contexts: [{{name: here, context: {{cluster: c, user: u}}}}]
clusters: [{{name: c, cluster: {{server: "http://127.0.0.1:1"}}}}]
users:
- name: u
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      interactiveMode: Never
      command: {command}
""")
    return file


@pytest.fixture
def marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file into which an executed plugin writes its path; PATH has decoys."""
    home = tmp_path / "home"
    _place(home, "plugin")
    _place(home / "bin", "plugin")
    _place(tmp_path / "path", "plugin")
    monkeypatch.chdir(home)
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setenv("MARKS", str(tmp_path / "marks"))
    return tmp_path / "marks"


def ask(kubeconfig: str) -> RequestCredentials:
    """Ask the plugin of a kubeconfig for credentials."""
    credentials = credentials_of(find_access(kubeconfig=kubeconfig, env={}), WallClock())
    return asyncio.run(credentials.identity())


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("./plugin", "kube/plugin"),
        ("bin/plugin", "kube/bin/plugin"),
        ("../kube/plugin", "kube/../kube/plugin"),
        ("plugin", "path/plugin"),
    ],
)
def test_a_plugin_is_the_file_that_kubectl_would_run(
    tmp_path: Path, marks: Path, command: str, expected: str
) -> None:
    _place(tmp_path / "kube", "plugin")
    _place(tmp_path / "kube" / "bin", "plugin")
    file = _kubeconfig(tmp_path / "kube", command)

    ask(str(file))

    assert marks.read_text().splitlines() == [str(tmp_path / expected)]


def test_a_plugin_beside_a_kubeconfig_here_is_not_looked_up_in_path(
    tmp_path: Path, marks: Path
) -> None:
    _kubeconfig(tmp_path / "home", "./plugin")

    ask("config")

    assert marks.read_text().splitlines() == [str(tmp_path / "home" / "plugin")]


@pytest.mark.parametrize("command", ["./plugin", "bin/plugin"])
def test_a_plugin_that_is_not_beside_its_kubeconfig_is_no_other(
    tmp_path: Path, marks: Path, command: str
) -> None:
    file = _kubeconfig(tmp_path / "empty", command)

    with pytest.raises(CredentialsRefused, match="No such file"):
        ask(str(file))

    assert not marks.exists()


@pytest.mark.parametrize("path", ["", ".", ":/nowhere", "/nowhere:.", "bin"])
def test_a_plugin_without_a_path_is_never_taken_from_the_current_folder(
    tmp_path: Path, marks: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setenv("PATH", path)
    file = _kubeconfig(tmp_path / "kube", "plugin")

    with pytest.raises(CredentialsRefused, match="in no folder of PATH"):
        ask(str(file))

    assert not marks.exists()


def test_a_stolen_token_can_write_little() -> None:
    written = {
        (each.resource, each.verb)
        for each in grants()
        if each.role not in BY_CHOICE
        and each.verb not in READING
        and not each.resource.startswith("lease")
    }

    assert written == {
        ("capacitybuffers/status", "patch"),
        ("ec2nodeclasses", "patch"),
        ("ec2nodeclasses/status", "patch"),
        ("events", "create"),
        ("nodeclaims", "create"),
        ("nodeclaims", "delete"),
        ("nodeclaims", "patch"),
        ("nodeclaims/finalizers", "update"),
        ("nodeclaims/status", "patch"),
        ("nodeoverlays/status", "patch"),
        ("nodepools", "patch"),
        ("nodepools/finalizers", "update"),
        ("nodepools/status", "patch"),
        ("nodes", "create"),
        ("nodes", "delete"),
        ("nodes", "patch"),
        ("nodes/status", "patch"),
        ("pods", "delete"),
        ("pods/eviction", "create"),
        ("pods/status", "patch"),
    }


def test_a_stolen_token_reads_no_secret_and_gives_no_further_rights() -> None:
    everything = {*chain.from_iterable(each[:3] for each in grants())}

    assert everything.isdisjoint(
        {"*", "secrets", "configmaps", "impersonate", "escalate", "bind", "deletecollection"}
    )
    assert not any("rbac" in each or "serviceaccounts" in each for each in everything)
