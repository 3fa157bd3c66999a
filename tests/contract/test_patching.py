"""The four kinds of patches."""

import pytest

from karpy.codec.fields import JsonObject
from karpy.errors import BadRequest, ClusterError, Conflict, Invalid, NotFound
from karpy.model.kinds import CONFIG_MAP, DEPLOYMENT, NODE, NODE_POOL, POD, Kind
from karpy.ports.objects import Patch, PatchType
from tests.contract.plain import CONTAINER, config_map, deployment, node, node_pool, pod
from tests.contract.worlds import World


async def merge(world: World, kind: Kind, name: str, body: JsonObject) -> JsonObject:
    return await _patch(world, kind, name, Patch(PatchType.MERGE, body))


async def apply(
    world: World, kind: Kind, name: str, body: JsonObject, *, manager: str, force: bool = False
) -> JsonObject:
    whole = {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        **body,
        "metadata": {"name": name, **body.get("metadata", {})},
    }
    return await _patch(world, kind, name, Patch(PatchType.APPLY, whole, manager, force))


async def _patch(world: World, kind: Kind, name: str, patch: Patch) -> JsonObject:
    namespace = world.namespace if kind.is_namespaced else ""
    return await world.objects.patch(kind, name, patch, namespace=namespace)


async def test_a_merge_patch_changes_what_it_names_and_null_removes(world: World) -> None:
    await world.create(CONFIG_MAP, config_map("a", x="1", y="2"))

    after = await merge(world, CONFIG_MAP, "a", {"data": {"x": None, "z": "3"}})

    assert after["data"] == {"y": "2", "z": "3"}


async def test_a_merge_patch_replaces_lists(world: World) -> None:
    await world.create(NODE, {**node("n1"), "spec": {"taints": [_taint("a"), _taint("b")]}})

    after = await merge(world, NODE, "n1", {"spec": {"taints": [_taint("c")]}})

    assert [each["key"] for each in after["spec"]["taints"]] == ["c"]


def _taint(key: str) -> JsonObject:
    return {"key": key, "effect": "NoSchedule"}


async def test_a_patch_may_carry_a_version_as_a_guard(world: World) -> None:
    made = await world.create(CONFIG_MAP, config_map("a", x="1"))
    await merge(world, CONFIG_MAP, "a", {"data": {"x": "2"}})
    version = made["metadata"]["resourceVersion"]

    with pytest.raises(Conflict):
        await merge(
            world, CONFIG_MAP, "a", {"metadata": {"resourceVersion": version}, "data": {"x": "3"}}
        )


async def test_a_patch_needs_something_to_change(world: World) -> None:
    with pytest.raises(NotFound):
        await merge(world, CONFIG_MAP, "a", {"data": {}})


async def test_a_patch_that_changes_nothing_is_none(world: World) -> None:
    made = await world.create(CONFIG_MAP, config_map("a", x="1"))

    after = await merge(world, CONFIG_MAP, "a", {"data": {"x": "1"}})

    assert after["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_a_json_patch_does_step_by_step_what_it_says(world: World) -> None:
    await world.create(CONFIG_MAP, config_map("a", x="1"))
    steps: list[JsonObject] = [
        {"op": "test", "path": "/data/x", "value": "1"},
        {"op": "add", "path": "/data/y", "value": "2"},
        {"op": "remove", "path": "/data/x"},
        {"op": "copy", "from": "/data/y", "path": "/data/z"},
    ]

    after = await _patch(world, CONFIG_MAP, "a", Patch(PatchType.JSON, steps))

    assert after["data"] == {"y": "2", "z": "2"}


async def test_a_json_patch_whose_test_fails_changes_nothing(world: World) -> None:
    await world.create(CONFIG_MAP, config_map("a", x="1"))
    steps: list[JsonObject] = [
        {"op": "replace", "path": "/data/x", "value": "2"},
        {"op": "test", "path": "/data/x", "value": "1"},
    ]

    with pytest.raises(ClusterError) as raised:
        await _patch(world, CONFIG_MAP, "a", Patch(PatchType.JSON, steps))

    assert raised.value.status == 422
    assert (await world.get(CONFIG_MAP, "a"))["data"] == {"x": "1"}


async def test_a_strategic_patch_finds_list_items_by_their_key(world: World) -> None:
    await world.create(DEPLOYMENT, deployment("a", replicas=0))
    container = {"name": "main", "image": "registry.example/app:2"}
    patch: JsonObject = {"spec": {"template": {"spec": {"containers": [container]}}}}

    after = await _patch(world, DEPLOYMENT, "a", Patch(PatchType.STRATEGIC, patch))

    containers = after["spec"]["template"]["spec"]["containers"]
    assert [(each["name"], each["image"]) for each in containers] == [
        ("main", "registry.example/app:2")
    ]
    assert containers[0]["terminationMessagePath"] == "/dev/termination-log"


async def test_a_strategic_patch_can_remove_a_list_item(world: World) -> None:
    two = [CONTAINER, {**CONTAINER, "name": "other"}]
    made = deployment("a", replicas=0)
    made["spec"]["template"]["spec"] = {"containers": two}
    await world.create(DEPLOYMENT, made)
    removal = [{"name": "other", "$patch": "delete"}]
    patch: JsonObject = {"spec": {"template": {"spec": {"containers": removal}}}}

    after = await _patch(world, DEPLOYMENT, "a", Patch(PatchType.STRATEGIC, patch))

    containers = after["spec"]["template"]["spec"]["containers"]
    assert [each["name"] for each in containers] == ["main"]


async def test_custom_resources_know_no_strategic_patch(world: World) -> None:
    await world.create(NODE_POOL, node_pool())

    with pytest.raises(BadRequest) as raised:
        await _patch(
            world, NODE_POOL, "default", Patch(PatchType.STRATEGIC, {"spec": {"weight": 5}})
        )

    assert raised.value.status == 415


async def test_applying_makes_what_is_not_there(world: World) -> None:
    made = await apply(world, CONFIG_MAP, "a", {"data": {"x": "1"}}, manager="me")

    assert made["data"] == {"x": "1"}
    managers = [(each["manager"], each["operation"]) for each in made["metadata"]["managedFields"]]
    assert managers == [("me", "Apply")]


async def test_applying_again_removes_what_is_not_applied_any_more(world: World) -> None:
    await apply(world, CONFIG_MAP, "a", {"data": {"x": "1", "y": "2"}}, manager="me")

    after = await apply(world, CONFIG_MAP, "a", {"data": {"x": "1"}}, manager="me")

    assert after["data"] == {"x": "1"}


async def test_a_field_of_another_manager_stays_or_conflicts(world: World) -> None:
    await apply(world, CONFIG_MAP, "a", {"data": {"x": "1"}}, manager="me")

    beside = await apply(world, CONFIG_MAP, "a", {"data": {"y": "2"}}, manager="you")
    with pytest.raises(Conflict) as raised:
        await apply(world, CONFIG_MAP, "a", {"data": {"x": "9"}}, manager="you")

    assert beside["data"] == {"x": "1", "y": "2"}
    assert 'conflict with "me": .data.x' in raised.value.message


async def test_force_takes_a_field_over(world: World) -> None:
    await apply(world, CONFIG_MAP, "a", {"data": {"x": "1"}}, manager="me")

    taken = await apply(world, CONFIG_MAP, "a", {"data": {"x": "9"}}, manager="you", force=True)
    left = await apply(world, CONFIG_MAP, "a", {}, manager="me")

    assert taken["data"] == {"x": "9"}
    assert left["data"] == {"x": "9"}


async def test_list_items_are_owned_one_by_one(world: World) -> None:
    first = _applied_deployment(CONTAINER)
    await apply(world, DEPLOYMENT, "a", first, manager="me")
    sidecar = {"name": "sidecar", "image": "registry.example/sidecar:1"}

    after = await apply(
        world,
        DEPLOYMENT,
        "a",
        {"spec": {"template": {"spec": {"containers": [sidecar]}}}},
        manager="you",
    )

    containers = after["spec"]["template"]["spec"]["containers"]
    assert [each["name"] for each in containers] == ["main", "sidecar"]


def _applied_deployment(*containers: JsonObject) -> JsonObject:
    made = deployment("a", replicas=0)
    made["spec"]["template"]["spec"] = {"containers": list(containers)}
    return {"spec": made["spec"]}


async def test_a_patch_is_judged_like_any_write(world: World) -> None:
    await world.create(POD, pod("a"))

    with pytest.raises(Invalid):
        await merge(world, POD, "a", {"spec": {"nodeSelector": {"x": "y"}}})
