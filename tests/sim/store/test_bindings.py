import pytest

from karpy.errors import BadRequest, Conflict
from karpy.model.kinds import POD
from karpy.ports.objects import EVERYTHING, EventType, Query
from karpy.sim.store.store import Store
from tests.sim.store.worlds import NOW, a_pod, binding_to, merge_of, with_meta


def test_a_binding_gives_a_pod_its_node(store: Store) -> None:
    store.create(POD, a_pod())

    answer = store.create(POD, binding_to("n1"), subresource="binding")

    pod = store.get(POD, "web", "default")
    assert answer["status"] == "Success"
    assert pod["spec"]["nodeName"] == "n1"
    assert pod["status"]["conditions"] == [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": NOW}
    ]
    assert pod["metadata"]["generation"] == 1
    assert store.list(POD, Query(fields="spec.nodeName=n1")) == [pod]


def test_a_binding_ends_the_nomination(store: Store) -> None:
    store.create(POD, a_pod())
    nominated = merge_of({"status": {"nominatedNodeName": "n2"}})
    store.patch(POD, "web", nominated, namespace="default", subresource="status")

    store.create(POD, binding_to("n1"), subresource="binding")

    assert "nominatedNodeName" not in store.get(POD, "web", "default")["status"]


def test_annotations_of_a_binding_become_the_pods(store: Store) -> None:
    store.create(POD, a_pod())

    binding = with_meta(binding_to("n1"), annotations={"a": "b"})
    store.create(POD, binding, subresource="binding")

    assert store.get(POD, "web", "default")["metadata"]["annotations"] == {"a": "b"}


def test_a_pod_is_bound_once(store: Store) -> None:
    store.create(POD, a_pod())
    store.create(POD, binding_to("n1"), subresource="binding")

    with pytest.raises(Conflict) as error:
        store.create(POD, binding_to("n2"), subresource="binding")

    assert error.value.message == (
        'Operation cannot be fulfilled on pods/binding "web": pod web is already assigned to '
        'node "n1"'
    )


def test_a_gated_pod_is_not_bound(store: Store) -> None:
    store.create(POD, a_pod(schedulingGates=[{"name": "wait"}]))

    with pytest.raises(Conflict, match=r"pod web has non-empty \.spec\.schedulingGates"):
        store.create(POD, binding_to("n1"), subresource="binding")


def test_a_pod_that_is_being_deleted_is_not_bound(store: Store) -> None:
    store.create(POD, with_meta(a_pod(), finalizers=["a.b/c"]))
    store.delete(POD, "web", namespace="default")

    with pytest.raises(Conflict, match="is being deleted, cannot be assigned to a host"):
        store.create(POD, binding_to("n1"), subresource="binding")


def test_a_binding_is_for_the_pod_that_was_looked_at(store: Store) -> None:
    store.create(POD, a_pod())

    with pytest.raises(Conflict, match="Precondition failed: UID in precondition: other"):
        store.create(POD, with_meta(binding_to("n1"), uid="other"), subresource="binding")
    with pytest.raises(Conflict, match="the object has been modified"):
        store.create(POD, with_meta(binding_to("n1"), resourceVersion="1"), subresource="binding")


@pytest.mark.parametrize(
    ("target", "why"),
    [({"kind": "Node"}, "target.name: Required value"), ({}, "target.name: Required value")],
)
def test_a_binding_names_a_node(store: Store, target: dict[str, str], why: str) -> None:
    store.create(POD, a_pod())

    with pytest.raises(BadRequest, match=why):
        store.create(POD, {**binding_to("n1"), "target": target}, subresource="binding")


def test_a_dry_run_binds_nothing(store: Store) -> None:
    store.create(POD, a_pod())
    start = store.version

    store.create(POD, binding_to("n1"), subresource="binding", dry_run=True)

    assert store.since(POD, EVERYTHING, start) == []


def test_a_watcher_of_a_node_sees_a_bound_pod_arrive(store: Store) -> None:
    store.create(POD, a_pod())
    start = store.version

    store.create(POD, binding_to("n1"), subresource="binding")

    events = store.since(POD, Query(fields="spec.nodeName=n1"), start)
    assert [each.type for each in events] == [EventType.ADDED]
