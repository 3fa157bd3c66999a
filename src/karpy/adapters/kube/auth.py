"""Credentials: the current identity for the API server."""

import asyncio
from pathlib import Path
from typing import Final, Protocol

from karpy.adapters.kube.access import User, Withheld
from karpy.adapters.kube.addresses import basic_authorization
from karpy.errors import CredentialsRefused

FILE_SECONDS: Final = 60.0
"""How long a file's content is used before it is read again; kubelets rotate tokens far earlier
than they expire."""


class RequestCredentials(Withheld, frozen=True):
    """The credentials of a request: a header, a client certificate."""

    authorization: str = ""
    cert_pem: str = ""
    key_pem: str = ""
    headers: tuple[tuple[str, str], ...] = ()


class Credentials(Protocol):
    """Supplies the identity of a user for each request."""

    async def identity(self) -> RequestCredentials:
        """Return an identity that has not expired; raise CredentialsRefused if there is none."""

    async def renewed(self, refused: RequestCredentials) -> RequestCredentials:
        """Return a newer identity than the refused one, or the refused one if there is none."""


class FixedCredentials:
    """An identity that never changes: a token, a password or a certificate in the kubeconfig."""

    def __init__(self, user: User) -> None:
        self._identity = RequestCredentials(
            _authorization(user, user.token), user.cert_pem, user.key_pem, user.headers
        )

    async def identity(self) -> RequestCredentials:
        return self._identity

    async def renewed(self, refused: RequestCredentials) -> RequestCredentials:
        del refused
        return self._identity


class FileCredentials:
    """An identity in files that another program renews."""

    def __init__(self, user: User, seconds: float = FILE_SECONDS) -> None:
        self._user = user
        self._seconds = seconds
        self._identity: RequestCredentials | None = None
        self._read_at = 0.0

    async def identity(self) -> RequestCredentials:
        if self._identity is None:
            return self._read()
        if asyncio.get_running_loop().time() - self._read_at < self._seconds:
            return self._identity
        try:
            return self._read()
        except CredentialsRefused:
            # The files are being rotated; the old identity is used until the server refuses it.
            return self._identity

    async def renewed(self, refused: RequestCredentials) -> RequestCredentials:
        del refused
        return self._read()

    def _read(self) -> RequestCredentials:
        user = self._user
        token = _content(user.token_file).strip() if user.token_file else user.token
        self._identity = RequestCredentials(
            _authorization(user, token),
            user.cert_pem or (_content(user.cert_file) if user.cert_file else ""),
            user.key_pem or (_content(user.key_file) if user.key_file else ""),
            user.headers,
        )
        self._read_at = asyncio.get_running_loop().time()
        return self._identity


def bearer(token: str, source: str) -> str:
    """Return the Authorization header for a token; raise CredentialsRefused if it cannot be one."""
    if not token.isprintable():
        raise CredentialsRefused(
            source=source,
            problem="its token holds a line break or another control character",
            hint="have the token written anew, on one line",
        )
    return f"Bearer {token}" if token else ""


def _authorization(user: User, token: str) -> str:
    if token:
        return bearer(token, user.token_file or "kubeconfig")
    return "" if user.basic is None else basic_authorization(user.basic)


def _content(file: str) -> str:
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise CredentialsRefused(
            source=file,
            problem=f"it cannot be read: {error}",
            hint="check the path in the kubeconfig and the permissions of the file",
        ) from error
    if not text.strip():
        raise CredentialsRefused(
            source=file, problem="it is empty", hint="have the file written anew"
        )
    return text
