import pytest

from karpy import errors
from karpy.adapters.apiserver.statuses import failure
from karpy.codec.fields import JsonObject
from karpy.errors import ClusterError
from karpy.model.kinds import DEPLOYMENT, NODE_POOL


@pytest.mark.parametrize(
    ("error", "code", "reason"),
    [
        (errors.Unreachable("no"), 503, "ServiceUnavailable"),
        (errors.TlsRefused("no"), 503, "ServiceUnavailable"),
        (errors.Unauthorized("no"), 401, "Unauthorized"),
        (errors.Forbidden("no"), 403, "Forbidden"),
        (errors.NotFound("no"), 404, "NotFound"),
        (errors.AlreadyExists("no"), 409, "AlreadyExists"),
        (errors.Conflict("no"), 409, "Conflict"),
        (errors.Expired("no"), 410, "Expired"),
        (errors.Invalid("no"), 422, "Invalid"),
        (errors.Throttled("no"), 429, "TooManyRequests"),
        (errors.BadRequest("no"), 400, "BadRequest"),
        (errors.BadRequest("no", status=405), 405, "MethodNotAllowed"),
        (errors.BadRequest("no", status=415), 415, "UnsupportedMediaType"),
        (errors.ServerFault("no"), 500, "InternalError"),
        (errors.ServerFault("no", status=504), 504, "Timeout"),
        (errors.AnswerMalformed("no"), 500, "InternalError"),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, ClusterError) else str(each),
)
def test_every_error_has_a_code_and_a_reason(error: ClusterError, code: int, reason: str) -> None:
    status = failure(error)

    assert (status["status"], status["message"]) == ("Failure", "no")
    assert (status["code"], status["reason"]) == (code, reason)


@pytest.mark.parametrize(
    ("error", "details"),
    [
        (
            errors.NotFound('pods "a" not found'),
            {"name": "a", "kind": "pods"},
        ),
        (
            errors.Conflict('Operation cannot be fulfilled on nodepools.karpenter.sh "a": stale'),
            {"name": "a", "group": "karpenter.sh", "kind": "nodepools"},
        ),
        (errors.NotFound("nothing there"), {"name": "web", "group": "apps", "kind": "deployments"}),
        (errors.BadRequest("what?"), {}),
        (errors.Throttled("later", retry_after=10.5), {"retryAfterSeconds": 10}),
    ],
)
def test_details_name_the_object(error: ClusterError, details: JsonObject) -> None:
    assert failure(error, DEPLOYMENT, "web")["details"] == details


def test_the_causes_of_a_message_are_parsed() -> None:
    error = errors.Invalid(
        'NodePool.karpenter.sh "a" is invalid: [spec.weight: Invalid value: 500: at most 100, '
        'spec.kind: Unsupported value: "x": supported values: "y", "z", spec.name: Required value]'
    )

    details = failure(error, NODE_POOL, "a")["details"]

    assert (details["kind"], details["group"], details["name"]) == (
        "NodePool",
        "karpenter.sh",
        "a",
    )
    assert details["causes"] == [
        {
            "reason": "FieldValueInvalid",
            "message": "Invalid value: 500: at most 100",
            "field": "spec.weight",
        },
        {
            "reason": "FieldValueNotSupported",
            "message": 'Unsupported value: "x": supported values: "y", "z"',
            "field": "spec.kind",
        },
        {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.name"},
    ]
