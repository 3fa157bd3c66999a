import pytest
import yaml

from karpy.sim.world import World
from tests.adapters.apiserver.stranger import (
    CONFIG_MAPS,
    METADATA,
    NODE_POOLS,
    PODS,
    TABLE,
    Stranger,
    config_map,
    node_pool,
    pod,
)


async def test_an_object_comes_as_it_is(client: Stranger) -> None:
    made = await client.post(CONFIG_MAPS, config_map("a", key="value"))

    reply = await client.get(f"{CONFIG_MAPS}/a")

    assert (reply.status, reply.body) == (200, made.body)


async def test_a_list_states_the_kind_of_its_items_once(client: Stranger) -> None:
    await client.post(CONFIG_MAPS, config_map("a"))

    reply = await client.get("/api/v1/configmaps")

    assert (reply.body["kind"], reply.body["apiVersion"]) == ("ConfigMapList", "v1")
    assert "kind" not in reply.body["items"][0]


async def test_items_of_custom_resources_state_their_kind(client: Stranger) -> None:
    await client.post(NODE_POOLS, node_pool("a"))

    reply = await client.get(NODE_POOLS)

    assert reply.body["kind"] == "NodePoolList"
    assert reply.body["items"][0]["kind"] == "NodePool"


async def test_a_list_comes_in_pages(client: Stranger) -> None:
    await client.post_all(CONFIG_MAPS, *(config_map(name) for name in "abc"))

    first = await client.get(f"{CONFIG_MAPS}?limit=2")
    token = first.body["metadata"]["continue"]
    second = await client.get(f"{CONFIG_MAPS}?limit=2&continue={token}")

    assert first.body["metadata"]["remainingItemCount"] == 1
    assert [each["metadata"]["name"] for each in second.body["items"]] == ["c"]
    assert "continue" not in second.body["metadata"]


async def test_selectors_select(client: Stranger) -> None:
    await client.post(PODS, pod("a"))
    labelled = pod("b")
    labelled["metadata"]["labels"] = {"app": "web"}
    await client.post(PODS, labelled)

    by_label = await client.get(f"{PODS}?labelSelector=app%3Dweb")
    by_field = await client.get("/api/v1/pods?fieldSelector=metadata.name%3Da")

    assert [each["metadata"]["name"] for each in by_label.body["items"]] == ["b"]
    assert [each["metadata"]["name"] for each in by_field.body["items"]] == ["a"]


async def test_a_table_has_columns_and_cells(client: Stranger) -> None:
    await client.post(PODS, pod("a"))

    reply = await client.get(PODS, f"{TABLE},application/json")

    heads = [each["name"] for each in reply.body["columnDefinitions"]]
    row = reply.body["rows"][0]
    assert heads[:5] == ["Name", "Ready", "Status", "Restarts", "Age"]
    assert row["cells"][:3] == ["a", "0/1", "Pending"]
    assert (row["object"]["kind"], row["object"]["metadata"]["name"]) == (
        "PartialObjectMetadata",
        "a",
    )
    assert reply.body["metadata"]["resourceVersion"]


@pytest.mark.parametrize(("include", "kind"), [("Object", "Pod"), ("None", None)])
async def test_a_row_includes_the_requested_object(
    client: Stranger, include: str, kind: str | None
) -> None:
    await client.post(PODS, pod("a"))

    reply = await client.get(f"{PODS}?includeObject={include}", TABLE)

    assert reply.body["rows"][0].get("object", {}).get("kind") == kind


async def test_a_single_object_can_be_a_table(client: Stranger) -> None:
    await client.post(CONFIG_MAPS, config_map("a", x="1", y="2"))

    reply = await client.get(f"{CONFIG_MAPS}/a", TABLE)

    assert [row["cells"][:2] for row in reply.body["rows"]] == [["a", 2]]


async def test_metadata_alone_is_served(client: Stranger) -> None:
    await client.post(CONFIG_MAPS, config_map("a", x="1"))

    one = await client.get(f"{CONFIG_MAPS}/a", METADATA)
    many = await client.get(CONFIG_MAPS, METADATA.replace("Metadata", "MetadataList"))

    assert (one.body["kind"], "data" in one.body) == ("PartialObjectMetadata", False)
    assert many.body["kind"] == "PartialObjectMetadataList"
    assert many.body["items"] == [one.body]


async def test_yaml_is_served(client: Stranger) -> None:
    await client.post(CONFIG_MAPS, config_map("a", x="1"))

    reply = await client.get(f"{CONFIG_MAPS}/a", "application/yaml")

    assert yaml.safe_load(reply.body)["data"] == {"x": "1"}


async def test_an_unsupported_form_is_not_acceptable(client: Stranger) -> None:
    reply = await client.get(PODS, "application/vnd.kubernetes.protobuf")

    assert (reply.status, reply.body["reason"]) == (406, "NotAcceptable")


async def test_protobuf_falls_back_to_json(client: Stranger) -> None:
    reply = await client.get(PODS, "application/vnd.kubernetes.protobuf,application/json")

    assert reply.body["kind"] == "PodList"


async def test_a_scale_can_be_read(client: Stranger) -> None:
    await client.post(NODE_POOLS, node_pool("a", replicas=3))

    reply = await client.get(f"{NODE_POOLS}/a/scale")

    assert (reply.body["kind"], reply.body["spec"]) == ("Scale", {"replicas": 3})


async def test_a_status_is_the_object(client: Stranger) -> None:
    await client.post(PODS, pod("a"))

    reply = await client.get(f"{PODS}/a/status")

    assert (reply.body["kind"], reply.body["metadata"]["name"]) == ("Pod", "a")


async def test_a_list_as_of_a_future_version_is_refused(client: Stranger) -> None:
    reply = await client.get(f"{CONFIG_MAPS}?resourceVersion=999999")

    assert (reply.status, reply.body["reason"]) == (504, "Timeout")
    assert reply.body["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


async def test_an_expired_version_cannot_be_listed_exactly(client: Stranger, world: World) -> None:
    version = world.store.version
    await client.post(CONFIG_MAPS, config_map("a"))

    path = f"{CONFIG_MAPS}?resourceVersion={version}"
    newer = await client.get(f"{path}&resourceVersionMatch=NotOlderThan")
    exactly = await client.get(f"{path}&resourceVersionMatch=Exact")

    assert newer.status == 200
    assert (exactly.status, exactly.body["reason"]) == (410, "Expired")


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        ("limit=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ("labelSelector=a%20b", 400, "unable to parse requirement"),
        ("fieldSelector=data.x=1", 400, "not a known field selector"),
        ("continue=nonsense", 400, "continue key is not valid"),
        ("resourceVersionMatch=Exact", 422, "forbidden unless resourceVersion is provided"),
        ("resourceVersion=1&resourceVersionMatch=Soon", 422, "Unsupported value"),
        ("sendInitialEvents=true", 422, "forbidden for list"),
        ("resourceVersion=0&resourceVersionMatch=Exact", 422, "is forbidden for resourceVersion"),
        ("resourceVersion=1&continue=x", 400, "not allowed when using continue"),
    ],
)
async def test_a_list_with_invalid_options_is_refused(
    client: Stranger, query: str, status: int, message: str
) -> None:
    reply = await client.get(f"{CONFIG_MAPS}?{query}")

    assert reply.status == status
    assert message in reply.message


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/nope",
        "/api/v1/namespaces/default/nodes",
        "/api/v1/pods/a",
        f"{CONFIG_MAPS}/a/foo",
        f"{PODS}/a/status/more",
        "/apis/karpenter.sh/v9/nodepools",
    ],
)
async def test_a_path_that_leads_nowhere_is_not_found(client: Stranger, path: str) -> None:
    reply = await client.get(path)

    assert reply.status == 404
    assert reply.message == "the server could not find the requested resource"
    assert reply.body["details"] == {}


async def test_an_eviction_cannot_be_read(client: Stranger) -> None:
    reply = await client.get(f"{PODS}/a/eviction")

    assert (reply.status, reply.body["reason"]) == (405, "MethodNotAllowed")
