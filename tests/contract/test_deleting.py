"""Deletion: finalizers, grace, preconditions, owners."""

import pytest

from karpy.codec.fields import JsonObject
from karpy.errors import Conflict, Forbidden, Invalid, NotFound
from karpy.model.kinds import CONFIG_MAP, NAMESPACE, POD, REPLICA_SET
from karpy.ports.objects import Patch, PatchType, Removal
from tests.contract.plain import CONTAINER, config_map, meta, pod
from tests.contract.worlds import World, until

HELD = "example.com/held"


async def delete(
    world: World, name: str, *, uid: str = "", version: str = "", propagation: str = ""
) -> None:
    removal = Removal(uid=uid, version=version, propagation=propagation)
    await world.objects.delete(CONFIG_MAP, name, namespace=world.namespace, removal=removal)


async def release(world: World, name: str) -> None:
    patch = Patch(PatchType.MERGE, {"metadata": {"finalizers": None}})
    await world.objects.patch(CONFIG_MAP, name, patch, namespace=world.namespace)


async def test_an_object_without_finalizers_goes_at_once(world: World) -> None:
    await world.create(CONFIG_MAP, config_map("a"))

    await delete(world, "a")

    with pytest.raises(NotFound):
        await world.get(CONFIG_MAP, "a")


async def test_what_is_not_there_cannot_be_deleted(world: World) -> None:
    with pytest.raises(NotFound):
        await delete(world, "a")


async def test_a_finalizer_holds_an_object(world: World) -> None:
    made = await world.create(CONFIG_MAP, {"metadata": meta("a", finalizers=[HELD])})
    await delete(world, "a")

    held = await world.get(CONFIG_MAP, "a")
    await release(world, "a")

    assert held["metadata"]["deletionTimestamp"]
    assert held["metadata"]["uid"] == made["metadata"]["uid"]
    with pytest.raises(NotFound):
        await world.get(CONFIG_MAP, "a")


async def test_deleting_twice_does_not_move_the_time(world: World) -> None:
    await world.create(CONFIG_MAP, {"metadata": meta("a", finalizers=[HELD])})
    await delete(world, "a")
    first = await world.get(CONFIG_MAP, "a")

    await delete(world, "a")
    second = await world.get(CONFIG_MAP, "a")
    await release(world, "a")

    assert first["metadata"]["deletionTimestamp"] == second["metadata"]["deletionTimestamp"]


async def test_a_deleting_object_gets_no_new_finalizer(world: World) -> None:
    await world.create(CONFIG_MAP, {"metadata": meta("a", finalizers=[HELD])})
    await delete(world, "a")
    patch = Patch(PatchType.MERGE, {"metadata": {"finalizers": [HELD, "example.com/more"]}})

    with pytest.raises((Forbidden, Invalid)) as raised:
        await world.objects.patch(CONFIG_MAP, "a", patch, namespace=world.namespace)
    await release(world, "a")

    assert "no new finalizers can be added" in raised.value.message


async def test_a_deletion_may_name_the_incarnation(world: World) -> None:
    made = await world.create(CONFIG_MAP, config_map("a"))

    with pytest.raises(Conflict):
        await delete(world, "a", uid="00000000-0000-0000-0000-000000000000")
    await delete(world, "a", uid=made["metadata"]["uid"])

    with pytest.raises(NotFound):
        await world.get(CONFIG_MAP, "a")


async def test_a_deletion_may_name_the_version(world: World) -> None:
    made = await world.create(CONFIG_MAP, config_map("a"))
    changed = await world.objects.replace(CONFIG_MAP, {**made, "data": {"x": "1"}})

    with pytest.raises(Conflict):
        await delete(world, "a", version=made["metadata"]["resourceVersion"])
    await delete(world, "a", version=changed["metadata"]["resourceVersion"])


async def test_a_pod_without_a_kubelet_is_deleted_at_once(world: World) -> None:
    await world.create(POD, pod("a"))

    await world.objects.delete(POD, "a", namespace=world.namespace)

    with pytest.raises(NotFound):
        await world.get(POD, "a")


async def test_a_bound_pod_has_its_grace_period(world: World) -> None:
    """The pod stays until its kubelet reports that it has stopped."""
    await world.create(POD, pod("a", nodeName="nowhere", terminationGracePeriodSeconds=900))

    await world.objects.delete(POD, "a", namespace=world.namespace)
    going = await world.get(POD, "a")
    now = Removal(grace_seconds=0)
    await world.objects.delete(POD, "a", namespace=world.namespace, removal=now)

    assert going["metadata"]["deletionGracePeriodSeconds"] == 900
    with pytest.raises(NotFound):
        await world.get(POD, "a")


async def test_a_grace_period_can_be_shortened_not_prolonged(world: World) -> None:
    await world.create(POD, pod("a", nodeName="nowhere", terminationGracePeriodSeconds=900))
    grace: list[int] = []

    for seconds in (600, 300, 700):
        removal = Removal(grace_seconds=seconds)
        await world.objects.delete(POD, "a", namespace=world.namespace, removal=removal)
        grace.append((await world.get(POD, "a"))["metadata"]["deletionGracePeriodSeconds"])

    assert grace == [600, 300, 300]


def owned(name: str, owner: JsonObject, **reference: object) -> JsonObject:
    ref = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        **reference,
    }
    return {"metadata": meta(name, ownerReferences=[ref])}


async def test_what_is_owned_goes_with_its_owner(world: World) -> None:
    owner = await world.create(CONFIG_MAP, config_map("owner"))
    await world.create(CONFIG_MAP, owned("child", owner))

    await delete(world, "owner")

    await world.until_gone(CONFIG_MAP, "child")


async def test_an_orphan_stays(world: World) -> None:
    owner = await world.create(CONFIG_MAP, config_map("owner"))
    await world.create(CONFIG_MAP, owned("child", owner))

    await delete(world, "owner", propagation="Orphan")
    await world.until_gone(CONFIG_MAP, "owner")

    async def is_free() -> bool:
        return not (await world.get(CONFIG_MAP, "child"))["metadata"].get("ownerReferences")

    assert await until(is_free)


async def test_in_the_foreground_the_owner_goes_last(world: World) -> None:
    owner = await world.create(CONFIG_MAP, config_map("owner"))
    child = owned("child", owner, blockOwnerDeletion=True)
    child["metadata"]["finalizers"] = [HELD]
    await world.create(CONFIG_MAP, child)

    await delete(world, "owner", propagation="Foreground")

    async def is_going() -> bool:
        return "deletionTimestamp" in (await world.get(CONFIG_MAP, "child"))["metadata"]

    await until(is_going)
    waiting = await world.get(CONFIG_MAP, "owner")
    await release(world, "child")
    await world.until_gone(CONFIG_MAP, "owner")

    assert waiting["metadata"]["finalizers"] == ["foregroundDeletion"]


async def test_an_owner_that_never_was_takes_its_children_along(world: World) -> None:
    ghost = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "uid": "no-such"}}
    await world.create(CONFIG_MAP, owned("child", ghost))

    await world.until_gone(CONFIG_MAP, "child")


async def test_a_namespace_takes_everything_along(world: World) -> None:
    place = f"{world.namespace}-2"
    await world.objects.create(NAMESPACE, {"metadata": meta(place)})
    await world.create(CONFIG_MAP, {"metadata": meta("a", namespace=place)})

    await world.objects.delete(NAMESPACE, place)
    await world.until_gone(NAMESPACE, place)

    with pytest.raises(NotFound):
        await world.objects.get(CONFIG_MAP, "a", place)


async def test_nothing_is_created_in_a_terminating_namespace(world: World) -> None:
    place = f"{world.namespace}-2"
    await world.objects.create(NAMESPACE, {"metadata": meta(place)})
    await world.create(CONFIG_MAP, {"metadata": meta("a", namespace=place, finalizers=[HELD])})
    await world.objects.delete(NAMESPACE, place)

    with pytest.raises(Forbidden) as raised:
        await world.create(CONFIG_MAP, {"metadata": meta("b", namespace=place)})
    patch = Patch(PatchType.MERGE, {"metadata": {"finalizers": None}})
    await world.objects.patch(CONFIG_MAP, "a", patch, namespace=place)

    assert "because it is being terminated" in raised.value.message


async def test_pods_go_with_their_replica_set(world: World) -> None:
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [CONTAINER]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    await world.create(REPLICA_SET, {"metadata": meta("a"), "spec": spec})

    async def has_pods() -> bool:
        return len(await world.pods("app=a")) == 2

    await until(has_pods)
    await world.objects.delete(REPLICA_SET, "a", namespace=world.namespace)

    async def has_none() -> bool:
        return not await world.pods("app=a")

    assert await until(has_none)
