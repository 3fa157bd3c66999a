import pytest

from karpy.errors import Conflict, Forbidden, NotFound
from karpy.model.kinds import CONFIG_MAP, DEPLOYMENT, JOB, NAMESPACE, POD, SERVICE_ACCOUNT
from karpy.ports.objects import EVERYTHING, EventType, Removal
from karpy.sim.store.store import Store
from tests.sim.store.worlds import (
    SetClock,
    a_deployment,
    a_pod,
    binding_to,
    merge_of,
    with_meta,
)

AT_ONCE = Removal(grace_seconds=0)


@pytest.fixture
def bound(store: Store) -> Store:
    store.create(POD, a_pod())
    store.create(POD, binding_to("n1"), subresource="binding")
    return store


def test_an_unbound_pod_goes_at_once(store: Store) -> None:
    store.create(POD, a_pod())
    start = store.version

    left = store.delete(POD, "web", namespace="default")

    assert left is None
    assert store.list(POD) == []
    (event,) = store.since(POD, EVERYTHING, start)
    assert event.type is EventType.DELETED
    assert event.object["metadata"]["deletionGracePeriodSeconds"] == 0


def test_a_bound_pod_has_time_to_stop(bound: Store) -> None:
    left = bound.delete(POD, "web", namespace="default")

    assert left is not None
    meta = left["metadata"]
    assert meta["deletionTimestamp"] == "2026-01-01T12:00:30Z"
    assert meta["deletionGracePeriodSeconds"] == 30
    assert meta["generation"] == 2


def test_a_pod_whose_time_runs_is_not_deleted_twice(bound: Store, clock: SetClock) -> None:
    first = bound.delete(POD, "web", namespace="default")
    clock.forward(5)

    assert bound.delete(POD, "web", namespace="default") is first
    assert bound.delete(POD, "web", namespace="default", removal=Removal(60)) is first


def test_the_time_to_stop_can_only_get_shorter(bound: Store, clock: SetClock) -> None:
    bound.delete(POD, "web", namespace="default")
    clock.forward(5)

    left = bound.delete(POD, "web", namespace="default", removal=Removal(10))

    assert left is not None
    assert left["metadata"]["deletionTimestamp"] == "2026-01-01T12:00:10Z"
    assert left["metadata"]["deletionGracePeriodSeconds"] == 10


def test_the_kubelet_has_the_last_word(bound: Store) -> None:
    bound.delete(POD, "web", namespace="default")

    assert bound.delete(POD, "web", namespace="default", removal=AT_ONCE) is None
    assert bound.list(POD) == []


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_goes_at_once(bound: Store, phase: str) -> None:
    bound.patch(
        POD,
        "web",
        merge_of({"status": {"phase": phase}}),
        namespace="default",
        subresource="status",
    )

    assert bound.delete(POD, "web", namespace="default") is None


def test_a_finalizer_holds_an_object_until_it_is_taken_away(store: Store) -> None:
    made = store.create(
        CONFIG_MAP, {"metadata": {"name": "c", "namespace": "default", "finalizers": ["a.b/c"]}}
    )

    left = store.delete(CONFIG_MAP, "c", namespace="default")

    assert left is not None
    assert left["metadata"]["deletionTimestamp"] == made["metadata"]["creationTimestamp"]
    assert left["metadata"]["deletionGracePeriodSeconds"] == 0

    store.patch(CONFIG_MAP, "c", merge_of({"metadata": {"finalizers": None}}), namespace="default")

    assert store.find(CONFIG_MAP, "c", "default") is None


def test_a_pod_with_a_finalizer_outlives_its_kubelet(store: Store) -> None:
    store.create(POD, with_meta(a_pod(nodeName="n1"), finalizers=["a.b/c"]))
    store.delete(POD, "web", namespace="default")

    store.patch(POD, "web", merge_of({"metadata": {"labels": {"a": "b"}}}), namespace="default")
    store.delete(POD, "web", namespace="default", removal=AT_ONCE)
    left = store.get(POD, "web", "default")
    store.patch(POD, "web", merge_of({"metadata": {"finalizers": None}}), namespace="default")

    assert left["metadata"]["deletionGracePeriodSeconds"] == 0
    assert store.find(POD, "web", "default") is None


def test_no_finalizer_comes_late(store: Store) -> None:
    store.create(DEPLOYMENT, with_meta(a_deployment(), finalizers=["a.b/c"]))
    left = store.delete(DEPLOYMENT, "web", namespace="default")
    assert left is not None

    with pytest.raises(Exception, match="no new finalizers can be added if the object is being"):
        store.replace(DEPLOYMENT, with_meta(left, finalizers=["a.b/c", "a.b/d"]))


@pytest.mark.parametrize(
    ("propagation", "finalizers"),
    [("Foreground", ["foregroundDeletion"]), ("Orphan", ["orphan"])],
)
def test_propagation_becomes_a_finalizer_for_the_collector(
    store: Store, propagation: str, finalizers: list[str]
) -> None:
    store.create(DEPLOYMENT, a_deployment())

    left = store.delete(
        DEPLOYMENT, "web", namespace="default", removal=Removal(propagation=propagation)
    )

    assert left is not None
    assert left["metadata"]["finalizers"] == finalizers
    assert left["metadata"]["generation"] == 2


def test_what_happens_to_dependents_depends_on_the_kind(store: Store) -> None:
    template = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
    store.create(
        JOB, {"metadata": {"name": "j", "namespace": "default"}, "spec": {"template": template}}
    )
    store.create(DEPLOYMENT, a_deployment())

    job = store.delete(JOB, "j", namespace="default")
    deployment = store.delete(DEPLOYMENT, "web", namespace="default")

    assert job is not None
    assert job["metadata"]["finalizers"] == ["orphan"]
    assert deployment is None


def test_only_the_object_that_was_meant_is_deleted(store: Store) -> None:
    made = store.create(POD, a_pod())
    version = made["metadata"]["resourceVersion"]

    with pytest.raises(Conflict, match="the UID in the precondition"):
        store.delete(POD, "web", namespace="default", removal=Removal(uid="other"))
    with pytest.raises(Conflict, match="the ResourceVersion in the precondition"):
        store.delete(POD, "web", namespace="default", removal=Removal(version="1"))

    fitting = Removal(uid=made["metadata"]["uid"], version=version)
    assert store.delete(POD, "web", namespace="default", removal=fitting) is None


def test_a_dry_run_deletes_nothing(store: Store) -> None:
    made = store.create(POD, a_pod())

    store.delete(POD, "web", namespace="default", dry_run=True)

    assert store.get(POD, "web", "default") is made


def test_a_namespace_starts_with_its_finalizer_its_label_and_an_account(store: Store) -> None:
    made = store.create(NAMESPACE, {"metadata": {"name": "shop"}})

    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": "shop"}
    assert made["spec"] == {"finalizers": ["kubernetes"]}
    assert made["status"] == {"phase": "Active"}
    assert store.get(SERVICE_ACCOUNT, "default", "shop")


def test_nothing_is_created_in_a_namespace_that_is_not_there(store: Store) -> None:
    with pytest.raises(NotFound) as error:
        store.create(POD, a_pod(namespace="shop"))

    assert error.value.message == 'namespaces "shop" not found'


def test_an_empty_namespace_goes_with_its_account(store: Store) -> None:
    store.create(NAMESPACE, {"metadata": {"name": "shop"}})
    store.create(POD, a_pod(namespace="shop"))

    assert store.delete(NAMESPACE, "shop") is None
    assert store.find(NAMESPACE, "shop") is None
    assert store.find(POD, "web", "shop") is None
    assert store.find(SERVICE_ACCOUNT, "default", "shop") is None


def test_a_namespace_waits_for_its_last_pod(store: Store) -> None:
    store.create(NAMESPACE, {"metadata": {"name": "shop"}})
    store.create(POD, a_pod(namespace="shop", nodeName="n1"))

    left = store.delete(NAMESPACE, "shop")

    assert left is not None
    assert left["status"] == {"phase": "Terminating"}
    with pytest.raises(Forbidden) as error:
        store.create(POD, a_pod("other", "shop"))
    assert error.value.message == (
        'pods "other" is forbidden: unable to create new content in namespace shop because it is '
        "being terminated"
    )

    store.delete(POD, "web", namespace="shop", removal=AT_ONCE)

    assert store.find(NAMESPACE, "shop") is None


def test_a_cluster_keeps_the_namespaces_it_needs(store: Store) -> None:
    with pytest.raises(Forbidden) as error:
        store.delete(NAMESPACE, "default")

    assert error.value.message == (
        'namespaces "default" is forbidden: this namespace may not be deleted'
    )


def test_finalize_lets_a_namespace_go(store: Store) -> None:
    store.create(NAMESPACE, {"metadata": {"name": "shop"}})
    store.create(POD, a_pod(namespace="shop", nodeName="n1"))
    left = store.delete(NAMESPACE, "shop")
    assert left is not None

    store.replace(NAMESPACE, {**left, "spec": {}}, subresource="finalize")

    assert store.find(NAMESPACE, "shop") is None
