"""The fast paths of the store for simulated controllers do the same as the general calls."""

import pytest

from karpy.codec.fields import JsonObject
from karpy.errors import Conflict, Forbidden, Invalid, NotFound
from karpy.model.kinds import NAMESPACE, NODE, POD, PRIORITY_CLASS
from karpy.ports.objects import EVERYTHING, EventType, Removal
from karpy.sim.store.store import Store
from karpy.sim.store.tables import CommitCallbacks
from tests.sim.store.worlds import SetClock, a_pod, binding_to, labelled, merge_of, with_meta

GENERATED: JsonObject = {
    "metadata": {"generateName": "web-", "namespace": "default", "labels": {"app": "web"}},
    "spec": {"containers": [{"name": "c", "image": "i:1"}]},
}
NODE_STATUS: JsonObject = {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "3"}}
HELD = ["example.com/wait"]


@pytest.fixture
def twin(clock: SetClock) -> Store:
    """Return a second store with equal objects."""
    return Store(clock)


def _bound(store: Store, **meta: object) -> JsonObject:
    store.create(POD, with_meta(a_pod(), **meta))
    store.create(POD, binding_to("n1"), subresource="binding")
    return store.get(POD, "web", "default")


def _stopping(store: Store) -> JsonObject:
    held = store.delete_pod(_bound(store))
    assert held is not None
    return held


def test_a_pod_is_bound_as_by_a_binding(store: Store, twin: Store) -> None:
    pod = store.create(POD, a_pod())
    twin.create(POD, a_pod())

    store.bind(pod, "n1")
    twin.create(POD, binding_to("n1"), subresource="binding")

    assert store.get(POD, "web", "default") == twin.get(POD, "web", "default")


def test_a_pod_that_has_changed_since_is_bound_too(store: Store) -> None:
    pod = store.create(POD, a_pod())
    store.replace(POD, labelled(pod, app="web"))

    store.bind(pod, "n1")

    bound = store.get(POD, "web", "default")
    assert (bound["spec"]["nodeName"], bound["metadata"]["labels"]) == ("n1", {"app": "web"})


def test_another_pod_of_the_same_name_is_not_bound(store: Store) -> None:
    pod = store.create(POD, a_pod())
    store.delete(POD, "web", namespace="default")
    store.create(POD, a_pod())

    with pytest.raises(Conflict, match="Precondition failed: UID"):
        store.bind(pod, "n1")


@pytest.mark.parametrize("grace", [None, 0, 5])
@pytest.mark.parametrize("finalizers", [[], HELD])
def test_a_pod_is_deleted_as_by_its_name(
    store: Store, twin: Store, grace: int | None, finalizers: list[str]
) -> None:
    pod = _bound(store, finalizers=finalizers)
    _bound(twin, finalizers=finalizers)
    start = store.version

    left = store.delete_pod(pod, grace)
    right = twin.delete(POD, "web", namespace="default", removal=Removal(grace_seconds=grace))

    assert left == right
    assert store.since(POD, EVERYTHING, start) == twin.since(POD, EVERYTHING, start)


def test_a_pod_that_is_asked_twice_to_stop_has_no_more_time(store: Store) -> None:
    held = _stopping(store)

    assert store.delete_pod(held) is held
    assert store.delete_pod(held, 0) is None


def test_a_pod_that_is_gone_is_not_deleted(store: Store) -> None:
    pod = store.create(POD, a_pod())
    store.delete_pod(pod)

    with pytest.raises(NotFound):
        store.delete_pod(pod)


def test_a_status_is_set_as_by_writing_it_anew(store: Store, twin: Store) -> None:
    pod = _bound(store)
    _bound(twin)
    status = {**pod["status"], "phase": "Running"}

    written = store.set_status(POD, pod, status)
    twin.patch(POD, "web", merge_of({"status": status}), namespace="default", subresource="status")

    assert written == twin.get(POD, "web", "default") == store.get(POD, "web", "default")


def test_a_status_that_says_the_same_is_no_write(store: Store) -> None:
    pod = _bound(store)
    version = store.version

    written = store.set_status(POD, pod, dict(pod["status"]))

    assert written is pod
    assert store.version == version


def test_a_status_of_a_deleting_pod_is_delivered_as_a_change(store: Store) -> None:
    held = _stopping(store)
    received: list[str] = []
    store.listen(
        POD,
        CommitCallbacks(changed=lambda event, _: received.append(event.object["status"]["phase"])),
    )

    store.set_status(POD, held, {**held["status"], "phase": "Failed"})

    assert received == ["Failed"]


def test_a_node_reports_what_the_rules_do_not_look_at(store: Store) -> None:
    node = store.create(NODE, {"metadata": {"name": "n"}, "status": NODE_STATUS})

    written = store.set_status(NODE, node, {**node["status"], "phase": "Running"})

    assert written["status"] == {**NODE_STATUS, "phase": "Running"}
    assert store.get(NODE, "n") is written


def test_what_a_node_has_is_checked_when_it_changes(store: Store) -> None:
    node = store.create(NODE, {"metadata": {"name": "n"}, "status": NODE_STATUS})

    with pytest.raises(Invalid, match=r"status\.capacity\.cpu"):
        store.set_status(NODE, node, {**node["status"], "capacity": {"cpu": "-1"}})


def test_pods_made_of_one_object_differ_in_what_the_server_gives(store: Store) -> None:
    pods = [store.create(POD, GENERATED) for _ in range(3)]

    own = ("name", "uid", "resourceVersion")
    metas = [each["metadata"] for each in pods]
    first, *others = [{key: meta[key] for key in meta if key not in own} for meta in metas]
    assert all(len({meta[field] for meta in metas}) == len(pods) for field in own)
    assert others == [first, first]
    assert all(each["spec"] is pods[0]["spec"] for each in pods)


def test_pods_made_of_one_object_carry_the_time_at_which_each_was_made(
    store: Store, clock: SetClock
) -> None:
    first = store.create(POD, GENERATED)
    clock.forward(60)

    second = store.create(POD, GENERATED)

    times = [each["metadata"]["creationTimestamp"] for each in (first, second)]
    assert times == ["2026-01-01T12:00:00Z", "2026-01-01T12:01:00Z"]


def test_the_next_pod_of_one_object_has_the_priority_of_its_day(store: Store) -> None:
    first = store.create(POD, GENERATED)
    store.create(PRIORITY_CLASS, {"metadata": {"name": "usual"}, "value": 7, "globalDefault": True})

    second = store.create(POD, GENERATED)

    assert (first["spec"]["priority"], second["spec"]["priority"]) == (0, 7)


def test_no_pod_of_the_same_object_comes_to_a_namespace_that_closes(store: Store) -> None:
    store.create(NAMESPACE, {"metadata": {"name": "team"}})
    pod = with_meta(GENERATED, namespace="team", finalizers=HELD)
    store.create(POD, pod)
    store.delete(NAMESPACE, "team")

    with pytest.raises(Forbidden, match="because it is being terminated"):
        store.create(POD, pod)


def test_callbacks_are_called_by_the_kind_of_commit(store: Store) -> None:
    received: list[str] = []
    callbacks = CommitCallbacks(
        added=lambda event, _: received.append(f"added {event.type.name}"),
        changed=lambda event, _: received.append(f"changed {event.type.name}"),
        status=lambda event, _: received.append(f"status {event.type.name}"),
        removed=lambda event, _: received.append(f"removed {event.type.name}"),
    )
    end = store.listen(POD, callbacks)

    pod = store.create(POD, a_pod())
    pod = store.replace(POD, labelled(pod, app="web"))
    pod = store.set_status(POD, pod, {"phase": "Failed"})
    store.delete_pod(pod)
    end()
    store.create(POD, a_pod())

    assert received == ["added ADDED", "changed MODIFIED", "status MODIFIED", "removed DELETED"]


def test_a_subscriber_without_statuses_gets_no_status_changes(store: Store) -> None:
    received: list[EventType] = []
    store.listen(POD, CommitCallbacks(removed=lambda event, _: received.append(event.type)))
    store.subscribe_all(lambda _, event, __: received.append(event.type), includes_statuses=False)

    store.set_status(POD, store.create(POD, a_pod()), {"phase": "Failed"})

    assert received == [EventType.ADDED]


def test_only_a_controller_has_children(store: Store) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u1"}
    store.create(POD, with_meta(a_pod("friend"), ownerReferences=[owner]))

    child = store.create(
        POD, with_meta(a_pod("child"), ownerReferences=[{**owner, "controller": True}])
    )

    assert store.controlled_by("u1", POD) == [child]
    assert store.controlled_by("u2", POD) == []


def test_a_finder_finds_what_is_there_now(store: Store) -> None:
    find = store.finder(POD)
    pod = store.create(POD, a_pod())

    found = find("default", "web")
    store.delete_pod(pod)

    assert found is pod
    assert find("default", "web") is None
