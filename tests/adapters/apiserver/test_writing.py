import pytest

from karpy.model.kinds import POD
from karpy.sim.world import World
from tests.adapters.apiserver.stranger import (
    APPLY,
    CONFIG_MAPS,
    JSON_PATCH,
    MERGE,
    NODE_POOLS,
    PODS,
    STRATEGIC,
    Stranger,
    config_map,
    node_pool,
    pod,
)

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 0,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod("x")["spec"]},
    },
}


async def test_what_is_made_is_created(client: Stranger) -> None:
    reply = await client.post(CONFIG_MAPS, config_map("a", x="1"))

    meta = reply.body["metadata"]
    assert (reply.status, meta["namespace"], reply.body["data"]) == (201, "default", {"x": "1"})


async def test_a_body_may_be_yaml(client: Stranger) -> None:
    text = b"metadata: {name: a}\ndata:\n  when: '2026-01-01'\n"

    reply = await client.ask(
        "POST", CONFIG_MAPS, data=text, headers={"Content-Type": "application/yaml"}
    )

    assert (reply.status, reply.body["data"]) == (201, {"when": "2026-01-01"})


async def test_a_dry_run_leaves_no_trace(client: Stranger) -> None:
    made = await client.post(f"{CONFIG_MAPS}?dryRun=All", config_map("a"))
    found = await client.get(f"{CONFIG_MAPS}/a")

    assert (made.status, found.status) == (201, 404)


async def test_who_writes_is_noted(client: Stranger) -> None:
    named = await client.post(f"{CONFIG_MAPS}?fieldManager=me", config_map("a", x="1"))
    unnamed = await client.ask(
        "POST", CONFIG_MAPS, config_map("b", x="1"), headers={"User-Agent": "tool/v1 (linux)"}
    )

    assert named.body["metadata"]["managedFields"][0]["manager"] == "me"
    assert unnamed.body["metadata"]["managedFields"][0]["manager"] == "tool"


async def test_an_object_is_replaced(client: Stranger) -> None:
    await client.post(CONFIG_MAPS, config_map("a", x="1"))

    reply = await client.ask("PUT", f"{CONFIG_MAPS}/a", config_map("a", x="2"))

    assert (reply.status, reply.body["data"]) == (200, {"x": "2"})


@pytest.mark.parametrize(
    ("media", "patch", "data"),
    [
        (MERGE, {"data": {"x": None, "y": "2"}}, {"y": "2"}),
        (STRATEGIC, {"data": {"y": "2"}}, {"x": "1", "y": "2"}),
        (JSON_PATCH, [{"op": "replace", "path": "/data/x", "value": "3"}], {"x": "3"}),
    ],
)
async def test_an_object_is_patched(
    client: Stranger, media: str, patch: object, data: dict[str, str]
) -> None:
    await client.post(CONFIG_MAPS, config_map("a", x="1"))

    reply = await client.patch(f"{CONFIG_MAPS}/a", patch, media)

    assert (reply.status, reply.body["data"]) == (200, data)


async def test_applying_makes_and_then_changes(client: Stranger) -> None:
    path = f"{CONFIG_MAPS}/a?fieldManager=me"

    first = await client.patch(path, config_map("a", x="1"), APPLY)
    second = await client.ask(
        "PATCH",
        path,
        data=b"apiVersion: v1\nkind: ConfigMap\ndata: {y: '2'}\n",
        headers={"Content-Type": APPLY},
    )

    assert (first.status, second.status) == (201, 200)
    assert second.body["data"] == {"y": "2"}


async def test_a_conflict_of_managers_is_reported_by_field(client: Stranger) -> None:
    await client.patch(f"{CONFIG_MAPS}/a?fieldManager=me", config_map("a", x="1"), APPLY)
    path = f"{CONFIG_MAPS}/a?fieldManager=you"

    refused = await client.patch(path, config_map("a", x="2"), APPLY)
    forced = await client.patch(f"{path}&force=true", config_map("a", x="2"), APPLY)

    assert (refused.status, refused.body["reason"]) == (409, "Conflict")
    assert refused.body["details"]["causes"][0]["reason"] == "FieldManagerConflict"
    assert (forced.status, forced.body["data"]) == (200, {"x": "2"})


async def test_a_scale_is_written(client: Stranger) -> None:
    await client.post(DEPLOYMENTS, DEPLOYMENT)

    put = await client.ask(
        "PUT", f"{DEPLOYMENTS}/web/scale", {"metadata": {"name": "web"}, "spec": {"replicas": 2}}
    )
    patched = await client.patch(f"{DEPLOYMENTS}/web/scale", {"spec": {"replicas": 3}}, MERGE)

    assert (put.body["kind"], put.body["spec"]["replicas"]) == ("Scale", 2)
    assert patched.body["spec"]["replicas"] == 3


async def test_a_status_is_written_apart(client: Stranger) -> None:
    await client.post(NODE_POOLS, node_pool("a", weight=1))

    reply = await client.patch(
        f"{NODE_POOLS}/a/status", {"spec": {"weight": 2}, "status": {"nodes": 3}}, MERGE
    )

    assert (reply.body["spec"]["weight"], reply.body["status"]["nodes"]) == (1, 3)


@pytest.mark.parametrize("path", [f"{PODS}/a/binding", "/api/v1/namespaces/default/bindings"])
async def test_a_pod_is_bound(client: Stranger, world: World, path: str) -> None:
    world.store.create(POD, {**pod("a", schedulerName="mine"), "metadata": _in_default("a")})
    target = {"apiVersion": "v1", "kind": "Node", "name": "somewhere"}

    reply = await client.post(path, {"metadata": {"name": "a"}, "target": target})

    assert (reply.status, reply.body["status"]) == (201, "Success")
    assert world.store.get(POD, "a", "default")["spec"]["nodeName"] == "somewhere"


async def test_a_pod_is_evicted(client: Stranger) -> None:
    await client.post(PODS, pod("a", schedulerName="mine"))

    reply = await client.post(
        f"{PODS}/a/eviction",
        {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}},
    )

    assert (reply.status, reply.body["status"]) == (201, "Success")
    assert (await client.get(f"{PODS}/a")).status == 404


async def test_an_eviction_of_v1beta1_is_accepted(client: Stranger) -> None:
    await client.post(PODS, pod("a", schedulerName="mine"))

    reply = await client.post(
        f"{PODS}/a/eviction", {"apiVersion": "policy/v1beta1", "kind": "Eviction"}
    )

    assert reply.status == 201


async def test_a_budget_that_is_spent_says_so(client: Stranger) -> None:
    labelled = pod("a", schedulerName="mine")
    labelled["metadata"]["labels"] = {"app": "web"}
    await client.post(PODS, labelled)
    await client.patch(f"{PODS}/a/status", {"status": {"phase": "Running"}}, MERGE)
    await client.post(
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        {
            "metadata": {"name": "keep"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
        },
    )

    reply = await client.post(f"{PODS}/a/eviction", {"metadata": {"name": "a"}})

    assert (reply.status, reply.body["reason"]) == (429, "TooManyRequests")
    assert reply.body["details"]["causes"][0]["reason"] == "DisruptionBudget"


def _in_default(name: str) -> dict[str, str]:
    return {"name": name, "namespace": "default"}
