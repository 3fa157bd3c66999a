"""Hostile paths, parameters and headers."""

from base64 import urlsafe_b64encode
from typing import Final

from tests.hostile.requests import CONFIG_MAPS, JSON, PODS, TRIED, Row, config_map, deep, dump

_MANY: Final = "1" * 60_000
_MAP: Final = dump(config_map())
_WATCH: Final = f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1"
_TOKEN: Final = {"Authorization": b"Bearer \xff\xfe"}


def _token(text: bytes) -> str:
    return urlsafe_b64encode(text).decode().rstrip("=")


def _listed(name: str, query: str, status: int = 400, real: int = 0) -> Row:
    return Row(name, "GET", f"{CONFIG_MAPS}?{query}", status, real=real)


def _watched(name: str, query: str, status: int = 400, real: int = 0) -> Row:
    return Row(name, "GET", f"{_WATCH}&{query}", status, real=real)


PARAMETERS: Final = (
    _listed("limit: negative", "limit=-1", real=200),
    _listed("limit: no number", "limit=abc"),
    _listed("limit: 60,000 digits", f"limit={_MANY}"),
    _listed("limit: 2^63", "limit=9223372036854775808"),
    _listed("limit: a float", "limit=1e400"),
    _listed("limit: empty", "limit="),
    _listed("limit: as Python writes it", "limit=1_0"),
    _listed("limit: digits of another script", "limit=%D9%A1"),
    _listed("limit: broken encoding", "limit=%", real=200),
    _listed("timeoutSeconds: no number", "timeoutSeconds=abc"),
    _listed("timeoutSeconds: negative", "timeoutSeconds=-1", real=200),
    _listed("timeoutSeconds: 1e400", "timeoutSeconds=1e400"),
    Row("watch: timeoutSeconds", "GET", f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1e400", 400),
    Row("watch: timeoutSeconds", "GET", f"{CONFIG_MAPS}?watch=1&timeoutSeconds={_MANY}", 400),
    _listed("version: 60,000 digits", f"resourceVersion={_MANY}"),
    _listed("version: no number", "resourceVersion=abc"),
    _listed("version: negative", "resourceVersion=-1"),
    _listed("version: a superscript", "resourceVersion=%C2%B2"),
    _listed("version: match", "resourceVersion=1&resourceVersionMatch=abc", 422),
    _watched("watch: version: no number", "resourceVersion=abc", real=500),
    _watched("watch: version: negative", "resourceVersion=-5", real=500),
    _watched("watch: version: 2^64", "resourceVersion=18446744073709551616", real=500),
    _watched("watch: version: 60,000 digits", f"resourceVersion={_MANY}", real=500),
    _watched("watch: labels", "labelSelector=((("),
    _watched("watch: fields", "fieldSelector=x"),
    _watched("watch: initial events", "sendInitialEvents=true", 422),
    _watched("watch: match", "sendInitialEvents=true&resourceVersionMatch=abc", 422),
    _listed("continue: garbage", "continue=abc"),
    _listed("continue: no ASCII", "continue=%E2%82%AC"),
    _listed("continue: no base64", "continue=%3D%3D%3D"),
    _listed("continue: long", f"continue={'A' * 60_000}"),
    _listed("continue: deep", f"continue={_token(deep(3000))}"),
    _listed(
        "continue: version",
        f"continue={_token(dump({'v': 'meta.k8s.io/v1', 'rv': 10**30, 'start': 'a'}))}",
    ),
    _listed("labels: no selector", "labelSelector=a+in+("),
    _listed("labels: 1 MB", f"labelSelector={'a' * 1_000_000}"),
    _listed("labels: NUL", "labelSelector=a%3D%00", real=200),
    _listed("labels: 60,000 digits", f"labelSelector=a%3E{_MANY}"),
    _listed("labels: not UTF-8", "labelSelector=%FF%FE"),
    _listed("labels: broken encoding", "labelSelector=%zz", real=200),
    _listed("fields: unknown", "fieldSelector=spec.nope%3D1"),
    _listed("fields: 1 MB", f"fieldSelector={'a' * 1_000_000}"),
    Row("dryRun", "POST", f"{CONFIG_MAPS}?dryRun=x", 422, _MAP),
    Row("manager: long", "POST", f"{CONFIG_MAPS}{TRIED}&fieldManager={_MANY}", 422, _MAP),
    Row("manager: NUL", "POST", f"{CONFIG_MAPS}{TRIED}&fieldManager=%00", 422, _MAP),
    Row("validation", "POST", f"{CONFIG_MAPS}{TRIED}&fieldValidation=x", 422, _MAP),
    Row(
        "grace: 2^63-1",
        "DELETE",
        f"{PODS}/base{TRIED}&gracePeriodSeconds={2**63 - 1}",
        422,
        real=200,
    ),
    Row("grace: 2^63", "DELETE", f"{PODS}/base{TRIED}&gracePeriodSeconds={2**63}", 400),
    Row("grace: no number", "DELETE", f"{PODS}/base{TRIED}&gracePeriodSeconds=abc", 400),
    Row("propagation", "DELETE", f"{PODS}/base{TRIED}&propagationPolicy=x", 422),
    Row("a collection: limit", "DELETE", f"{CONFIG_MAPS}{TRIED}&limit=-1", 400, real=200),
    Row("a collection: labels", "DELETE", f"{CONFIG_MAPS}{TRIED}&labelSelector=(((", 400),
)
NO_HTTP: Final = (
    Row("a query that is not UTF-8", "GET", b"%s?labelSelector=\xff" % CONFIG_MAPS.encode(), 400),
    Row("a path that is not UTF-8", "GET", b"%s/\xff" % CONFIG_MAPS.encode(), 400, real=404),
    Row("a method", "FROB", CONFIG_MAPS, 400, real=405),
    Row("a length", "POST", CONFIG_MAPS, 400, headers={**JSON, "Content-Length": "abc"}),
    Row(
        "a line of 2 MB",
        "GET",
        f"{CONFIG_MAPS}?labelSelector={'a' * 2_000_000}",
        400,
        real=431,
    ),
)
"""What does not get past the parser of HTTP, which says so in plain text."""
PATHS: Final = (
    Row("NUL", "GET", f"{CONFIG_MAPS}/%00", 404),
    Row("not UTF-8", "GET", f"{CONFIG_MAPS}/%FF", 404),
    Row("broken encoding", "GET", f"{CONFIG_MAPS}/%zz", 404, real=400),
    Row("half an encoding", "GET", f"{CONFIG_MAPS}/a%", 404, real=400),
    Row("dots", "GET", f"{CONFIG_MAPS}/..", 404, real=400),
    Row("a slash that is no slash", "GET", f"{CONFIG_MAPS}/a%2Fb", 404),
    Row("a name of 100 KB", "GET", f"{CONFIG_MAPS}/{'a' * 100_000}", 404),
    Row("a namespace of NUL", "POST", f"/api/v1/namespaces/%00/configmaps{TRIED}", 404, _MAP),
    Row("OPTIONS", "OPTIONS", CONFIG_MAPS, 405),
    Row("TRACE", "TRACE", CONFIG_MAPS, 405),
)
HEADERS: Final = (
    Row("Authorization: not UTF-8", "GET", CONFIG_MAPS, 401, headers=_TOKEN),
    Row(
        "Authorization: no token",
        "GET",
        CONFIG_MAPS,
        401,
        headers={"Authorization": "Basic x"},
        real=403,
    ),
    Row(
        "User-Agent: not UTF-8", "GET", CONFIG_MAPS, 400, headers={"User-Agent": b"\xff"}, real=200
    ),
    Row(
        "User-Agent: not UTF-8",
        "POST",
        f"{CONFIG_MAPS}{TRIED}",
        400,
        _MAP,
        {**JSON, "User-Agent": b"\xff"},
        real=201,
    ),
    Row("Accept: not UTF-8", "GET", CONFIG_MAPS, 400, headers={"Accept": b"\xff"}, real=406),
    Row("Accept: no type", "GET", CONFIG_MAPS, 406, headers={"Accept": "x"}),
    Row("Accept: nonsense", "GET", CONFIG_MAPS, 406, headers={"Accept": "////;;;===,,,"}),
    Row("Accept: long", "GET", CONFIG_MAPS, 406, headers={"Accept": "a," * 3000}),
    Row(
        "Accept: a table of the future",
        "GET",
        CONFIG_MAPS,
        406,
        headers={"Accept": "application/json;as=Table;v=v9;g=meta.k8s.io"},
    ),
    *(
        Row(
            f"Content-Type: {given!r}",
            "POST",
            f"{CONFIG_MAPS}{TRIED}",
            415,
            _MAP,
            {"Content-Type": given},
        )
        for given in ("text/plain", ";;;=", "application/x-www-form-urlencoded", "application/cbor")
    ),
    Row(
        "Content-Type: not UTF-8",
        "POST",
        f"{CONFIG_MAPS}{TRIED}",
        400,
        _MAP,
        {"Content-Type": b"\xff"},
        real=415,
    ),
    Row(
        "Content-Type of a patch",
        "PATCH",
        f"{CONFIG_MAPS}/base",
        415,
        b"{}",
        {"Content-Type": "text/plain"},
    ),
    Row(
        "Content-Encoding: no gzip",
        "POST",
        f"{CONFIG_MAPS}{TRIED}",
        400,
        b"no gzip",
        {**JSON, "Content-Encoding": "gzip"},
    ),
)
