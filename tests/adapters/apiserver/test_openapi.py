from karpy.adapters.apiserver.openapi import NO_SCHEMAS
from tests.adapters.apiserver.stranger import Stranger

GVK = "x-kubernetes-group-version-kind"
DEPLOYMENT = {"group": "apps", "version": "v1", "kind": "Deployment"}


async def test_the_index_names_every_group_and_version(client: Stranger) -> None:
    reply = await client.get("/openapi/v3")

    paths = reply.body["paths"]
    assert {"api/v1", "apis/apps/v1", "apis/karpenter.sh/v1"} <= set(paths)
    url = paths["apis/apps/v1"]["serverRelativeURL"]
    assert (await client.get(url)).body["openapi"] == "3.0.0"


async def test_the_address_of_schemas_changes_with_their_definition(client: Stranger) -> None:
    path = "apis/karpenter.sh/v1"
    before = (await client.get("/openapi/v3")).body["paths"]
    crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/nodepools.karpenter.sh"
    await client.patch(crd, {"metadata": {"labels": {"a": "b"}}}, "application/merge-patch+json")

    after = (await client.get("/openapi/v3")).body["paths"]

    assert after[path] != before[path]
    assert after["api/v1"] == before["api/v1"]


async def test_patching_takes_what_kubectl_looks_for(client: Stranger) -> None:
    reply = await client.get("/openapi/v3/apis/apps/v1")

    patch = reply.body["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert patch[GVK] == DEPLOYMENT
    assert {"fieldValidation", "dryRun"} <= {each["name"] for each in patch["parameters"]}
    assert "application/strategic-merge-patch+json" in patch["requestBody"]["content"]


async def test_schemas_say_how_lists_merge(client: Stranger) -> None:
    reply = await client.get("/openapi/v3/api/v1")

    containers = reply.body["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]["properties"][
        "containers"
    ]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-list-map-keys"] == ["name"]
    assert containers["description"] == "The containers; at least one."


async def test_schemas_refer_to_schemas_that_are_there(client: Stranger) -> None:
    reply = await client.ask("GET", "/openapi/v3/apis/batch/v1")

    schemas = reply.body["components"]["schemas"]
    assert _references(schemas) <= set(schemas)


async def test_a_custom_resource_has_its_own_schema(client: Stranger) -> None:
    reply = await client.get("/openapi/v3/apis/karpenter.sh/v1")

    schema = reply.body["components"]["schemas"]["sh.karpenter.v1.NodePool"]
    path = reply.body["paths"]["/apis/karpenter.sh/v1/nodepools/{name}"]
    assert schema[GVK] == [{"group": "karpenter.sh", "version": "v1", "kind": "NodePool"}]
    assert "disruption" in schema["properties"]["spec"]["properties"]
    assert "allOf" in schema["properties"]["metadata"]
    content = path["patch"]["requestBody"]["content"]
    assert "application/strategic-merge-patch+json" not in content


async def test_the_openapi_2_document_is_served_as_json(client: Stranger) -> None:
    protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"

    as_json = await client.get("/openapi/v2")
    as_protobuf = await client.get("/openapi/v2", protobuf)

    # kubectl fails on status 406; on a document without schemas it says "no matches for kind".
    assert as_protobuf.status == 200
    assert NO_SCHEMAS.decode() in str(as_protobuf.body)
    definitions = as_json.body["definitions"]
    assert definitions["io.k8s.api.apps.v1.Deployment"][GVK] == [DEPLOYMENT]
    assert definitions["io.k8s.api.core.v1.Pod"]["properties"]["spec"]["allOf"] == [
        {"$ref": "#/definitions/io.k8s.api.core.v1.PodSpec"}
    ]


def _references(value: object) -> set[str]:
    if isinstance(value, list):
        return set().union(*(_references(each) for each in value))
    if not isinstance(value, dict):
        return set()
    found = set().union(*(_references(each) for each in value.values()))
    ref = value.get("$ref")
    return found | {ref.rpartition("/")[2]} if isinstance(ref, str) else found
