import pytest

from tests.adapters.apiserver.stranger import (
    CONFIG_MAPS,
    PODS,
    Stranger,
    config_map,
    pod,
)


async def test_a_deletion_at_once_returns_a_status(client: Stranger) -> None:
    made = await client.post(CONFIG_MAPS, config_map("a"))

    reply = await client.ask("DELETE", f"{CONFIG_MAPS}/a")

    assert reply.body["status"] == "Success"
    assert reply.body["details"] == {
        "name": "a",
        "kind": "configmaps",
        "uid": made.body["metadata"]["uid"],
    }


async def test_a_held_deletion_returns_the_object(client: Stranger) -> None:
    held = config_map("a")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await client.post(CONFIG_MAPS, held)

    reply = await client.ask("DELETE", f"{CONFIG_MAPS}/a")

    assert (reply.status, reply.body["kind"]) == (200, "ConfigMap")
    assert reply.body["metadata"]["deletionTimestamp"]


async def test_a_deletion_returns_the_pod_even_if_it_is_gone(client: Stranger) -> None:
    await client.post(PODS, pod("a", schedulerName="mine"))

    reply = await client.ask("DELETE", f"{PODS}/a?gracePeriodSeconds=0")

    assert (reply.body["kind"], (await client.get(f"{PODS}/a")).status) == ("Pod", 404)


@pytest.mark.parametrize(
    ("query", "body"), [("?dryRun=All", None), ("", {"dryRun": ["All"], "kind": "DeleteOptions"})]
)
async def test_a_dry_run_deletes_nothing(client: Stranger, query: str, body: object) -> None:
    await client.post(CONFIG_MAPS, config_map("a"))

    reply = await client.ask("DELETE", f"{CONFIG_MAPS}/a{query}", body)

    assert reply.status == 200
    assert (await client.get(f"{CONFIG_MAPS}/a")).status == 200


@pytest.mark.parametrize("guard", [{"uid": "another"}, {"resourceVersion": "1"}])
async def test_a_precondition_that_does_not_hold_is_a_conflict(
    client: Stranger, guard: dict[str, str]
) -> None:
    await client.post(CONFIG_MAPS, config_map("a"))

    reply = await client.ask("DELETE", f"{CONFIG_MAPS}/a", {"preconditions": guard})

    assert (reply.status, reply.body["reason"]) == (409, "Conflict")


@pytest.mark.parametrize(
    ("query", "body"),
    [("?propagationPolicy=Orphan", None), ("", {"orphanDependents": True})],
)
async def test_dependents_may_be_left(client: Stranger, query: str, body: object) -> None:
    owner = (await client.post(CONFIG_MAPS, config_map("owner"))).body["metadata"]
    owned = config_map("owned")
    owned["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["uid"]}
    ]
    await client.post(CONFIG_MAPS, owned)

    await client.ask("DELETE", f"{CONFIG_MAPS}/owner{query}", body)

    left = await client.get(f"{CONFIG_MAPS}/owned")
    assert (left.status, left.body["metadata"].get("ownerReferences")) == (200, None)


@pytest.mark.parametrize(
    "body",
    [
        {"preconditions": "uid"},
        {"gracePeriodSeconds": "soon"},
        {"propagationPolicy": "Sideways"},
        {"dryRun": ["Some"]},
    ],
)
async def test_invalid_options_are_refused(client: Stranger, body: object) -> None:
    await client.post(CONFIG_MAPS, config_map("a"))

    reply = await client.ask("DELETE", f"{CONFIG_MAPS}/a", body)

    assert reply.status in {400, 422}
    assert (await client.get(f"{CONFIG_MAPS}/a")).status == 200


async def test_a_collection_is_deleted(client: Stranger) -> None:
    chosen = config_map("b")
    chosen["metadata"]["labels"] = {"old": "yes"}
    await client.post_all(CONFIG_MAPS, config_map("a"), chosen)

    reply = await client.ask("DELETE", f"{CONFIG_MAPS}?labelSelector=old")

    left = await client.get(CONFIG_MAPS)
    assert reply.body["kind"] == "ConfigMapList"
    assert [each["metadata"]["name"] for each in reply.body["items"]] == ["b"]
    assert [each["metadata"]["name"] for each in left.body["items"]] == ["a"]


async def test_a_dry_run_deletes_no_collection(client: Stranger) -> None:
    await client.post(CONFIG_MAPS, config_map("a"))

    await client.ask("DELETE", f"{CONFIG_MAPS}?dryRun=All")

    assert (await client.get(f"{CONFIG_MAPS}/a")).status == 200
