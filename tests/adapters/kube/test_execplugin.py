import asyncio
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from karpy.adapters.kube.access import (
    ALWAYS,
    EXEC_V1,
    EXEC_V1BETA1,
    NEVER,
    Endpoint,
    ExecPlugin,
    User,
)
from karpy.adapters.kube.auth import RequestCredentials
from karpy.adapters.kube.execplugin import ExecCredentials
from karpy.errors import CredentialsRefused
from tests.adapters.kube.clocks import SetClock

TWELVE: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
COUNTING: Final = """
import json, os, pathlib
count = pathlib.Path(os.environ["FOLDER"], "count")
number = int(count.read_text()) + 1 if count.exists() else 1
count.write_text(str(number))
status = json.loads(os.environ["STATUS"])
status["token"] = f"token-{number}"
print(json.dumps({"apiVersion": os.environ["VERSION"], "kind": "ExecCredential", "status": status}))
"""
ECHO: Final = """
import json, os, sys
info = os.environ["KUBERNETES_EXEC_INFO"]
pathlike = json.dumps([sys.argv[1:], os.environ.get("MINE"), json.loads(info), sys.stdin.read()])
print(json.dumps({"apiVersion": json.loads(info)["apiVersion"], "kind": "ExecCredential",
                  "status": {"token": pathlike}}))
"""


def plugin(folder: Path, source: str, **status: object) -> ExecPlugin:
    """Write a program that prints credentials."""
    file = folder / "plugin.py"
    file.write_text(source, encoding="utf-8")
    env = (("FOLDER", str(folder)), ("STATUS", json.dumps(status)), ("VERSION", EXEC_V1))
    return ExecPlugin(sys.executable, (str(file),), env, interactive_mode=NEVER)


def credentials(
    plugin: ExecPlugin, clock: SetClock | None = None, *, seconds: float = 20
) -> ExecCredentials:
    endpoint = Endpoint("https://a", "CA", tls_name="n", proxy="http://p", exec_config={"b": 1})
    user = User(plugin=plugin, headers=(("Impersonate-User", "joe"),))
    return ExecCredentials(user, endpoint, clock or SetClock(), seconds=seconds)


def bearer(token: str) -> RequestCredentials:
    return RequestCredentials(f"Bearer {token}", headers=(("Impersonate-User", "joe"),))


async def test_the_identity_is_what_a_plugin_prints(tmp_path: Path) -> None:
    given = credentials(plugin(tmp_path, COUNTING, clientCertificateData="C", clientKeyData="K"))

    identity = await given.identity()

    assert identity == RequestCredentials(
        "Bearer token-1", "C", "K", (("Impersonate-User", "joe"),)
    )


async def test_a_plugin_runs_once_for_concurrent_requests(tmp_path: Path) -> None:
    given = credentials(plugin(tmp_path, COUNTING))

    identities = await asyncio.gather(*(given.identity() for _ in range(5)))

    assert identities == [bearer("token-1")] * 5


async def test_credentials_are_renewed_before_they_expire(tmp_path: Path) -> None:
    clock = SetClock(TWELVE)
    soon = plugin(tmp_path, COUNTING, expirationTimestamp="2026-01-01T12:14:00Z")
    given = credentials(soon, clock)
    first = await given.identity()
    clock.move(12.9 * 60)
    second = await given.identity()
    clock.move(0.2 * 60)

    third = await given.identity()

    assert [first, second, third] == [bearer("token-1"), bearer("token-1"), bearer("token-2")]


async def test_short_lived_credentials_are_cached_too(tmp_path: Path) -> None:
    clock = SetClock(TWELVE)
    given = credentials(
        plugin(tmp_path, COUNTING, expirationTimestamp="2026-01-01T12:00:10Z"), clock
    )

    identities = [await given.identity(), await given.identity()]

    assert identities == [bearer("token-1")] * 2


async def test_refused_credentials_are_renewed_once_for_concurrent_requests(tmp_path: Path) -> None:
    given = credentials(plugin(tmp_path, COUNTING))
    refused = await given.identity()

    renewed = await asyncio.gather(*(given.renewed(refused) for _ in range(3)))

    assert renewed == [bearer("token-2")] * 3


async def test_a_plugin_that_fails_early_leaves_credentials_that_still_hold(
    tmp_path: Path,
) -> None:
    clock = SetClock(TWELVE)
    program = plugin(tmp_path, COUNTING, expirationTimestamp="2026-01-01T12:10:00Z")
    given = credentials(program, clock)
    await given.identity()
    (tmp_path / "plugin.py").write_text("raise SystemExit('signed out')")
    clock.move(9.5 * 60)
    still = await given.identity()
    clock.move(60)

    with pytest.raises(CredentialsRefused, match="it ended with 1"):
        await given.identity()

    assert still == bearer("token-1")


async def test_a_plugin_gets_the_exec_info(tmp_path: Path) -> None:
    program = plugin(tmp_path, ECHO)
    given = credentials(
        ExecPlugin(
            program.command,
            (*program.args, "--cluster", "a b"),
            (("MINE", "x"),),
            EXEC_V1BETA1,
            interactive_mode=NEVER,
            has_cluster_info=True,
        )
    )

    identity = await given.identity()

    info = json.loads(identity.authorization.removeprefix("Bearer "))
    assert info == [
        ["--cluster", "a b"],
        "x",
        {
            "apiVersion": EXEC_V1BETA1,
            "kind": "ExecCredential",
            "spec": {
                "interactive": False,
                "cluster": {
                    "server": "https://a",
                    "tls-server-name": "n",
                    "certificate-authority-data": "Q0E=",
                    "proxy-url": "http://p",
                    "config": {"b": 1},
                },
            },
        },
        "",
    ]


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("print('hello')", "what it printed cannot be read"),
        ("print('{}')", "is no ExecCredential"),
        ("import sys; sys.exit('please sign in')", "it ended with 1"),
        ("raise SystemExit(3)", "it ended with 3"),
        (
            COUNTING.replace('os.environ["VERSION"]', "'v9'"),
            "it printed an apiVersion that is not client.",
        ),
        (COUNTING.replace('status["token"]', 'status["expirationTimestamp"]'), "cannot be read"),
        (COUNTING.replace('status["token"]', 'status["other"]'), "neither a token nor"),
        (
            COUNTING.replace('status["token"]', 'status["clientKeyData"]'),
            "a certificate or a key, but not both",
        ),
    ],
)
async def test_a_plugin_that_gives_nothing_is_named(
    tmp_path: Path, source: str, problem: str
) -> None:
    with pytest.raises(CredentialsRefused) as raised:
        await credentials(plugin(tmp_path, source)).identity()

    assert problem in raised.value.message


async def test_an_expiry_without_a_time_zone_is_refused(tmp_path: Path) -> None:
    program = plugin(tmp_path, COUNTING, expirationTimestamp="2026-01-01T12:14:00")

    with pytest.raises(CredentialsRefused, match="without a time zone"):
        await credentials(program).identity()


async def test_a_plugin_that_hangs_is_stopped(tmp_path: Path) -> None:
    program = plugin(tmp_path, "import time; time.sleep(60)")

    with pytest.raises(CredentialsRefused, match=r"did not end within 0.2 s"):
        await credentials(program, seconds=0.2).identity()


async def test_a_plugin_that_is_not_installed_comes_with_its_own_hint() -> None:
    program = ExecPlugin("/nowhere/aws", install_hint="brew install it", interactive_mode=NEVER)

    with pytest.raises(CredentialsRefused) as raised:
        await credentials(program).identity()

    assert raised.value.hint == "brew install it"
    assert "No such file" in raised.value.message


async def test_a_plugin_that_needs_a_person_is_refused_without_one() -> None:
    program = ExecPlugin("/nowhere/aws", interactive_mode=ALWAYS)

    with pytest.raises(CredentialsRefused, match="there is no terminal"):
        await credentials(program).identity()
