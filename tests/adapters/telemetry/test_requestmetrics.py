import pytest

from karpy.adapters.telemetry.requestmetrics import RequestMetrics, request_labels
from tests.adapters.telemetry.books import Book

CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/api/v1/pods", ("LIST", "", "v1", "pods", "")),
        ("GET", "/api/v1/nodes/n1", ("GET", "", "v1", "nodes", "")),
        ("GET", "/api/v1/namespaces/shop", ("GET", "", "v1", "namespaces", "")),
        ("GET", "/api/v1/namespaces", ("LIST", "", "v1", "namespaces", "")),
        ("GET", "/api/v1/namespaces/shop/pods", ("LIST", "", "v1", "pods", "")),
        (
            "POST",
            "/api/v1/namespaces/shop/pods/web/eviction",
            ("CREATE", "", "v1", "pods", "eviction"),
        ),
        ("POST", CLAIMS, ("CREATE", "karpenter.sh", "v1", "nodeclaims", "")),
        ("PUT", f"{CLAIMS}/a", ("UPDATE", "karpenter.sh", "v1", "nodeclaims", "")),
        ("PATCH", f"{CLAIMS}/a/status", ("PATCH", "karpenter.sh", "v1", "nodeclaims", "status")),
        ("DELETE", f"{CLAIMS}/a", ("DELETE", "karpenter.sh", "v1", "nodeclaims", "")),
        ("GET", "/version", None),
        ("GET", "/apis", None),
        ("GET", "/api/v1", None),
        ("GET", "/apis/apps/v1", None),
        ("GET", "/", None),
    ],
)
def test_a_request_is_known_by_its_path(
    method: str, path: str, expected: tuple[str, ...] | None
) -> None:
    assert request_labels(method, path) == expected


def test_requests_are_counted_by_their_answers() -> None:
    book = Book()
    requests = RequestMetrics(book.metrics, "10.0.0.1:6443")

    requests.answered("GET", f"{CLAIMS}/a", 200, 0.25)
    requests.answered("GET", f"{CLAIMS}/b", 404, 0.5)
    requests.answered("POST", CLAIMS, 0, 1.0)
    requests.answered("GET", "/version", 200, 2.0)

    counted = {"200 GET": 2.0, "404 GET": 1.0, "<error> POST": 1.0}
    duration = "client_go_request_duration_seconds_sum"
    assert book.told("client_go_request_total", "code", "method") == counted
    assert book.told("rest_client_requests_total", "code", "method") == counted
    assert book.labels("rest_client_requests_total")[0]["host"] == "10.0.0.1:6443"
    assert book.told(duration, "verb", "kind") == {"GET nodeclaims": 0.75, "CREATE nodeclaims": 1.0}
