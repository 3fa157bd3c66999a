from karpy.codec.fields import JsonObject
from tests.adapters.apiserver.stranger import Stranger

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def by_name(items: list[JsonObject], key: str = "name") -> dict[str, JsonObject]:
    return {each[key]: each for each in items}


async def test_core_resources_are_listed_with_their_parts(client: Stranger) -> None:
    reply = await client.get("/api/v1")

    found = by_name(reply.body["resources"])
    assert found["pods"]["shortNames"] == ["po"]
    assert found["pods"]["categories"] == ["all"]
    assert "deletecollection" in found["pods"]["verbs"]
    assert "deletecollection" not in found["namespaces"]["verbs"]
    assert found["pods/log"]["verbs"] == ["get"]
    assert found["pods/eviction"] == {
        "name": "pods/eviction",
        "singularName": "",
        "namespaced": True,
        "group": "policy",
        "version": "v1",
        "kind": "Eviction",
        "verbs": ["create"],
    }


async def test_a_scale_is_of_the_group_autoscaling(client: Stranger) -> None:
    reply = await client.get("/apis/apps/v1")

    scale = by_name(reply.body["resources"])["deployments/scale"]
    assert (scale["group"], scale["version"], scale["kind"]) == ("autoscaling", "v1", "Scale")


async def test_groups_name_their_versions(client: Stranger) -> None:
    reply = await client.get("/apis")

    found = by_name(reply.body["groups"])
    assert found["karpenter.sh"]["preferredVersion"]["version"] == "v1"
    assert [each["version"] for each in found["karpenter.sh"]["versions"]] == ["v1", "v1alpha1"]


async def test_a_group_is_served_alone(client: Stranger) -> None:
    reply = await client.get("/apis/apps")

    assert (reply.body["kind"], reply.body["name"]) == ("APIGroup", "apps")


async def test_the_core_says_its_versions(client: Stranger) -> None:
    reply = await client.get("/api")

    assert (reply.body["kind"], reply.body["versions"]) == ("APIVersions", ["v1"])


async def test_discovery_can_be_aggregated(client: Stranger) -> None:
    reply = await client.ask("GET", "/apis", headers={"Accept": f"{AGGREGATED},application/json"})

    assert reply.headers["Content-Type"] == AGGREGATED
    groups = {each["metadata"]["name"]: each["versions"] for each in reply.body["items"]}
    deployments = by_name(groups["apps"][0]["resources"], "resource")["deployments"]
    assert deployments["scope"] == "Namespaced"
    assert [each["subresource"] for each in deployments["subresources"]] == ["scale", "status"]


async def test_aggregated_discovery_of_the_core_group_has_no_other_group(client: Stranger) -> None:
    reply = await client.get("/api", AGGREGATED)

    resources = by_name(reply.body["items"][0]["versions"][0]["resources"], "resource")
    assert (len(reply.body["items"]), "pods" in resources) == (1, True)
    assert "deployments" not in resources


async def test_the_first_acceptable_form_is_chosen(client: Stranger) -> None:
    reply = await client.get("/apis", f"application/json,{AGGREGATED}")

    assert reply.body["kind"] == "APIGroupList"


async def test_what_is_not_served_is_not_found(client: Stranger) -> None:
    statuses = [
        (await client.get(path)).status
        for path in ("/apis/nope", "/apis/apps/v9", "/api/v2", "/foo", "/openapi/v3/apis/nope/v1")
    ]

    assert statuses == [404] * 5


async def test_the_root_lists_paths(client: Stranger) -> None:
    reply = await client.get("/")

    assert {"/api/v1", "/apis/apps/v1", "/openapi/v3"} <= set(reply.body["paths"])


async def test_a_new_definition_is_served_at_once(client: Stranger) -> None:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object"}},
    }
    names = {"kind": "Gadget", "plural": "gadgets", "singular": "gadget", "shortNames": ["gd"]}
    await client.post(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "gadgets.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Cluster",
                "names": names,
                "versions": [version],
            },
        },
    )

    reply = await client.get("/apis/example.com/v1")

    assert by_name(reply.body["resources"])["gadgets"]["shortNames"] == ["gd"]
