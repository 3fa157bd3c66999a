"""Metrics of requests to the API server, by names that every client in Go has."""

from collections.abc import Callable
from typing import Final

from karpy.adapters.telemetry.metrics import Metrics

_VERBS: Final = {"POST": "CREATE", "PUT": "UPDATE"}
_NO_ANSWER: Final = "<error>"
_API, _APIS, _NAMESPACES = "api", "apis", "namespaces"


class RequestMetrics:
    """Counts requests to one server and measures how long its answers take."""

    def __init__(self, metrics: Metrics, host: str) -> None:
        self._metrics = metrics
        self._host = host
        self._counted: dict[tuple[str, int], tuple[Callable[[float], None], ...]] = {}
        self._measured: dict[tuple[str, ...], Callable[[float], None]] = {}

    def answered(self, method: str, path: str, status: int, seconds: float) -> None:
        """Hear of a request: what was asked, the answer (0 is none), and how long that took."""
        for count in self._counts(method, status):
            count(1.0)
        labels = request_labels(method, path)
        if labels is None:
            return
        measure = self._measured.get(labels)
        if measure is None:
            names = ("verb", "group", "version", "kind", "subresource")
            measure = self._measured[labels] = self._metrics.meter(
                "client_go_request_duration_seconds", dict(zip(names, labels, strict=True))
            )
        measure(seconds)

    def _counts(self, method: str, status: int) -> tuple[Callable[[float], None], ...]:
        known = self._counted.get((method, status))
        if known is None:
            labels = {"code": str(status) if status else _NO_ANSWER, "method": method}
            known = self._counted[method, status] = (
                self._metrics.meter("client_go_request_total", labels),
                self._metrics.meter("rest_client_requests_total", {**labels, "host": self._host}),
            )
        return known


def request_labels(method: str, path: str) -> tuple[str, str, str, str, str] | None:
    """Read verb, group, version, resource and subresource off a request; None of other paths."""
    root, *parts = path.strip("/").split("/")
    group = ""
    if root == _APIS and parts:
        group, *parts = parts
    elif root != _API:
        return None
    if not parts:
        return None
    version, *parts = parts
    if parts[:1] == [_NAMESPACES] and parts[2:]:
        parts = parts[2:]
    if not parts:
        return None
    kind, *rest = parts
    verb = _VERBS.get(method, method)
    if method == "GET" and not rest:
        verb = "LIST"
    return verb, group, version, kind, rest[1] if len(rest) > 1 else ""
