"""Exec plugins: commands such as `aws eks get-token` that print credentials which expire."""

import asyncio
import errno
import os
import shutil
import sys
from base64 import b64encode
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec

from karpy.adapters.kube.access import ALWAYS, IF_AVAILABLE, Endpoint, User, Withheld
from karpy.adapters.kube.addresses import join_login
from karpy.adapters.kube.auth import RequestCredentials, bearer
from karpy.codec.fields import JsonObject
from karpy.errors import CredentialsRefused
from karpy.ports.clock import Clock

_EARLIEST: Final = timedelta(seconds=60)
"""Earliest renewal before the expiry; credentials with a short life are renewed later."""
_SHARE: Final = 0.2
_SECONDS_MAX: Final = 60.0
"""Longest run of a plugin that asks the user nothing; after it the plugin counts as hung."""
_BY_HAND: Final = "run the command by hand: what it prints may be secret and is not repeated here"


class _Status(Withheld, frozen=True, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _Credential(Withheld, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _Status | None = None


class ExecCredentials:
    """Credentials that a plugin printed, kept until they expire soon or the server refuses them."""

    def __init__(
        self,
        user: User,
        endpoint: Endpoint,
        clock: Clock,
        *,
        seconds: float = _SECONDS_MAX,
        env: Mapping[str, str] = os.environ,
    ) -> None:
        assert user.plugin is not None
        self._plugin = user.plugin
        self._user = user
        self._endpoint = endpoint
        self._clock = clock
        self._seconds = seconds
        self._env = env
        self._lock = asyncio.Lock()
        self._identity: RequestCredentials | None = None
        self._expires: datetime | None = None
        self._renew_at: datetime | None = None

    async def identity(self) -> RequestCredentials:
        if self._identity is not None and not self._is_past(self._renew_at):
            return self._identity
        async with self._lock:
            if self._identity is not None and not self._is_past(self._renew_at):
                return self._identity
            try:
                return await self._ask()
            except CredentialsRefused:
                if self._identity is None or self._is_past(self._expires):
                    raise
                return self._identity

    async def renewed(self, refused: RequestCredentials) -> RequestCredentials:
        async with self._lock:
            if self._identity is not None and self._identity != refused:
                return self._identity
            return await self._ask()

    def _is_past(self, moment: datetime | None) -> bool:
        return moment is not None and self._clock.now() >= moment

    async def _ask(self) -> RequestCredentials:
        status = self._read(await self._run())
        now, expires = self._clock.now(), status.expiration_timestamp
        self._expires = expires
        self._renew_at = None
        if expires is not None:
            self._renew_at = expires - min(_EARLIEST, max(timedelta(), expires - now) * _SHARE)
        self._identity = RequestCredentials(
            bearer(status.token, self._plugin.command),
            status.client_certificate_data,
            status.client_key_data,
            self._user.headers,
        )
        return self._identity

    async def _run(self) -> bytes:
        plugin = self._plugin
        is_interactive = plugin.interactive_mode in {ALWAYS, IF_AVAILABLE} and sys.stdin.isatty()
        if plugin.interactive_mode == ALWAYS and not is_interactive:
            raise self._refused(
                "it wants to ask a person, and there is no terminal",
                "use credentials that need no person, or `interactiveMode: IfAvailable`",
            )
        info = msgspec.json.encode(self._info(is_interactive=is_interactive)).decode()
        env = {**self._env, **dict(plugin.env), "KUBERNETES_EXEC_INFO": info}
        try:
            process = await asyncio.create_subprocess_exec(
                self._program(),
                *plugin.args,
                env=env,
                stdin=None if is_interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=None if is_interactive else asyncio.subprocess.DEVNULL,
            )
        except OSError as error:
            raise self._refused(
                f"it cannot be started: {error.strerror or error}",
                plugin.install_hint.strip() or "install the command, or give its whole path",
            ) from error
        return await self._output(process, None if is_interactive else self._seconds)

    def _program(self) -> str:
        """Return the path of the command; a name without a folder is looked up in PATH only."""
        command = self._plugin.command
        if Path(command).name != command:
            return command
        # An empty or relative folder in PATH would run a file of the current folder.
        folders = filter(os.path.isabs, self._env.get("PATH", "").split(os.pathsep))
        found = shutil.which(command, path=os.pathsep.join(folders))
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "it is in no folder of PATH")
        return found

    async def _output(self, process: asyncio.subprocess.Process, seconds: float | None) -> bytes:
        try:
            async with asyncio.timeout(seconds):
                output, _ = await process.communicate()
        except TimeoutError as error:
            raise self._refused(f"it did not end within {seconds:g} s", _BY_HAND) from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            raise self._refused(f"it ended with {process.returncode}", _BY_HAND)
        return output

    def _info(self, *, is_interactive: bool) -> JsonObject:
        spec: JsonObject = {"interactive": is_interactive}
        if self._plugin.has_cluster_info:
            spec["cluster"] = _cluster_info(self._endpoint)
        return {"apiVersion": self._plugin.api_version, "kind": "ExecCredential", "spec": spec}

    def _read(self, output: bytes) -> _Status:
        hint = "run the command by hand: it must print an ExecCredential"
        try:
            credential = msgspec.json.decode(output, type=_Credential)
        except msgspec.DecodeError as error:
            raise self._refused(f"what it printed cannot be read: {error}", hint) from error
        if credential.kind != "ExecCredential" or credential.status is None:
            raise self._refused("what it printed is no ExecCredential with a status", hint)
        wanted = self._plugin.api_version
        if credential.api_version != wanted:
            raise self._refused(
                f"it printed an apiVersion that is not {wanted}",
                "set `apiVersion` of the exec plugin in the kubeconfig to what the command speaks",
            )
        status = credential.status
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise self._refused("it gave a certificate or a key, but not both", hint)
        if not status.token and not status.client_certificate_data:
            raise self._refused("it gave neither a token nor a certificate", hint)
        expires = status.expiration_timestamp
        if expires is not None and expires.tzinfo is None:
            raise self._refused("it gave an expiry without a time zone", hint)
        return status

    def _refused(self, problem: str, hint: str) -> CredentialsRefused:
        return CredentialsRefused(source=self._plugin.command, problem=problem, hint=hint)


def _cluster_info(endpoint: Endpoint) -> JsonObject:
    info: JsonObject = {"server": endpoint.server}
    if endpoint.tls_name:
        info["tls-server-name"] = endpoint.tls_name
    if not endpoint.is_verified:
        info["insecure-skip-tls-verify"] = True
    if endpoint.ca_pem:
        info["certificate-authority-data"] = b64encode(endpoint.ca_pem.encode()).decode()
    if endpoint.proxy:
        info["proxy-url"] = join_login(endpoint.proxy, endpoint.proxy_login)
    if endpoint.exec_config is not None:
        info["config"] = endpoint.exec_config
    return info
