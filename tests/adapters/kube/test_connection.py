import json as plain
import sys
from base64 import b64encode
from pathlib import Path

import pytest

from karpy.adapters.kube.access import EXEC_V1, Access, Endpoint, User
from karpy.adapters.kube.connection import connect, find_access
from karpy.adapters.kube.incluster import is_in_cluster, read_service_account
from karpy.errors import CredentialsRefused, KubeconfigInvalid, Unauthorized
from karpy.model.kinds import NODE
from karpy.ports.objects import Feed, Objects
from tests.adapters.kube.server import ScriptedServer, failure, json

IN_POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "6443"}


def kubeconfig(folder: Path, url: str, user: object) -> str:
    file = folder / "config"
    document = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "x"}}],
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": user}],
    }
    file.write_text(plain.dumps(document), encoding="utf-8")
    return str(file)


def service_account(folder: Path) -> str:
    for name, content in {"token": "t", "ca.crt": "CA", "namespace": "karpenter\n"}.items():
        (folder / name).write_text(content, encoding="utf-8")
    return str(folder)


async def test_a_connection_implements_the_ports(tmp_path: Path, server: ScriptedServer) -> None:
    async with connect(kubeconfig=kubeconfig(tmp_path, server.url, {})) as connection:
        objects: Objects = connection.objects
        feed: Feed = connection.feed

    assert (objects, feed) == (connection.objects, connection.feed)


async def test_a_kubeconfig_suffices_to_connect(tmp_path: Path, server: ScriptedServer) -> None:
    server.says(json({"metadata": {"name": "n1"}}))
    file = kubeconfig(tmp_path, server.url, {"token": "abc"})

    async with connect(kubeconfig=file) as connection:
        found = await connection.objects.get(NODE, "n1")

    assert found == {"metadata": {"name": "n1"}}
    assert connection.namespace == "x"
    assert server.asked[0].headers["Authorization"] == "Bearer abc"


async def test_a_token_that_expired_is_fetched_anew_by_its_plugin(
    tmp_path: Path, server: ScriptedServer
) -> None:
    server.says(failure(401, "Unauthorized"), json({}))
    program = tmp_path / "plugin.py"
    program.write_text(
        "import json, time\n"
        f"print(json.dumps({{'apiVersion': '{EXEC_V1}', 'kind': 'ExecCredential',"
        " 'status': {'token': str(time.time_ns())}}))"
    )
    plugin = {
        "apiVersion": EXEC_V1,
        "command": sys.executable,
        "args": [str(program)],
        "interactiveMode": "Never",
    }

    async with connect(kubeconfig=kubeconfig(tmp_path, server.url, {"exec": plugin})) as connection:
        await connection.objects.get(NODE, "n1")

    shown = [each.headers["Authorization"] for each in server.asked]
    assert len(set(shown)) == 2


async def test_a_rotated_token_file_heals_a_refusal(tmp_path: Path, server: ScriptedServer) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    server.says(json({}), failure(401, "Unauthorized"), json({}))

    async with connect(
        kubeconfig=kubeconfig(tmp_path, server.url, {"tokenFile": "token"})
    ) as connection:
        await connection.objects.get(NODE, "n1")
        token.write_text("new")
        await connection.objects.get(NODE, "n1")

    shown = [each.headers["Authorization"] for each in server.asked]
    assert shown == ["Bearer old", "Bearer old", "Bearer new"]


async def test_a_fixed_token_that_expired_is_unauthorized(
    tmp_path: Path, server: ScriptedServer
) -> None:
    server.says(failure(401, "Unauthorized", "token has expired"))

    async with connect(kubeconfig=kubeconfig(tmp_path, server.url, {"token": "old"})) as connection:
        with pytest.raises(Unauthorized, match="token has expired"):
            await connection.objects.get(NODE, "n1")


def test_the_service_account_of_a_pod_is_read(tmp_path: Path) -> None:
    folder = service_account(tmp_path)

    access = read_service_account(IN_POD, folder)

    assert is_in_cluster(IN_POD, folder)
    assert access == Access(
        Endpoint("https://10.0.0.1:6443", "CA"),
        User(token_file=str(tmp_path / "token")),
        "karpenter",
        folder,
    )


def test_an_address_of_version_6_is_put_in_brackets(tmp_path: Path) -> None:
    env = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}

    access = read_service_account(env, service_account(tmp_path))

    assert access.endpoint.server == "https://[fd00::1]:443"


def test_a_pod_without_its_ca_bundle_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CredentialsRefused, match=r"ca\.crt"):
        read_service_account(IN_POD, str(tmp_path))


@pytest.mark.parametrize("env", [{}, IN_POD])
def test_without_a_token_the_process_is_not_in_a_pod(tmp_path: Path, env: dict[str, str]) -> None:
    assert not is_in_cluster(env, str(tmp_path))


def test_a_missing_kubeconfig_is_an_error_with_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    with pytest.raises(KubeconfigInvalid) as raised:
        find_access(env={})

    assert "karpy cluster" in raised.value.hint


def test_a_proxy_in_the_environment_is_used_unless_the_kubeconfig_names_one(
    tmp_path: Path,
) -> None:
    env = {"HTTPS_PROXY": "http://env:1", "KUBECONFIG": kubeconfig(tmp_path, "https://far", {})}

    access = find_access(env=env)

    assert access.endpoint.proxy == "http://env:1"


@pytest.mark.parametrize(
    ("user", "shown"),
    [
        ({}, f"Basic {b64encode(b'joe:p@ss').decode()}"),
        ({"username": "jane", "password": "pw"}, f"Basic {b64encode(b'jane:pw').decode()}"),
        ({"token": "abc"}, "Bearer abc"),
    ],
)
async def test_the_login_of_an_address_counts_if_there_is_no_other(
    tmp_path: Path, server: ScriptedServer, user: object, shown: str
) -> None:
    server.says(json({"metadata": {"name": "n1"}}))
    file = kubeconfig(tmp_path, server.url.replace("://", "://joe:p%40ss@"), user)

    async with connect(kubeconfig=file) as connection:
        await connection.objects.get(NODE, "n1")

    assert connection.access.endpoint.server == server.url
    assert server.asked[0].headers["Authorization"] == shown
