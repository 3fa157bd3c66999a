"""Resources without stored objects."""

import pytest

from tests.adapters.apiserver.stranger import PODS, Stranger, pod

AUTHORIZATION = "/apis/authorization.k8s.io/v1"
AUTHENTICATION = "/apis/authentication.k8s.io/v1"


@pytest.mark.parametrize(
    "path",
    [
        f"{AUTHORIZATION}/selfsubjectaccessreviews",
        f"{AUTHORIZATION}/subjectaccessreviews",
        f"{AUTHORIZATION}/namespaces/default/localsubjectaccessreviews",
    ],
)
async def test_everything_is_allowed(client: Stranger, path: str) -> None:
    spec = {"resourceAttributes": {"verb": "delete", "resource": "pods"}}

    reply = await client.post(path, {"spec": spec})

    assert (reply.status, reply.body["status"]["allowed"]) == (201, True)
    assert reply.body["spec"] == spec


async def test_all_rules_are_one(client: Stranger) -> None:
    reply = await client.post(f"{AUTHORIZATION}/selfsubjectrulesreviews", {"spec": {}})

    assert reply.body["status"]["resourceRules"][0]["verbs"] == ["*"]


async def test_a_self_review_returns_the_user(client: Stranger) -> None:
    reply = await client.post(f"{AUTHENTICATION}/selfsubjectreviews", {})

    assert reply.body["kind"] == "SelfSubjectReview"
    assert reply.body["status"]["userInfo"]["username"] == "kubernetes-admin"


async def test_a_wrong_token_is_unauthorized(client: Stranger) -> None:
    reply = await client.post(f"{AUTHENTICATION}/tokenreviews", {"spec": {"token": "wrong"}})

    assert reply.body["status"] == {"authenticated": False}


@pytest.mark.parametrize(
    ("method", "part"),
    [
        ("GET", "log"),
        ("POST", "exec"),
        ("POST", "attach"),
        ("POST", "portforward"),
        ("GET", "proxy"),
        ("PATCH", "ephemeralcontainers"),
    ],
)
async def test_containers_are_politely_not_there(client: Stranger, method: str, part: str) -> None:
    await client.post(PODS, pod("a"))

    reply = await client.ask(method, f"{PODS}/a/{part}")

    assert reply.status == 400
    assert 'pod "a" is simulated: there are no containers here' in reply.message


async def test_the_log_of_no_pod_is_not_found(client: Stranger) -> None:
    reply = await client.get(f"{PODS}/nope/log")

    assert (reply.status, reply.message) == (404, 'pods "nope" not found')


@pytest.mark.parametrize("path", ["nodes", "namespaces/default/pods", "pods"])
async def test_metrics_are_refused(client: Stranger, path: str) -> None:
    reply = await client.get(f"/apis/metrics.k8s.io/v1beta1/{path}")

    assert (reply.status, reply.body["reason"]) == (503, "ServiceUnavailable")
    assert "there are no containers here" in reply.message


async def test_service_accounts_have_no_tokens(client: Stranger) -> None:
    path = "/api/v1/namespaces/default/serviceaccounts/default/token"

    reply = await client.post(path, {})

    assert (reply.status, "gets no token" in reply.message) == (400, True)
