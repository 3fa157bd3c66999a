"""Refused requests, and the messages of their errors."""

import pytest

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


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", f"{CONFIG_MAPS}/a"),
        ("POST", "/api/v1/configmaps"),
        ("PUT", CONFIG_MAPS),
        ("PATCH", CONFIG_MAPS),
        ("PUT", f"{PODS}/a/eviction"),
        ("DELETE", f"{PODS}/a/status"),
        ("DELETE", "/api/v1/configmaps"),
        ("DELETE", "/api/v1/namespaces"),
        ("PUT", "/apis"),
        ("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
        ("GET", "/api/v1/namespaces/default/bindings"),
    ],
)
async def test_an_unsupported_method_is_not_allowed(
    client: Stranger, method: str, path: str
) -> None:
    reply = await client.ask(method, path)

    assert (reply.status, reply.body["reason"]) == (405, "MethodNotAllowed")


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        (b"", "json parse error"),
        (b"{", "json parse error"),
        (b"[]", "is no object"),
        (b'{"kind": "Pod", "apiVersion": "v1"}', "cannot be handled as a ConfigMap"),
        (b'{"apiVersion": "v2"}', "does not match the expected API version (v1)"),
        (b'{"metadata": {"namespace": "other"}}', "does not match the namespace sent"),
        (b'{"metadata": []}', "Go struct field ConfigMap.metadata of type v1.ObjectMeta"),
        (b'{"data": {"x": 1}}', "Go struct field ConfigMap.data.x of type string"),
        (b'{"data": []}', "Go struct field ConfigMap.data of type map[string]string"),
        (b'{"immutable": "yes"}', "Go struct field ConfigMap.immutable of type bool"),
        (b'{"binaryData": {"x": "?"}}', "illegal base64 data in binaryData.x"),
    ],
)
async def test_a_body_that_is_no_such_object_is_a_bad_request(
    client: Stranger, obj: bytes, message: str
) -> None:
    reply = await client.ask("POST", CONFIG_MAPS, data=obj)

    assert (reply.status, reply.body["reason"]) == (400, "BadRequest")
    assert message in reply.message


async def test_yaml_that_is_none_is_a_bad_request(client: Stranger) -> None:
    reply = await client.ask(
        "POST", CONFIG_MAPS, data=b"a: [", headers={"Content-Type": "application/yaml"}
    )

    assert (reply.status, reply.body["reason"]) == (400, "BadRequest")


async def test_an_unknown_form_is_not_supported(client: Stranger) -> None:
    headers = {"Content-Type": "text/plain"}

    posted = await client.ask("POST", CONFIG_MAPS, data=b"{}", headers=headers)
    patched = await client.ask("PATCH", f"{CONFIG_MAPS}/a", data=b"{}", headers=headers)

    assert (posted.status, patched.status) == (415, 415)
    assert STRATEGIC in patched.message


async def test_custom_resources_know_no_strategic_merge(client: Stranger) -> None:
    await client.post(NODE_POOLS, node_pool("a"))

    reply = await client.patch(f"{NODE_POOLS}/a", {}, STRATEGIC)

    assert (reply.status, reply.body["reason"]) == (415, "UnsupportedMediaType")
    assert STRATEGIC not in reply.message


async def test_a_custom_resource_says_what_it_is(client: Stranger) -> None:
    anonymous = {key: value for key, value in node_pool("a").items() if key != "kind"}

    reply = await client.post(NODE_POOLS, anonymous)

    assert reply.status == 400


async def test_the_name_is_that_of_the_path(client: Stranger) -> None:
    await client.post(CONFIG_MAPS, config_map("a"))

    reply = await client.ask("PUT", f"{CONFIG_MAPS}/a", config_map("b"))

    assert reply.message == "the name of the object (b) does not match the name on the URL (a)"


WRONG = {**pod("a"), "spec": {**pod("a")["spec"], "nodename": "x", "volumes": [{"nme": "v"}]}}


async def test_unknown_fields_are_refused_if_strictly_validated(client: Stranger) -> None:
    reply = await client.post(f"{PODS}?fieldValidation=Strict", WRONG)

    assert reply.status == 400
    assert reply.message == (
        'Pod in version "v1" cannot be handled as a Pod: strict decoding error: '
        'unknown field "spec.nodename", unknown field "spec.volumes[0].nme"'
    )


async def test_unknown_fields_are_warned_of_and_dropped(client: Stranger) -> None:
    obj = {**config_map("a"), "dta": {}}

    warned = await client.post(CONFIG_MAPS, obj)
    ignored = await client.post(
        f"{CONFIG_MAPS}?fieldValidation=Ignore", {**obj, "metadata": {"name": "b"}}
    )

    assert warned.headers["Warning"] == '299 - "unknown field \\"dta\\""'
    assert "dta" not in warned.body
    assert (ignored.status, "Warning" in ignored.headers) == (201, False)


async def test_unknown_fields_of_custom_resources_are_found_by_their_schema(
    client: Stranger,
) -> None:
    pool = node_pool("a", weigth=1)
    pool["metadata"]["lables"] = {}
    pool["spec"]["template"]["spec"]["requirements"][0]["vals"] = []

    reply = await client.post(f"{NODE_POOLS}?fieldValidation=Strict", pool)

    assert reply.status == 400
    assert reply.message.endswith(
        'unknown field "metadata.lables", unknown field '
        '"spec.template.spec.requirements[0].vals", unknown field "spec.weigth"'
    )


async def test_what_a_schema_leaves_open_is_known(client: Stranger) -> None:
    pool = node_pool("a", limits={"example.com/gpu": "3"})

    reply = await client.post(f"{NODE_POOLS}?fieldValidation=Strict", pool)

    assert reply.status == 201


@pytest.mark.parametrize("media", [MERGE, STRATEGIC])
async def test_a_patch_with_unknown_fields_is_invalid_if_strict(
    client: Stranger, media: str
) -> None:
    await client.post(CONFIG_MAPS, config_map("a"))

    reply = await client.patch(f"{CONFIG_MAPS}/a?fieldValidation=Strict", {"dta": {}}, media)

    assert (reply.status, reply.body["reason"]) == (422, "Invalid")
    assert reply.body["details"]["causes"][0]["field"] == "patch"
    assert 'unknown field "dta"' in reply.message


@pytest.mark.parametrize(
    ("media", "query", "patch", "status"),
    [
        (MERGE, "", [], 400),
        (JSON_PATCH, "", {}, 400),
        (JSON_PATCH, "", [1], 400),
        (MERGE, "?force=true", {}, 422),
        (APPLY, "", config_map("a"), 422),
        (APPLY, "?fieldManager=me", config_map("b"), 400),
        (MERGE, "", {"data": []}, 422),
        (MERGE, "?dryRun=Some", {}, 422),
        (MERGE, "?fieldValidation=Some", {}, 422),
    ],
)
async def test_a_patch_with_invalid_options_is_refused(
    client: Stranger, media: str, query: str, patch: object, status: int
) -> None:
    await client.post(CONFIG_MAPS, config_map("a"))

    reply = await client.patch(f"{CONFIG_MAPS}/a{query}", patch, media)

    assert reply.status == status


async def test_a_refusal_names_its_object(client: Stranger) -> None:
    await client.post(CONFIG_MAPS, config_map("a"))

    reply = await client.post(CONFIG_MAPS, config_map("a"))

    assert (reply.status, reply.body["reason"]) == (409, "AlreadyExists")
    assert reply.body["details"] == {"name": "a", "kind": "configmaps"}


async def test_a_missing_namespace_is_named(client: Stranger) -> None:
    reply = await client.post("/api/v1/namespaces/nowhere/configmaps", config_map("a"))

    assert reply.status == 404
    assert reply.body["details"] == {"name": "nowhere", "kind": "namespaces"}


async def test_a_stale_write_is_a_conflict(client: Stranger) -> None:
    made = (await client.post(CONFIG_MAPS, config_map("a"))).body
    await client.patch(f"{CONFIG_MAPS}/a", {"data": {"x": "1"}}, MERGE)

    reply = await client.ask("PUT", f"{CONFIG_MAPS}/a", made)

    assert (reply.status, reply.body["reason"]) == (409, "Conflict")
    assert reply.body["details"] == {"name": "a", "kind": "configmaps"}


async def test_faults_of_an_object_are_reported_by_field(client: Stranger) -> None:
    reply = await client.post(NODE_POOLS, node_pool("a", weight=500))

    assert (reply.status, reply.body["reason"]) == (422, "Invalid")
    details = reply.body["details"]
    assert (details["kind"], details["name"], details["group"]) == (
        "NodePool",
        "a",
        "karpenter.sh",
    )
    assert [each["field"] for each in details["causes"]] == ["spec.weight"]
