from typing import Final

import pytest

from karpy.adapters.kube.api import KubeApi
from karpy.adapters.kube.transport import Transport
from karpy.errors import AnswerMalformed, BadRequest, Expired, ServerFault, Unreachable
from karpy.model.kinds import DEPLOYMENT, NODE, NODE_POOL, POD
from karpy.ports.objects import (
    EventType,
    Page,
    Patch,
    PatchType,
    Query,
    Removal,
    WatchEvent,
)
from tests.adapters.kube.server import (
    ScriptedServer,
    bookmark,
    event,
    hang,
    json,
    page,
    pod,
    status,
    stream,
    text,
)

FROM: Final = "from here"
MORE: Final = "more"


async def test_an_object_is_read(server: ScriptedServer, api: KubeApi) -> None:
    server.says(json(pod("web-1", "7")))

    found = await api.get(POD, "web-1", "shop")

    assert found == pod("web-1", "7")
    assert server.paths == ["/api/v1/namespaces/shop/pods/web-1"]


async def test_objects_that_are_nested_too_deep_for_a_decoder_are_read(
    server: ScriptedServer, api: KubeApi
) -> None:
    deep = '{"metadata": {"name": "web-1", "managedFields": ' + "[" * 4900 + "]" * 4900 + "}}"
    server.says(text(deep), text('{"metadata": {"resourceVersion": "9"}, "items": [' + deep + "]}"))

    found = await api.get(POD, "web-1", "shop")
    listed = await api.list(POD)

    names = [each["metadata"]["name"] for each in (found, *listed.items)]
    assert names == ["web-1", "web-1"]


async def test_a_cluster_scoped_object_has_no_namespace_in_its_path(
    server: ScriptedServer, api: KubeApi
) -> None:
    server.says(json({"metadata": {"name": "a/b"}}))

    await api.get(NODE_POOL, "a/b")

    assert server.paths == ["/apis/karpenter.sh/v1/nodepools/a%2Fb"]


async def test_a_list_asks_with_selectors_and_says_what_its_objects_are(
    server: ScriptedServer, api: KubeApi
) -> None:
    server.says(page(pod("b", "2"), pod("a", "1"), version="9", token=MORE))
    query = Query("shop", "app=web,!old", "spec.nodeName=n1")

    found = await api.list(POD, query, limit=2, token=FROM)

    head = {"apiVersion": "v1", "kind": "Pod"}
    assert found == Page(({**pod("a", "1"), **head}, {**pod("b", "2"), **head}), "9", MORE)
    assert server.asked[0].path == "/api/v1/namespaces/shop/pods"
    assert server.asked[0].params == {
        "labelSelector": "app=web,!old",
        "fieldSelector": "spec.nodeName=n1",
        "limit": "2",
        "continue": FROM,
    }


async def test_a_page_states_how_many_items_remain(server: ScriptedServer, api: KubeApi) -> None:
    meta = {"resourceVersion": "1", "continue": "x", "remainingItemCount": 40}
    server.says(json({"metadata": meta, "items": None}))

    assert await api.list(NODE) == Page((), "1", "x", 40)


async def test_a_watch_delivers_events_and_bookmarks_until_the_server_ends_it(
    server: ScriptedServer, api: KubeApi
) -> None:
    added, changed = pod("a", "5"), pod("a", "6")
    server.says(stream(event("ADDED", added), event("MODIFIED", changed), bookmark("8")))

    events = [each async for each in api.watch(POD, Query("shop"), since="4", seconds=20)]

    assert events == [
        WatchEvent(EventType.ADDED, added, "5"),
        WatchEvent(EventType.MODIFIED, changed, "6"),
        WatchEvent(EventType.BOOKMARK, bookmark("8")["object"], "8"),
    ]
    assert server.asked[0].params == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": "4",
        "timeoutSeconds": "20",
    }


async def test_a_watch_ends_when_its_time_is_over_though_the_server_goes_on(
    server: ScriptedServer, api: KubeApi
) -> None:
    server.says(stream(event("ADDED", pod("a", "5")), then="hang"))

    events = [each.version async for each in api.watch(POD, since="4", seconds=0.5)]

    assert events == ["5"]


async def test_an_event_may_be_larger_than_any_buffer(server: ScriptedServer, api: KubeApi) -> None:
    large = pod("a", "5", data="x" * 3_000_000)
    server.says(stream(event("ADDED", large), bookmark("6")))

    events = [each async for each in api.watch(POD, since="4")]

    assert [each.version for each in events] == ["5", "6"]
    assert events[0].object == large


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (event("ERROR", status(410, "Expired", "too old")), Expired),
        (event("ERROR", status(500, "InternalError", "etcd")), ServerFault),
        (event("ERROR", {"code": "no number"}), AnswerMalformed),
        (event("ADDED", {"metadata": {"name": "a"}}), AnswerMalformed),
        (b"<html>\n", AnswerMalformed),
        (b'{"type":"ADDED","obj', Unreachable),
    ],
)
async def test_an_error_of_a_watch_is_raised(
    server: ScriptedServer, api: KubeApi, line: object, error: type[Exception]
) -> None:
    server.says(stream(line))

    with pytest.raises(error, match="cannot watch pods"):
        await anext(api.watch(POD, since="4"))


async def test_a_watch_that_is_cut_off_is_not_mistaken_for_one_that_ended(
    server: ScriptedServer, api: KubeApi
) -> None:
    server.says(stream(bookmark("5"), then="cut"))

    with pytest.raises(Unreachable):
        [each async for each in api.watch(POD, since="4")]


async def test_a_watch_gives_up_on_a_silent_server(server: ScriptedServer, api: KubeApi) -> None:
    server.says(stream(bookmark("5"), then="hang"))

    with pytest.raises(Unreachable, match="does not answer in time"):
        [each async for each in api.watch(POD, since="4")]


async def test_a_watch_may_be_refused_at_once(server: ScriptedServer, api: KubeApi) -> None:
    server.says(json(status(410, "Expired"), 410))

    with pytest.raises(Expired):
        await anext(api.watch(POD, since="1"))


async def test_a_create_states_kind_and_field_manager(
    server: ScriptedServer, transport: Transport
) -> None:
    server.says(json({"metadata": {"name": "default"}}, 201))
    api = KubeApi(transport, manager="tests", field_validation="Strict")
    pool = {"metadata": {"generateName": "pool-"}, "spec": {}}

    made = await api.create(NODE_POOL, pool, dry_run=True)

    assert made == {"metadata": {"name": "default"}}
    assert server.asked[0].method == "POST"
    assert server.asked[0].path == "/apis/karpenter.sh/v1/nodepools"
    assert server.asked[0].body == {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", **pool}
    assert server.asked[0].params == {
        "fieldManager": "tests",
        "fieldValidation": "Strict",
        "dryRun": "All",
    }


@pytest.mark.parametrize(
    ("subresource", "version", "kind"),
    [("eviction", "policy/v1", "Eviction"), ("binding", "v1", "Binding")],
)
async def test_an_eviction_or_a_binding_goes_to_its_pod(
    server: ScriptedServer, api: KubeApi, subresource: str, version: str, kind: str
) -> None:
    server.says(json({"kind": "Status", "status": "Success"}, 201))
    wish = {"metadata": {"name": "web-1", "namespace": "shop"}}

    await api.create(POD, wish, subresource=subresource)

    assert server.paths == [f"/api/v1/namespaces/shop/pods/web-1/{subresource}"]
    assert server.asked[0].body == {"apiVersion": version, "kind": kind, **wish}


@pytest.mark.parametrize("subresource", ["status", "scale"])
async def test_a_part_of_an_object_is_replaced(
    server: ScriptedServer, api: KubeApi, subresource: str
) -> None:
    server.says(json({}))
    wish = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "resourceVersion": "3"},
    }

    await api.replace(DEPLOYMENT, wish, subresource=subresource)

    assert server.asked[0].method == "PUT"
    assert server.paths == [f"/apis/apps/v1/namespaces/shop/deployments/web/{subresource}"]
    assert server.asked[0].body == wish


@pytest.mark.parametrize("kind", [PatchType.JSON, PatchType.MERGE, PatchType.STRATEGIC])
async def test_a_patch_says_how_to_read_it(
    server: ScriptedServer, api: KubeApi, kind: PatchType
) -> None:
    server.says(json({}))

    await api.patch(
        POD, "web-1", Patch(kind, {"a": 1}, "me"), namespace="shop", subresource="status"
    )

    asked = server.asked[0]
    assert (asked.method, asked.path) == ("PATCH", "/api/v1/namespaces/shop/pods/web-1/status")
    assert asked.headers["Content-Type"] == kind.value
    assert asked.params == {"fieldManager": "me"}
    assert asked.body == {"a": 1}


async def test_an_apply_states_its_type_and_may_force_conflicts(
    server: ScriptedServer, api: KubeApi
) -> None:
    server.says(json({}))
    patch = Patch(PatchType.APPLY, {"spec": {}}, is_forced=True)

    await api.patch(NODE, "n1", patch, dry_run=True)

    assert server.asked[0].params == {"fieldManager": "karpy", "force": "true", "dryRun": "All"}
    assert server.asked[0].body == {"apiVersion": "v1", "kind": "Node", "spec": {}}


async def test_a_delete_carries_its_conditions(server: ScriptedServer, api: KubeApi) -> None:
    server.says(json({"kind": "Status", "status": "Success"}))
    removal = Removal(grace_seconds=0, uid="u", version="7", propagation="Foreground")

    await api.delete(POD, "web-1", namespace="shop", removal=removal)

    assert server.asked[0].body == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": "u", "resourceVersion": "7"},
        "propagationPolicy": "Foreground",
    }


async def test_a_plain_delete_has_no_options(server: ScriptedServer, api: KubeApi) -> None:
    server.says(json({}))

    await api.delete(NODE, "n1")

    assert server.asked[0].body == {"apiVersion": "v1", "kind": "DeleteOptions"}


async def test_a_delete_without_a_name_does_not_become_a_delete_of_all(
    server: ScriptedServer, api: KubeApi
) -> None:
    with pytest.raises(BadRequest, match="no name is given"):
        await api.delete(NODE, "")

    assert server.asked == []


async def test_an_object_of_a_namespaced_kind_needs_one(
    server: ScriptedServer, api: KubeApi
) -> None:
    with pytest.raises(BadRequest, match="it has no namespace"):
        await api.get(POD, "web-1")

    assert server.asked == []


@pytest.mark.parametrize("body", ["<html>login</html>", "[1]", '{"metadata": {"name": "a"'])
async def test_an_answer_that_is_not_an_object_is_malformed(
    server: ScriptedServer, api: KubeApi, body: str
) -> None:
    server.says(text(body))

    with pytest.raises(AnswerMalformed, match="cannot get nodes `n1`: the answer is not an object"):
        await api.get(NODE, "n1")


async def test_an_answer_that_is_not_a_list_is_malformed(
    server: ScriptedServer, api: KubeApi
) -> None:
    server.says(json({"items": [3]}))

    with pytest.raises(AnswerMalformed, match="the answer is not a list"):
        await api.list(NODE)


async def test_a_server_that_never_answers_is_unreachable(
    server: ScriptedServer, api: KubeApi
) -> None:
    server.says(hang)

    with pytest.raises(Unreachable, match="cannot watch nodes"):
        await anext(api.watch(NODE, since="1"))
