from base64 import b64encode
from pathlib import Path

import pytest

from karpy.adapters.kube.api import KubeApi
from karpy.adapters.kube.auth import FixedCredentials
from karpy.adapters.kube.proxies import proxy_from_environment
from karpy.adapters.kube.transport import Transport
from karpy.errors import Unreachable
from karpy.model.kinds import NODE
from tests.adapters.kube.certificates import Authority, server_context
from tests.adapters.kube.proxy import proxying
from tests.adapters.kube.server import NOBODY, PATIENCE, TIMEOUTS, access_to, json, serving


async def test_a_server_behind_a_proxy_is_reached(tmp_path: Path) -> None:
    authority = Authority()
    context = server_context(authority.sign("server"), tmp_path)
    async with proxying() as proxy, serving(context) as server:
        server.says(json({"metadata": {"name": "n1"}}))
        access = access_to(server, ca_pem=authority.pem, proxy=proxy.url)
        transport = Transport(access, FixedCredentials(NOBODY), timeouts=TIMEOUTS)

        found = await KubeApi(transport).get(NODE, "n1")
        await transport.close()

        assert found == {"metadata": {"name": "n1"}}
        assert [each.splitlines()[0] for each in proxy.heads] == [
            f"CONNECT 127.0.0.1:{server.port} HTTP/1.1"
        ]


async def test_a_proxy_gets_the_password_of_its_address(tmp_path: Path) -> None:
    authority = Authority()
    context = server_context(authority.sign("server"), tmp_path)
    async with proxying() as proxy, serving(context) as server:
        server.says(json({"metadata": {"name": "n1"}}))
        address = proxy.url.replace("://", "://joe:p%40ss@")
        transport = Transport(
            access_to(server, ca_pem=authority.pem, proxy=address), FixedCredentials(NOBODY)
        )

        await KubeApi(transport).get(NODE, "n1")
        await transport.close()

    login = b64encode(b"joe:p@ss").decode()
    assert f"Proxy-Authorization: Basic {login}" in proxy.heads[0].splitlines()
    assert "Proxy-Authorization" not in server.asked[0].headers


async def test_a_proxy_that_refuses_is_named(tmp_path: Path) -> None:
    context = server_context(Authority().sign("server"), tmp_path)
    async with proxying("407 Proxy Authentication Required") as proxy, serving(context) as server:
        access = access_to(server, proxy=proxy.url)
        transport = Transport(
            access, FixedCredentials(NOBODY), timeouts=TIMEOUTS, patience=PATIENCE
        )

        with pytest.raises(Unreachable, match="the proxy says 407"):
            await KubeApi(transport).get(NODE, "n1")

        await transport.close()


async def test_a_proxy_that_is_not_there_is_named(tmp_path: Path) -> None:
    context = server_context(Authority().sign("server"), tmp_path)
    async with proxying() as proxy:
        gone = proxy.url
    async with serving(context) as server:
        transport = Transport(
            access_to(server, proxy=gone),
            FixedCredentials(NOBODY),
            timeouts=TIMEOUTS,
            patience=PATIENCE,
        )

        with pytest.raises(Unreachable, match=r"the proxy to .* does not answer"):
            await KubeApi(transport).get(NODE, "n1")

        await transport.close()


@pytest.mark.parametrize(
    ("server", "env", "proxy"),
    [
        ("https://api.example:6443", {}, ""),
        ("https://api.example:6443", {"HTTPS_PROXY": "http://p:3128"}, "http://p:3128"),
        ("https://api.example:6443", {"https_proxy": "p:3128"}, "http://p:3128"),
        ("https://api.example:6443", {"HTTP_PROXY": "http://p:3128"}, ""),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": "http://p:3128"}, ""),
        ("https://localhost:6443", {"HTTPS_PROXY": "http://p:3128"}, ""),
    ],
)
def test_the_environment_names_a_proxy(server: str, env: dict[str, str], proxy: str) -> None:
    assert proxy_from_environment(server, env) == proxy


@pytest.mark.parametrize(
    ("server", "no_proxy"),
    [
        ("https://10.0.0.1:443", "example.com, 10.0.0.0/8"),
        ("https://10.0.0.1:443", "10.0.0.1"),
        ("https://api.example:443", "*"),
        ("https://api.example:443", "example"),
        ("https://api.example:443", ".example"),
        ("https://api.example:443", "*.example"),
        ("https://api.example:443", "api.example:443"),
    ],
)
def test_hosts_in_no_proxy_are_reached_directly(server: str, no_proxy: str) -> None:
    env = {"HTTPS_PROXY": "http://p:3128", "NO_PROXY": no_proxy}

    assert proxy_from_environment(server, env) == ""


@pytest.mark.parametrize("no_proxy", ["", "ample", "api.example:8443", "10.0.0.0/8", "other"])
def test_an_entry_of_no_proxy_covers_no_other_host(no_proxy: str) -> None:
    env = {"HTTPS_PROXY": "http://p:3128", "NO_PROXY": no_proxy}

    assert proxy_from_environment("https://api.example:443", env) == "http://p:3128"
