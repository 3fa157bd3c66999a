"""Failed requests as errors of Karpy: from the Status of a server, or from a missing answer."""

import asyncio
import ssl
from collections.abc import Mapping
from typing import Final

import aiohttp
import msgspec
from msgspec import Struct

from karpy.errors import (
    AlreadyExists,
    AnswerMalformed,
    BadRequest,
    ClusterError,
    Conflict,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
    ServerFault,
    Throttled,
    TlsRefused,
    Unauthorized,
    Unreachable,
)

_SHOWN_MAX: Final = 400
_BUDGET: Final = "DisruptionBudget"
_BY_STATUS: Final[Mapping[int, type[ClusterError]]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Expired,
    422: Invalid,
    429: Throttled,
}
_SERVER_FAULTS: Final = 500
_REFUSALS: Final = 400
_WRONG_NAME: Final = (62, 64)
"""OpenSSL's codes for a certificate with another host name or address."""
_EXPIRED: Final = 10


class _Cause(Struct):
    reason: str = ""
    message: str = ""
    field: str = ""


class _Details(Struct, rename="camel"):
    causes: list[_Cause] | None = None
    retry_after_seconds: float | None = None


class _Status(Struct):
    kind: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: _Details | None = None


_decoder: Final = msgspec.json.Decoder(_Status)


def refusal(what: str, status: int, body: bytes, retry_after: str = "") -> ClusterError:
    """Return the error for an answer that is not a success; `what` says what the request does."""
    try:
        reply = _decoder.decode(body)
    except msgspec.DecodeError:
        reply = _Status()
    if reply.kind != "Status":
        text = " ".join(body.decode(errors="replace").split())[:_SHOWN_MAX]
        reply = _Status(message=text or "it said no more")
    return _error(what, status, reply, _seconds(retry_after))


def refusal_in_stream(what: str, raw: bytes | msgspec.Raw) -> ClusterError:
    """Return the error for an ERROR event of a watch."""
    try:
        reply = _decoder.decode(raw)
    except msgspec.DecodeError as error:
        return AnswerMalformed(f"cannot {what}: it ended with an error that is none: {error}")
    return _error(what, reply.code, reply, None)


def _error(what: str, status: int, reply: _Status, retry_after: float | None) -> ClusterError:
    details = reply.details or _Details()
    causes = [
        f"{each.reason}: {each.message}" if each.reason else each.message
        for each in details.causes or ()
        if each.message and each.message not in reply.message
    ]
    message = f"cannot {what}: {' '.join((reply.message, *causes))} (HTTP {status})"
    hint = ""
    if any(each.reason == _BUDGET for each in details.causes or ()):
        hint = "wait until more pods of the PodDisruptionBudget are healthy, or loosen it"
    return _class_of(status, reply.reason)(
        message,
        status=status,
        retry_after=retry_after if retry_after is not None else details.retry_after_seconds,
        hint=hint,
        causes=tuple(each.reason for each in details.causes or () if each.reason),
    )


def _class_of(status: int, reason: str) -> type[ClusterError]:
    if status >= _SERVER_FAULTS:
        return ServerFault
    if reason == "AlreadyExists":
        return AlreadyExists
    if reason in {"Expired", "Gone"}:
        return Expired
    if status < _REFUSALS:
        return AnswerMalformed
    return _BY_STATUS.get(status, BadRequest)


def _seconds(text: str) -> float | None:
    # HTTP also allows a date, which API servers do not send.
    return float(text) if text.isdecimal() else None


def no_answer(what: str, server: str, error: Exception) -> ClusterError:
    """Return the error for a request without an answer, or with an incomplete one."""
    if (refused := _tls_error(error)) is not None:
        return _tls_refusal(what, server, refused)
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return Unreachable(
            f"cannot {what}: the proxy says {error.status} {error.message} to {server}",
            hint="check `proxy-url` in the kubeconfig, or HTTPS_PROXY and NO_PROXY",
        )
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return Unreachable(
            f"cannot {what}: the proxy to {server} does not answer: {error}",
            hint="check `proxy-url` in the kubeconfig, or HTTPS_PROXY and NO_PROXY",
        )
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return Unreachable(f"cannot {what}: the host of {server} has no address")
    if isinstance(error, asyncio.TimeoutError):
        return Unreachable(f"cannot {what}: {server} does not answer in time")
    if isinstance(error, aiohttp.ClientConnectorError):
        return Unreachable(f"cannot {what}: no connection to {server}: {error.strerror}")
    if isinstance(error, aiohttp.ClientResponseError):
        return AnswerMalformed(f"cannot {what}: {server} does not speak HTTP: {error.message}")
    return Unreachable(f"cannot {what}: the connection to {server} broke: {error!r}")


def _tls_error(error: BaseException | None) -> ssl.SSLError | ssl.CertificateError | None:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        inner = error.certificate_error
        return inner if isinstance(inner, ssl.SSLError | ssl.CertificateError) else None
    while error is not None:
        if isinstance(error, ssl.SSLError | ssl.CertificateError):
            return error
        error = error.__cause__ or getattr(error, "os_error", None)
    return None


def _tls_refusal(
    what: str, server: str, error: ssl.SSLError | ssl.CertificateError
) -> ClusterError:
    code = getattr(error, "verify_code", 0)
    problem = getattr(error, "verify_message", "") or getattr(error, "reason", "") or str(error)
    hint = ""
    if code in _WRONG_NAME:
        hint = "use a server address that its certificate names, or set `tls-server-name`"
    elif code == _EXPIRED:
        hint = "have the server's certificate renewed, or check the clock of this machine"
    elif not code:
        hint = "check that the server speaks TLS and accepts the client certificate"
    return TlsRefused(f"cannot {what}: no TLS with {server}: {problem}", hint=hint)
