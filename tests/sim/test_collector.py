import pytest

from karpy.codec.fields import JsonObject
from karpy.model.kinds import CONFIG_MAP, DEPLOYMENT, NAMESPACE, NODE, POD, REPLICA_SET, Kind
from karpy.ports.objects import Removal
from karpy.sim.clock import LoopClock
from karpy.sim.collector import Collector
from karpy.sim.store.store import Store
from tests.sim.stories import on_virtual_time
from tests.sim.workloads.stage import NAMESPACE as HERE
from tests.sim.workloads.stage import START, on_stage, settle, workload


def _store() -> Store:
    store = Store(LoopClock(START))
    Collector(store).start()
    return store


def _reference(owner: JsonObject, **fields: object) -> JsonObject:
    meta = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        **fields,
    }


def _add(store: Store, name: str, *owners: JsonObject, finalizer: str = "") -> JsonObject:
    meta: JsonObject = {"name": name, "namespace": HERE, "ownerReferences": list(owners)}
    if finalizer:
        meta["finalizers"] = [finalizer]
    return store.create(CONFIG_MAP, {"metadata": meta})


def _delete(store: Store, name: str, propagation: str = "", kind: Kind = CONFIG_MAP) -> None:
    namespace = HERE if kind.is_namespaced else ""
    store.delete(kind, name, namespace=namespace, removal=Removal(propagation=propagation))


def _names(store: Store) -> list[str]:
    return [each["metadata"]["name"] for each in store.list(CONFIG_MAP)]


@on_virtual_time
async def test_an_object_without_its_owner_is_deleted_with_its_dependents() -> None:
    store = _store()
    owner = _add(store, "owner")
    child = _add(store, "child", _reference(owner))
    _add(store, "grandchild", _reference(child))
    _add(store, "stranger")

    _delete(store, "owner")
    await settle()

    assert _names(store) == ["stranger"]


@on_virtual_time
async def test_one_owner_is_enough_to_stay() -> None:
    store = _store()
    first, second = _add(store, "first"), _add(store, "second")
    _add(store, "child", _reference(first), _reference(second))

    _delete(store, "first")
    await settle()

    left = store.get(CONFIG_MAP, "child", HERE)["metadata"]["ownerReferences"]
    assert left == [_reference(second)]


@on_virtual_time
async def test_an_owner_that_never_was_is_gone() -> None:
    store = _store()
    owner = _add(store, "owner")

    _add(store, "unborn", {**_reference(owner), "name": "nobody"})
    _add(store, "former", {**_reference(owner), "uid": "another"})
    _add(store, "child", _reference(owner))
    await settle()

    assert _names(store) == ["child", "owner"]


@on_virtual_time
async def test_an_owner_in_another_namespace_is_gone() -> None:
    store = _store()
    store.create(NAMESPACE, {"metadata": {"name": "shop"}})
    owner = store.create(CONFIG_MAP, {"metadata": {"name": "owner", "namespace": "shop"}})

    _add(store, "child", _reference(owner))
    await settle()

    assert _names(store) == ["owner"]


@on_virtual_time
async def test_an_owner_without_namespace_owns_in_all() -> None:
    store = _store()
    node = store.create(NODE, {"metadata": {"name": "n1"}})
    _add(store, "child", _reference(node))
    await settle()
    before = _names(store)

    _delete(store, "n1", kind=NODE)
    await settle()

    assert before == ["child"]
    assert _names(store) == []


@on_virtual_time
async def test_a_cluster_object_with_a_namespaced_owner_is_not_deleted() -> None:
    store = _store()
    owner = _add(store, "owner")
    meta = {"name": "n1", "ownerReferences": [_reference(owner)]}
    store.create(NODE, {"metadata": meta})

    _delete(store, "owner")
    await settle(3600)

    assert store.find(NODE, "n1") is not None


@on_virtual_time
async def test_an_owner_of_an_unknown_kind_counts_as_there() -> None:
    store = _store()
    reference = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": "u"}

    _add(store, "child", reference)
    await settle(3600)

    assert _names(store) == ["child"]


@on_virtual_time
async def test_orphans_stay_without_their_owner() -> None:
    store = _store()
    owner = _add(store, "owner")
    _add(store, "child", _reference(owner))

    _delete(store, "owner", "Orphan")
    await settle()

    assert _names(store) == ["child"]
    assert "ownerReferences" not in store.get(CONFIG_MAP, "child", HERE)["metadata"]


@on_virtual_time
async def test_in_the_foreground_an_owner_waits_for_what_blocks_it() -> None:
    store = _store()
    owner = _add(store, "owner")
    _add(store, "child", _reference(owner, blockOwnerDeletion=True), finalizer="example.com/busy")

    _delete(store, "owner", "Foreground")
    await settle()
    before = _names(store)
    child = store.get(CONFIG_MAP, "child", HERE)
    meta = {key: value for key, value in child["metadata"].items() if key != "finalizers"}
    store.replace(CONFIG_MAP, {**child, "metadata": meta})
    await settle()

    assert before == ["child", "owner"]
    assert "deletionTimestamp" in child["metadata"]
    assert _names(store) == []


@on_virtual_time
async def test_in_the_foreground_an_owner_does_not_wait_for_what_does_not_block_it() -> None:
    store = _store()
    owner = _add(store, "owner")
    _add(store, "child", _reference(owner), finalizer="example.com/busy")

    _delete(store, "owner", "Foreground")
    await settle()

    assert _names(store) == ["child"]
    assert "deletionTimestamp" in store.get(CONFIG_MAP, "child", HERE)["metadata"]


@on_virtual_time
async def test_in_the_foreground_grandchildren_go_first() -> None:
    store = _store()
    owner = _add(store, "owner")
    child = _add(store, "child", _reference(owner, blockOwnerDeletion=True))
    _add(store, "grandchild", _reference(child, blockOwnerDeletion=True), finalizer="example.com/b")

    _delete(store, "owner", "Foreground")
    await settle()

    assert _names(store) == ["child", "grandchild", "owner"]


@on_virtual_time
async def test_owners_that_own_each_other_do_not_wait_for_each_other() -> None:
    store = _store()
    first = _add(store, "first")
    second = _add(store, "second", _reference(first, blockOwnerDeletion=True))
    meta = {**first["metadata"], "ownerReferences": [_reference(second, blockOwnerDeletion=True)]}
    store.replace(CONFIG_MAP, {**first, "metadata": meta})

    _delete(store, "first", "Foreground")
    await settle()

    assert _names(store) == []


@on_virtual_time
async def test_an_owner_without_blocking_dependents_need_not_wait() -> None:
    store = _store()
    owner = _add(store, "owner")
    child = _add(
        store, "child", _reference(owner, blockOwnerDeletion=True), finalizer="example.com/busy"
    )
    _delete(store, "owner", "Foreground")
    await settle()

    child = store.get(CONFIG_MAP, "child", HERE)
    store.replace(CONFIG_MAP, {**child, "metadata": {**child["metadata"], "ownerReferences": []}})
    await settle()

    assert _names(store) == ["child"]


@on_virtual_time
async def test_a_collector_that_starts_late_finds_what_is_left_over() -> None:
    store = Store(LoopClock(START))
    owner = _add(store, "owner")
    _add(store, "child", _reference(owner))
    _delete(store, "owner")
    collector = Collector(store)

    collector.start()
    await settle()
    collector.stop()

    assert _names(store) == []


@on_virtual_time
async def test_a_collector_that_was_stopped_collects_nothing() -> None:
    store = Store(LoopClock(START))
    collector = Collector(store)
    collector.start()
    owner = _add(store, "owner")
    _add(store, "child", _reference(owner))

    collector.stop()
    _delete(store, "owner")
    await settle()

    assert _names(store) == ["child"]


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
@on_virtual_time
async def test_a_deployment_goes_with_its_pods(propagation: str) -> None:
    with on_stage(stop=10) as stage:
        stage.add(DEPLOYMENT, "web", workload("web"))
        await settle(5)

        stage.delete(DEPLOYMENT, "web", propagation)
        await settle(5)
        meanwhile = stage.exists(DEPLOYMENT, "web")
        await settle(10)

        assert meanwhile == (propagation == "Foreground")
        assert stage.names(DEPLOYMENT) == []
        assert stage.names(REPLICA_SET) == []
        assert stage.names(POD) == []
