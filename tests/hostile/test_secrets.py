"""Secrets in every place that can have one reach no log, error or metric."""

import asyncio
import json
import os
import sys
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from traceback import format_exception
from typing import Final
from urllib.parse import quote

import pytest
from aiohttp import ClientSession, web

from karpy.adapters.clock import WallClock
from karpy.adapters.controlplane.loopback import free_ports
from karpy.adapters.kube.access import EXEC_V1, NEVER, Access, Endpoint, ExecPlugin, User
from karpy.adapters.kube.api import KubeApi
from karpy.adapters.kube.auth import FixedCredentials, RequestCredentials
from karpy.adapters.kube.connection import Connection, credentials_of, find_access
from karpy.adapters.kube.transport import Transport
from karpy.cli.main import execute
from karpy.cli.terminal import Terminal
from karpy.errors import CredentialsRefused, KarpyError, OptionInvalid, Unreachable
from karpy.model.kinds import EVENTS_EVENT, KWOK_NODE_CLASS, NODE, NODE_POOL, POD
from karpy.sim.kubelets.timing import KubeletTiming
from karpy.sim.world import World, WorldSettings
from karpy.wiring.embedded import ServedCluster, embedded_world, serve
from karpy.wiring.options import read_options
from karpy.wiring.process import run_process
from tests.adapters.kube.proxy import proxying
from tests.adapters.kube.server import NOBODY, PATIENCE, TIMEOUTS, ScriptedServer, serving
from tests.scenarios.manifests import node_class, pod_spec, pool

CANARY: Final = "canary4711"
DIGITS: Final = "815471147110815"
"""A secret that YAML reads as a number."""
TRACES: Final = (CANARY, DIGITS, CANARY.upper(), b64encode(f"u:{CANARY}".encode()).decode()[:-2])
"""The forms in which a secret may appear, such as a basic-auth header of the user `u`."""
PLUGIN: Final = f"""
import json, os, sys
print("{CANARY} is what I think", file=sys.stderr)
status = {{"token": os.environ["GIVEN"]}}
print(json.dumps({{"apiVersion": "{EXEC_V1}", "kind": "ExecCredential", "status": status}}))
"""


def shown(text: str) -> list[str]:
    """Return the traces of secrets in a text."""
    return [each for each in TRACES if each in text]


def said(error: BaseException) -> str:
    """Return all texts of an error: message, hint, details and representation."""
    words = "".join(format_exception(error))
    return f"{words}{error!r}{error.args!r}{getattr(error, 'hint', '')}"


def kubeconfig(folder: Path, cluster: str, user: str) -> Path:
    file = folder / "config"
    file.write_text(f"""
current-context: here
contexts: [{{name: here, context: {{cluster: c, user: u, namespace: default}}}}]
clusters:
- name: c
  cluster: {cluster}
users:
- name: u
  user: {user}
""")
    return file


SERVER: Final = "{server: 'https://127.0.0.1:1'}"
EXEC: Final = f"apiVersion: {EXEC_V1}, interactiveMode: Never, command: a"


@pytest.mark.parametrize(
    ("cluster", "user"),
    [
        (f"{{server: 'ftp://u:{CANARY}@h'}}", "{}"),
        (f"{{server: 'https://u:{CANARY}@h:port'}}", "{}"),
        (f"{{server: 'https://u:{CANARY}@h:70000'}}", "{}"),
        (f"{{server: 'https://u:{CANARY}/x@h'}}", "{}"),
        (f"{{server: 'https://u:1/{CANARY}@h'}}", "{}"),
        (f"{{server: 'https://u:1?{CANARY}@h'}}", "{}"),
        (f"{{server: 'https://u:{CANARY}#x@h'}}", "{}"),
        (f"{{server: 'https://u:{CANARY}@[h'}}", "{}"),
        (f"{{server: 'https://u:{CANARY}@'}}", "{}"),
        (f"{{server: 'https://u:{CANARY}@\u2100'}}", "{}"),
        (f"{{server: a, proxy-url: 'socks5://u:{CANARY}@p'}}", "{}"),
        (f"{{server: a, proxy-url: 'u:{CANARY}@p'}}", "{}"),
        (f"{{server: a, proxy-url: 'http://u:{CANARY}@p:port'}}", "{}"),
        (SERVER, f"{{token: {DIGITS}}}"),
        (SERVER, f"{{token: [{CANARY}]}}"),
        (SERVER, f"{{token: {{{CANARY}: 1}}}}"),
        (SERVER, f"{{token: '{CANARY}}}"),
        (SERVER, f"{{token: *{CANARY}}}"),
        (SERVER, f"{{token: &{CANARY} a, password: &{CANARY} }}: b"),
        (SERVER, f"{{token: !{CANARY} a}}"),
        (SERVER, f"{{token: %{CANARY}}}"),
        (SERVER, f"{{token: a: {CANARY}: b}}"),
        (SERVER, f"{{token: !!int {CANARY}}}"),
        (SERVER, f"{{<<: {CANARY}}}"),
        (SERVER, f"{{username: u, password: {DIGITS}}}"),
        (SERVER, f"{{client-key-data: '{CANARY}%'}}"),
        (SERVER, f"{{client-key-data: {DIGITS}}}"),
        (SERVER, f"{{exec: {{{EXEC}, args: [{CANARY}, {DIGITS}]}}}}"),
        (SERVER, f"{{exec: {{{EXEC}, args: [[{CANARY}]]}}}}"),
        (SERVER, f"{{exec: {{{EXEC}, env: [{{name: A, value: {DIGITS}}}]}}}}"),
    ],
)
def test_a_kubeconfig_that_cannot_be_read_is_not_quoted(
    tmp_path: Path, cluster: str, user: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = kubeconfig(tmp_path, cluster, user)
    # One that can be read after all ends there, too: at a log that cannot be written.
    words = ("run", f"--kubeconfig={file}", f"--log-output-paths={tmp_path / 'none' / 'log'}")

    code = execute(words, Terminal.of_process({}, no_colour=True), is_debugging=True)

    output = "".join(capsys.readouterr())
    assert (code, shown(output)) == (1, [])
    assert "KP1007" in output


@pytest.mark.parametrize(
    "proxy", [f"http://u:{CANARY}@p:port", f"socks5://u:{CANARY}@p", f"u:{CANARY}/x@p"]
)
def test_a_proxy_of_the_environment_that_cannot_be_is_not_quoted(
    tmp_path: Path, proxy: str
) -> None:
    file = kubeconfig(tmp_path, "{server: 'https://far'}", "{}")

    with pytest.raises(OptionInvalid, match="`HTTPS_PROXY` is no address") as raised:
        find_access(kubeconfig=str(file), env={"HTTPS_PROXY": proxy})

    assert shown(said(raised.value)) == []


def test_a_proxy_of_the_environment_is_shown_without_its_password(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path, "{server: 'https://far'}", "{}")

    access = find_access(kubeconfig=str(file), env={"HTTPS_PROXY": f"u:{CANARY}@p:3128"})

    assert access.endpoint.proxy == "http://p:3128"
    assert access.endpoint.proxy_login == ("u", CANARY)


@pytest.mark.parametrize("token", [f"{CANARY}\n{CANARY}", f"{CANARY}\r\nX-Evil: {CANARY}"])
def test_a_token_that_no_header_can_hold_is_not_quoted(tmp_path: Path, token: str) -> None:
    file = tmp_path / "token"
    file.write_text(token)
    access = Access(Endpoint("https://far"), User(token_file=str(file)), "default", "config")

    with pytest.raises(CredentialsRefused, match="its token holds a line break") as raised:
        asyncio.run(credentials_of(access, WallClock()).identity())

    assert shown(said(raised.value)) == []


@pytest.mark.parametrize(
    "source",
    [
        f"print('{CANARY}')",
        f'print(\'{{"kind": "{CANARY}"}}\')',
        f"import sys; sys.exit('{CANARY}')",
        f"print('{CANARY}'); import os; os.abort()",
        PLUGIN.replace(EXEC_V1, CANARY),
        PLUGIN.replace('"GIVEN"]', '"GIVEN"] + "\\n"'),
        PLUGIN.replace('"token"', '"clientKeyData"'),
        PLUGIN.replace('"token"', '"expirationTimestamp"'),
        PLUGIN.replace('os.environ["GIVEN"]', f'{{"{CANARY}": 1}}'),
        f"import sys; sys.stdout.buffer.write(b'\\xff{CANARY}')",
    ],
)
async def test_what_a_plugin_prints_is_not_repeated(tmp_path: Path, source: str) -> None:
    file = tmp_path / "plugin.py"
    file.write_text(source)
    env = (("GIVEN", CANARY),)
    plugin = ExecPlugin(sys.executable, (str(file), CANARY), env, interactive_mode=NEVER)
    access = Access(Endpoint("https://127.0.0.1:1"), User(plugin=plugin), "default", "config")

    async with Connection(access) as connection:
        with pytest.raises(CredentialsRefused) as raised:
            await connection.objects.get(NODE, "n1")

    assert shown(said(raised.value)) == []


@pytest.mark.parametrize(
    "value",
    [
        User(CANARY, basic=("u", CANARY), cert_pem=CANARY, key_pem=CANARY),
        User(plugin=ExecPlugin("a", (CANARY,), (("A", CANARY),)), headers=(("A", CANARY),)),
        ExecPlugin("a", (CANARY,), (("A", CANARY),)),
        Endpoint(f"https://u:{CANARY}@h", proxy=f"http://u:{CANARY}@p"),
        Access(Endpoint(f"https://u:{CANARY}@h"), User(CANARY), "default", "config"),
        RequestCredentials(CANARY, CANARY, CANARY, (("A", CANARY),)),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_value_with_secrets_shows_none(value: object) -> None:
    assert shown(f"{value!r} {value} {[value]}") == []


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with serving() as server:
        yield server


async def test_a_server_that_repeats_the_request_is_not_quoted(server: ScriptedServer) -> None:
    async def repeat(request: web.Request) -> web.Response:
        return web.Response(text=f"bad request: {dict(request.headers)}", status=403)

    server.says(repeat)
    address = server.url.replace("://", f"://u:{CANARY}@")
    access = Access(Endpoint(address), NOBODY, "default", "config")

    async with Connection(access) as connection:
        with pytest.raises(KarpyError) as raised:
            await connection.objects.get(NODE, "n1")

    assert server.asked[0].headers["Authorization"].startswith("Basic ")
    assert "'Authorization': 'Basic (withheld)'" in raised.value.message
    assert shown(said(raised.value)) == []


async def test_a_proxy_that_says_no_is_named_without_its_password() -> None:
    async with proxying("407 Proxy Authentication Required") as proxy:
        address = proxy.url.replace("://", f"://u:{CANARY}@")
        endpoint = Endpoint(f"https://u:{CANARY}@127.0.0.1:1", proxy=address)
        access = Access(endpoint, NOBODY, "default", "config")
        transport = Transport(
            access, FixedCredentials(NOBODY), timeouts=TIMEOUTS, patience=PATIENCE
        )
        with pytest.raises(Unreachable, match="the proxy says 407") as raised:
            await KubeApi(transport).get(NODE, "n1")
        await transport.close()

    assert shown(said(raised.value)) == []


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[tuple[World, dict[str, int]]]:
    """Run an operator with a secret in every place that accepts one."""
    settings = WorldSettings(timing=KubeletTiming(speed=50))
    ports = free_ports(("metrics", "health", "profiling"))
    async with embedded_world(settings) as world, serve(world, token=CANARY) as served:
        world.store.create(KWOK_NODE_CLASS, node_class())
        world.store.create(NODE_POOL, pool())
        async with proxying() as proxy:
            words = (
                f"--kubeconfig={reached_by(folder, served, proxy.url)}",
                f"--log-output-paths={folder / 'log'}",
                f"--metrics-port={ports['metrics']}",
                f"--health-probe-port={ports['health']}",
                f"--profiling-port={ports['profiling']}",
                "--enable-profiling",
                "--log-level=debug",
                "--batch-idle-duration=100ms",
            )
            end = asyncio.Event()
            task = asyncio.create_task(run_process(read_options(words, {}), os.environ, end))
            try:
                yield world, ports
            finally:
                end.set()
                await task


def reached_by(folder: Path, served: ServedCluster, proxy: str) -> Path:
    """Write a kubeconfig with passwords in its addresses, and a plugin that prints secrets."""
    (folder / "plugin.py").write_text(PLUGIN)
    authority = b64encode(served.authority.encode()).decode()
    cluster = {
        "server": served.url.replace("://", f"://u:{CANARY}@"),
        "proxy-url": proxy.replace("://", f"://u:{quote(CANARY)}@"),
        "certificate-authority-data": authority,
    }
    plugin = {
        "apiVersion": EXEC_V1,
        "interactiveMode": NEVER,
        "command": sys.executable,
        "args": [str(folder / "plugin.py"), CANARY],
        "env": [{"name": "GIVEN", "value": CANARY}],
    }
    return kubeconfig(folder, json.dumps(cluster), json.dumps({"exec": plugin}))


async def _read(port: int, path: str) -> str:
    async with ClientSession() as session:
        answer = await session.get(f"http://127.0.0.1:{port}{path}")
        return await answer.text()


async def _until_running(world: World) -> None:
    for _ in range(3000):
        if world.store.get(POD, "web", "default")["status"].get("phase") == "Running":
            return
        await asyncio.sleep(0.02)
    raise TimeoutError


async def test_a_working_operator_reveals_no_secret(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pod = {"metadata": {"name": "web", "namespace": "default"}, "spec": pod_spec()}
    async with running(tmp_path) as (world, ports):
        world.store.create(POD, pod)
        await _until_running(world)
        texts = [
            await _read(ports["metrics"], "/metrics"),
            await _read(ports["health"], "/readyz?verbose"),
            await _read(ports["profiling"], "/debug/pprof/goroutine"),
            await _read(ports["profiling"], "/debug/pprof/profile?seconds=0.1"),
        ]
        events = json.dumps(world.store.list(EVENTS_EVENT))

    log = (tmp_path / "log").read_text()
    assert "launched nodeclaim" in log
    assert 'host="127.0.0.1:' in texts[0]
    assert shown("".join((*texts, events, log, *capfd.readouterr()))) == []
