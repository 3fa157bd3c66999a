import re

import pytest

from karpy.errors import AlreadyExists, BadRequest, Conflict, Expired, NotFound
from karpy.model.kinds import (
    CONFIG_MAP,
    DEPLOYMENT,
    LEASE,
    NAMESPACE,
    NODE,
    POD,
    PRIORITY_CLASS,
    SERVICE_ACCOUNT,
    Kind,
)
from karpy.ports.objects import EVERYTHING, EventType, Query
from karpy.sim.store.store import Store
from tests.sim.store.worlds import (
    NOW,
    SetClock,
    a_deployment,
    a_pod,
    add_nodes,
    labelled,
    merge_of,
    with_meta,
    with_spec,
)


def names(objects: list[dict[str, dict[str, str]]]) -> list[str]:
    return [each["metadata"]["name"] for each in objects]


def test_a_new_cluster_has_its_namespaces_accounts_and_priority_classes(store: Store) -> None:
    expected = ["default", "kube-node-lease", "kube-public", "kube-system"]
    assert names(store.list(NAMESPACE)) == expected
    assert [each["metadata"]["namespace"] for each in store.list(SERVICE_ACCOUNT)] == expected
    assert names(store.list(PRIORITY_CLASS)) == [
        "system-cluster-critical",
        "system-node-critical",
    ]


def test_a_new_object_gets_what_only_a_server_can_give(store: Store) -> None:
    made = store.create(POD, a_pod())

    meta = made["metadata"]
    assert (made["apiVersion"], made["kind"]) == ("v1", "Pod")
    assert meta["creationTimestamp"] == NOW
    assert meta["generation"] == 1
    assert meta["resourceVersion"] == store.version
    assert re.fullmatch(
        r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}", meta["uid"]
    )
    assert store.get(POD, "web", "default") is made


def test_the_same_seed_gives_the_same_names(clock: SetClock) -> None:
    pod = {**a_pod(), "metadata": {"generateName": "web-", "namespace": "default"}}
    one, other = Store(clock, seed=7), Store(clock, seed=7)

    made = one.create(POD, pod)

    assert made == other.create(POD, pod)
    assert re.fullmatch(r"web-[bcdfghjklmnpqrstvwxz2456789]{5}", made["metadata"]["name"])
    assert Store(clock, seed=8).create(POD, pod) != made


def test_one_counter_numbers_the_versions_of_all_kinds(store: Store) -> None:
    first = store.create(POD, a_pod())
    second = store.create(NODE, {"metadata": {"name": "n"}})

    one, two = (int(each["metadata"]["resourceVersion"]) for each in (first, second))
    assert two == one + 1


def test_a_name_is_taken_once(store: Store) -> None:
    store.create(DEPLOYMENT, a_deployment())

    with pytest.raises(AlreadyExists) as error:
        store.create(DEPLOYMENT, a_deployment())

    assert error.value.message == 'deployments.apps "web" already exists'
    assert error.value.status == 409


def test_what_is_not_there_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound) as error:
        store.get(POD, "web", "default")

    assert error.value.message == 'pods "web" not found'
    assert error.value.status == 404
    assert store.find(POD, "web", "default") is None


def test_a_kind_that_is_not_served_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound, match="could not find the requested resource"):
        store.list(Kind("example.com", "v1", "Widget", "widgets"))


def test_a_namespaced_object_needs_a_namespace(store: Store) -> None:
    with pytest.raises(BadRequest, match="an empty namespace may not be set during creation"):
        store.create(POD, {**a_pod(), "metadata": {"name": "web"}})
    with pytest.raises(BadRequest, match="an empty namespace may not be set when a resource"):
        store.get(POD, "web")


def test_an_object_of_another_kind_is_refused(store: Store) -> None:
    with pytest.raises(
        BadRequest, match=r"does not match the expected API version \(v1, Kind=Pod\)"
    ):
        store.create(POD, {**a_pod(), "apiVersion": "apps/v1", "kind": "Deployment"})


def test_a_stale_write_is_refused(store: Store) -> None:
    made = store.create(POD, a_pod())
    store.replace(POD, labelled(made, app="web"))

    with pytest.raises(Conflict) as error:
        store.replace(POD, labelled(made, app="other"))

    assert error.value.message == (
        'Operation cannot be fulfilled on pods "web": the object has been modified; please apply '
        "your changes to the latest version and try again"
    )


def test_a_write_without_a_version_wins(store: Store) -> None:
    made = store.create(POD, a_pod())
    store.replace(POD, labelled(made, app="web"))

    changed = store.replace(POD, labelled(with_meta(made, resourceVersion=""), app="other"))

    assert changed["metadata"]["labels"] == {"app": "other"}


def test_some_kinds_are_never_written_without_a_version(store: Store) -> None:
    lease = {"metadata": {"name": "l", "namespace": "default"}, "spec": {}}
    store.create(LEASE, lease)

    with pytest.raises(Exception, match=r"metadata\.resourceVersion: Invalid value: 0: must be"):
        store.replace(LEASE, lease)


def test_another_object_of_the_same_name_is_not_written(store: Store) -> None:
    made = store.create(POD, a_pod())

    with pytest.raises(Conflict, match="Precondition failed: UID in precondition: old, UID in"):
        store.replace(POD, with_meta(made, uid="old"))


def test_a_write_that_changes_nothing_is_no_write(store: Store) -> None:
    made = store.create(POD, a_pod())
    version = store.version

    again = store.replace(POD, made)

    assert again is made
    assert store.version == version


def test_what_only_the_server_may_change_stays(store: Store) -> None:
    made = store.create(DEPLOYMENT, a_deployment())
    wish = with_meta(made, creationTimestamp="2001-01-01T00:00:00Z", generation=99)

    assert store.replace(DEPLOYMENT, wish) is made


def test_the_generation_counts_changes_of_the_spec_alone(store: Store) -> None:
    made = store.create(DEPLOYMENT, a_deployment())

    same = store.replace(DEPLOYMENT, labelled(made, app="web"))
    more = store.replace(DEPLOYMENT, with_spec(same, replicas=3))
    seen = store.patch(
        DEPLOYMENT,
        "web",
        merge_of({"status": {"replicas": 3}}),
        namespace="default",
        subresource="status",
    )

    generations = [each["metadata"]["generation"] for each in (made, same, more, seen)]
    assert generations == [1, 1, 2, 2]


def test_a_kind_without_generation_has_none(store: Store) -> None:
    made = store.create(CONFIG_MAP, {"metadata": {"name": "c", "namespace": "default"}})

    assert "generation" not in made["metadata"]


def test_the_main_endpoint_leaves_the_status_alone(store: Store) -> None:
    made = store.create(DEPLOYMENT, {**a_deployment(), "status": {"replicas": 9}})

    changed = store.replace(DEPLOYMENT, {**with_spec(made, replicas=2), "status": {"replicas": 9}})

    assert (made["status"], changed["status"]) == ({}, {})


def test_the_status_endpoint_writes_nothing_else(store: Store) -> None:
    made = store.create(DEPLOYMENT, a_deployment())
    wish = {**with_spec(made, replicas=5), "status": {"replicas": 1}}

    changed = store.replace(DEPLOYMENT, wish, subresource="status")

    assert changed["status"] == {"replicas": 1}
    assert changed["spec"] == made["spec"]


def test_a_dry_run_writes_nothing(store: Store) -> None:
    version = store.version

    made = store.create(POD, a_pod(), dry_run=True)

    assert made["spec"]["restartPolicy"] == "Always"
    assert store.version == version
    assert store.list(POD) == []


def test_lists_are_ordered_by_namespace_and_name(store: Store) -> None:
    store.create(NAMESPACE, {"metadata": {"name": "a"}})
    store.create(NAMESPACE, {"metadata": {"name": "a-b"}})
    store.create(POD, a_pod("z", "a"))
    store.create(POD, a_pod("m", "a-b"))
    store.create(POD, a_pod("b", "a"))
    store.create(POD, a_pod("c", "default"))

    assert names(store.list(POD)) == ["m", "b", "z", "c"]
    assert names(store.list(POD, Query(namespace="a"))) == ["b", "z"]


def test_lists_select_by_labels_and_fields(store: Store) -> None:
    store.create(POD, labelled(a_pod("one", nodeName="n1"), app="web"))
    store.create(POD, labelled(a_pod("two", nodeName="n1"), app="db"))
    store.create(POD, labelled(a_pod("three"), app="web"))

    assert names(store.list(POD, Query(labels="app=web"))) == ["one", "three"]
    assert names(store.list(POD, Query(fields="spec.nodeName=n1"))) == ["one", "two"]
    assert names(store.list(POD, Query(fields="spec.nodeName="))) == ["three"]
    assert names(store.list(POD, Query("default", "app!=web", "spec.nodeName=n1"))) == ["two"]
    assert names(store.list(POD, Query("default", fields="metadata.name=two"))) == ["two"]


def test_pods_are_found_by_their_node_until_they_are_gone(store: Store) -> None:
    store.create(POD, a_pod("one", nodeName="n1"))
    store.create(POD, a_pod("two", nodeName="n2"))
    store.patch(
        POD,
        "one",
        merge_of({"status": {"phase": "Failed"}}),
        namespace="default",
        subresource="status",
    )

    found = store.pods_on("n1")
    store.delete(POD, "one", namespace="default")

    assert found[0]["status"]["phase"] == "Failed"
    assert store.pods_on("n1") == []


def test_objects_are_found_by_their_owners(store: Store) -> None:
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u1"}
    made = store.create(POD, with_meta(a_pod(), ownerReferences=[owner]))
    assert store.by_owner("u1") == [(POD, made)]

    store.replace(POD, with_meta(made, ownerReferences=[{**owner, "uid": "u2"}]))

    assert store.by_owner("u1") == []
    assert [kind for kind, _ in store.by_owner("u2")] == [POD]


def test_a_subscriber_gets_each_commit_with_the_object_before(store: Store) -> None:
    received = []
    end = store.subscribe(POD, lambda event, before: received.append((event.type, before)))

    made = store.create(POD, a_pod())
    changed = store.replace(POD, labelled(made, app="web"))
    store.delete(POD, "web", namespace="default")
    end()
    store.create(POD, a_pod())

    assert received == [
        (EventType.ADDED, None),
        (EventType.MODIFIED, made),
        (EventType.DELETED, changed),
    ]


def test_a_subscriber_to_all_gets_changes_of_every_kind(store: Store) -> None:
    received = []
    end = store.subscribe_all(lambda kind, event, _: received.append((kind, event.type)))

    store.create(NODE, {"metadata": {"name": "n"}})
    end()
    store.create(POD, a_pod())

    assert received == [(NODE, EventType.ADDED)]


def test_history_has_the_events_after_a_version(store: Store) -> None:
    start = store.version
    made = store.create(POD, labelled(a_pod(), app="web"))
    store.replace(POD, labelled(made, app="db"))

    everything = store.since(POD, EVERYTHING, start)
    web = store.since(POD, Query(labels="app=web"), start)
    db = store.since(POD, Query(labels="app=db"), start)

    assert [each.type for each in everything] == [EventType.ADDED, EventType.MODIFIED]
    assert [each.type for each in web] == [EventType.ADDED, EventType.DELETED]
    assert [each.type for each in db] == [EventType.ADDED]
    assert web[1].object["metadata"]["labels"] == {"app": "web"}
    assert web[1].object["metadata"]["resourceVersion"] == everything[1].version


def test_history_is_bounded(clock: SetClock) -> None:
    store = Store(clock, history=5)
    start = store.version
    add_nodes(store, range(20))

    with pytest.raises(Expired, match="too old resource version") as error:
        store.since(NODE, EVERYTHING, start)

    assert error.value.status == 410
    assert len(store.since(NODE, EVERYTHING, str(int(store.version) - 5))) == 5


def test_a_version_is_a_number(store: Store) -> None:
    with pytest.raises(BadRequest, match="the resource version must be a number"):
        store.since(POD, EVERYTHING, "yesterday")
