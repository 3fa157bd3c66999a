import pytest
from msgspec import json

from karpy.adapters.kube.failures import refusal
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
    Unauthorized,
)
from tests.adapters.kube.server import status


def error_of(code: int, reason: str, message: str = "no", **details: object) -> ClusterError:
    return refusal("get nodes `n1`", code, json.encode(status(code, reason, message, **details)))


@pytest.mark.parametrize(
    ("code", "reason", "error"),
    [
        (400, "BadRequest", BadRequest),
        (401, "Unauthorized", Unauthorized),
        (403, "Forbidden", Forbidden),
        (404, "NotFound", NotFound),
        (405, "MethodNotAllowed", BadRequest),
        (406, "NotAcceptable", BadRequest),
        (409, "AlreadyExists", AlreadyExists),
        (409, "Conflict", Conflict),
        (410, "Expired", Expired),
        (410, "Gone", Expired),
        (413, "RequestEntityTooLarge", BadRequest),
        (415, "UnsupportedMediaType", BadRequest),
        (422, "Invalid", Invalid),
        (429, "TooManyRequests", Throttled),
        (500, "InternalError", ServerFault),
        (503, "ServiceUnavailable", ServerFault),
        (504, "Timeout", ServerFault),
    ],
)
def test_a_status_becomes_the_error_of_its_code_and_reason(
    code: int, reason: str, error: type[ClusterError]
) -> None:
    failed = error_of(code, reason)

    assert type(failed) is error
    assert failed.status == code
    assert failed.message == f"cannot get nodes `n1`: no (HTTP {code})"


def test_causes_that_the_message_leaves_out_are_added() -> None:
    causes = [
        {"reason": "FieldValueInvalid", "message": "must be positive", "field": "spec.a"},
        {"message": "known already"},
    ]

    failed = error_of(422, "Invalid", "n1 is invalid: known already", causes=causes)

    assert failed.message == (
        "cannot get nodes `n1`: n1 is invalid: known already "
        "FieldValueInvalid: must be positive (HTTP 422)"
    )


def test_an_eviction_against_a_budget_names_it() -> None:
    cause = {"reason": "DisruptionBudget", "message": "The disruption budget web needs 2"}

    failed = error_of(429, "TooManyRequests", "Cannot evict pod", causes=[cause])

    assert isinstance(failed, Throttled)
    assert "DisruptionBudget: The disruption budget web needs 2" in failed.message
    assert "PodDisruptionBudget" in failed.hint


def test_retry_after_is_read_from_the_details() -> None:
    assert error_of(429, "TooManyRequests", retryAfterSeconds=7).retry_after == 7


@pytest.mark.parametrize(
    ("header", "seconds"), [("3", 3.0), ("", None), ("Wed, 21 Oct 2026 07:28:00 GMT", None)]
)
def test_retry_after_is_read_from_the_header(header: str, seconds: float | None) -> None:
    assert refusal("get", 503, b"", header).retry_after == seconds


@pytest.mark.parametrize(
    ("code", "body", "error", "message"),
    [
        (404, b"404 page not found\n", NotFound, "404 page not found"),
        (503, b"<html>\n<b>no backend</b>", ServerFault, "<html> <b>no backend</b>"),
        (502, b"", ServerFault, "it said no more"),
        (302, b'{"kind": "Pod"}', AnswerMalformed, '{"kind": "Pod"}'),
        (403, b"\xff\xfe", Forbidden, "\ufffd\ufffd"),
    ],
)
def test_an_answer_without_a_status_is_judged_by_its_code(
    code: int, body: bytes, error: type[ClusterError], message: str
) -> None:
    failed = refusal("get nodes `n1`", code, body)

    assert type(failed) is error
    assert failed.message == f"cannot get nodes `n1`: {message} (HTTP {code})"
