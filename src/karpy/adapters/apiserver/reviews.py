"""Access and token reviews: a request with the token may do everything."""

from typing import Final

from aiohttp import web

from karpy.adapters.apiserver.bodies import read_any
from karpy.adapters.apiserver.calls import json_response
from karpy.adapters.apiserver.statuses import not_allowed
from karpy.codec.fields import JsonObject
from karpy.errors import BadRequest
from karpy.model.kinds import Kind

USER: Final = "kubernetes-admin"
_GROUPS: Final = ["system:masters", "system:authenticated"]
_WHO: Final = {"username": USER, "groups": _GROUPS}
_RULES: Final = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}


async def answer_review(request: web.Request, kind: Kind, token: str) -> web.Response:
    """Answer a request for a review."""
    if request.method != "POST":
        raise not_allowed()
    asked = await read_any(request, kind)
    for field in ("metadata", "spec"):
        if not isinstance(asked.get(field) or {}, dict):
            raise BadRequest(
                f'{kind.name} in version "{kind.version}" cannot be handled as a {kind.name}: '
                f"json: cannot unmarshal what is no object into {kind.name}.{field}",
                status=400,
            )
    named = {"kind": kind.name, "apiVersion": kind.api_version, **asked}
    return json_response(review(kind.name, named, token), status=201)


def review(kind: str, asked: JsonObject, token: str) -> JsonObject:
    """Return a review with its status."""
    match kind:
        case "SelfSubjectReview":
            status: JsonObject = {"userInfo": _WHO}
        case "TokenReview":
            is_ours = (asked.get("spec") or {}).get("token") == token
            status = {"authenticated": True, "user": _WHO} if is_ours else {"authenticated": False}
        case "SelfSubjectRulesReview":
            status = dict(_RULES)
        case _:
            status = {"allowed": True, "reason": "there is one user, who may do everything"}
    return {**asked, "metadata": asked.get("metadata") or {}, "status": status}
