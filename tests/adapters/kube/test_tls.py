from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from karpy.adapters.kube.access import Access, Endpoint, User
from karpy.adapters.kube.api import KubeApi
from karpy.adapters.kube.auth import FixedCredentials, RequestCredentials
from karpy.adapters.kube.tls import TlsContexts
from karpy.adapters.kube.transport import Transport
from karpy.errors import CredentialsRefused, KubeconfigInvalid, TlsRefused, Unreachable
from karpy.model.kinds import NODE
from tests.adapters.kube.certificates import Authority, server_context
from tests.adapters.kube.server import (
    PATIENCE,
    TIMEOUTS,
    ScriptedServer,
    access_to,
    json,
    serving,
)


@asynccontextmanager
async def tls_server(
    folder: Path, authority: Authority, *hosts: str, client_ca: str = ""
) -> AsyncIterator[ScriptedServer]:
    pair = authority.sign("server", *hosts)
    async with serving(server_context(pair, folder, client_ca)) as server:
        server.says(json({"metadata": {"name": "n1"}}))
        yield server


async def ask(access: Access) -> None:
    transport = Transport(
        access, FixedCredentials(access.user), patience=PATIENCE, timeouts=TIMEOUTS
    )
    try:
        await KubeApi(transport).get(NODE, "n1")
    finally:
        await transport.close()


async def outcome(asking: Awaitable[None]) -> str:
    try:
        await asking
    except TlsRefused as error:
        return f"{error.message}: {error.hint}"
    return ""


async def test_a_server_of_a_trusted_authority_is_accepted(tmp_path: Path) -> None:
    authority = Authority()

    async with tls_server(tmp_path, authority) as server:
        await ask(access_to(server, ca_pem=authority.pem))

        assert len(server.asked) == 1


@pytest.mark.parametrize("ca_pem", ["", Authority("another").pem])
async def test_a_server_of_an_untrusted_authority_is_refused(tmp_path: Path, ca_pem: str) -> None:
    async with tls_server(tmp_path, Authority()) as server:
        message = await outcome(ask(access_to(server, ca_pem=ca_pem)))

        assert "unable to get local issuer certificate" in message
        assert "certificate-authority-data" in message
        assert server.asked == []


async def test_a_certificate_made_out_to_another_host_is_refused(tmp_path: Path) -> None:
    authority = Authority()
    pair = authority.sign("server", address="10.0.0.1")

    async with serving(server_context(pair, tmp_path)) as server:
        message = await outcome(ask(access_to(server, ca_pem=authority.pem)))

    assert "IP address mismatch" in message
    assert "tls-server-name" in message


async def test_the_name_in_the_certificate_can_be_given(tmp_path: Path) -> None:
    authority = Authority()
    pair = authority.sign("server", "kubernetes.default.svc", address="10.0.0.1")

    async with serving(server_context(pair, tmp_path)) as server:
        server.says(json({}))
        message = await outcome(
            ask(access_to(server, ca_pem=authority.pem, tls_name="kubernetes.default.svc"))
        )

    assert message == ""


async def test_a_wrong_name_in_the_kubeconfig_is_refused(tmp_path: Path) -> None:
    authority = Authority()

    async with tls_server(tmp_path, authority, "right.example") as server:
        message = await outcome(
            ask(access_to(server, ca_pem=authority.pem, tls_name="wrong.example"))
        )

    assert "Hostname mismatch" in message


async def test_an_expired_certificate_is_refused(tmp_path: Path) -> None:
    authority = Authority()
    pair = authority.sign("server", days_left=-1)

    async with serving(server_context(pair, tmp_path)) as server:
        message = await outcome(ask(access_to(server, ca_pem=authority.pem)))

    assert "certificate has expired" in message
    assert "renewed" in message


async def test_all_tls_checks_can_be_skipped(tmp_path: Path) -> None:
    async with tls_server(tmp_path, Authority()) as server:
        await ask(access_to(server, is_verified=False))

        assert len(server.asked) == 1


async def test_the_client_certificate_is_sent_to_a_server_that_requests_it(tmp_path: Path) -> None:
    authority = Authority()
    ours = authority.sign("karpy")
    user = User(cert_pem=ours.cert, key_pem=ours.key)

    async with tls_server(tmp_path, authority, client_ca=authority.pem) as server:
        await ask(access_to(server, user, ca_pem=authority.pem))

        assert len(server.asked) == 1


async def test_a_server_refuses_a_client_certificate_of_another_authority(tmp_path: Path) -> None:
    authority = Authority()
    ours = Authority("another").sign("karpy")
    user = User(cert_pem=ours.cert, key_pem=ours.key)

    async with tls_server(tmp_path, authority, client_ca=authority.pem) as server:
        # With TLS 1.3 the refusal arrives as an alert or as a closed connection, by chance.
        with pytest.raises((TlsRefused, Unreachable)):
            await ask(access_to(server, user, ca_pem=authority.pem))

        assert server.asked == []


async def test_a_server_without_tls_is_named(server: ScriptedServer) -> None:
    endpoint = Endpoint(server.url.replace("http:", "https:"))

    message = await outcome(ask(Access(endpoint, User(), "default", "kubeconfig")))

    assert "check that the server speaks TLS" in message


async def test_an_authority_that_is_no_certificate_is_named(tmp_path: Path) -> None:
    async with tls_server(tmp_path, Authority()) as server:
        with pytest.raises(KubeconfigInvalid, match="no PEM certificate"):
            await ask(access_to(server, ca_pem="nonsense"))


@pytest.mark.parametrize("key", ["", "nonsense", Authority("a").sign("b").key])
async def test_a_certificate_whose_key_does_not_fit_is_named(tmp_path: Path, key: str) -> None:
    user = User(cert_pem=Authority().sign("karpy").cert, key_pem=key)

    async with tls_server(tmp_path, Authority()) as server:
        with pytest.raises(CredentialsRefused, match="client certificate"):
            await ask(access_to(server, user))


def test_a_context_is_kept_until_the_certificate_changes() -> None:
    authority = Authority()
    first, second = authority.sign("karpy"), authority.sign("karpy")
    contexts = TlsContexts(Access(Endpoint("https://a"), User(), "default", "kubeconfig"))

    made = [
        contexts.context(RequestCredentials("Bearer a", first.cert, first.key)),
        contexts.context(RequestCredentials("Bearer b", first.cert, first.key)),
        contexts.context(RequestCredentials("Bearer b", second.cert, second.key)),
    ]

    assert made[0] is made[1]
    assert made[1] is not made[2]
