from karpy.codec.fields import JsonObject
from karpy.model.kinds import EVENT, EVENTS_EVENT
from karpy.ports.objects import EVERYTHING, EventType, Query
from karpy.sim.store.store import Store

CORE: JsonObject = {
    "metadata": {"name": "e", "namespace": "default"},
    "involvedObject": {"kind": "Pod", "name": "web"},
    "reason": "Started",
    "message": "hello",
    "type": "Normal",
    "count": 3,
}


def test_an_event_is_served_by_two_apis(store: Store) -> None:
    store.create(EVENT, CORE)

    seen = store.get(EVENTS_EVENT, "e", "default")

    assert seen["apiVersion"] == "events.k8s.io/v1"
    assert (seen["note"], seen["regarding"]) == ("hello", CORE["involvedObject"])
    assert seen["deprecatedCount"] == 3


def test_an_event_of_the_new_api_is_seen_by_the_old(store: Store) -> None:
    new = {"metadata": CORE["metadata"], "note": "hello", "regarding": {"name": "web"}}
    store.create(EVENTS_EVENT, new)

    found = store.list(EVENT, Query(fields="involvedObject.name=web"))

    assert [each["message"] for each in found] == ["hello"]
    assert store.list(EVENTS_EVENT, Query(fields="regarding.name=other")) == []


def test_watchers_see_events_of_the_api_they_asked_for(store: Store) -> None:
    received: list[tuple[EventType, str]] = []
    store.subscribe(
        EVENTS_EVENT, lambda event, _: received.append((event.type, event.object["note"]))
    )
    start = store.version

    store.create(EVENT, CORE)

    assert received == [(EventType.ADDED, "hello")]
    assert store.since(EVENTS_EVENT, EVERYTHING, start)[0].object["note"] == "hello"
    assert store.page(EVENTS_EVENT, limit=5).items[0]["note"] == "hello"
