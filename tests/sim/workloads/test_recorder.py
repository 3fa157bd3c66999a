from datetime import datetime, timedelta

from karpy.codec.fields import JsonObject
from karpy.model.kinds import EVENT, NAMESPACE, NODE
from karpy.sim.store.store import Store
from karpy.sim.workloads.recorder import NORMAL, WorkloadEvents
from tests.sim.workloads.stage import START


class _Clock:
    def __init__(self) -> None:
        self.moment = START

    def now(self) -> datetime:
        return self.moment

    def forward(self, **time: float) -> None:
        self.moment += timedelta(**time)


class _Recording:
    """A recorder, a clock, and an object to speak of."""

    def __init__(self) -> None:
        self.clock = _Clock()
        self.store = Store(self.clock)
        self.recorder = WorkloadEvents(self.store, self.clock)
        self.node = self.store.create(NODE, {"metadata": {"name": "n1"}})

    def say(self, message: str, *, times: int = 1) -> None:
        for number in range(times):
            text = (NORMAL, "Said", message.format(number))
            self.recorder.record(self.node, "tester", text)

    def events(self) -> list[tuple[str, int]]:
        events = sorted(self.store.list(EVENT), key=lambda each: str(each["metadata"]["name"]))
        return [(each["message"], each["count"]) for each in events]


def test_an_event_says_what_happened_to_what() -> None:
    recording = _Recording()

    recording.say("hello")

    (event,) = recording.store.list(EVENT)
    wanted: JsonObject = {
        "reason": "Said",
        "message": "hello",
        "type": "Normal",
        "count": 1,
        "source": {"component": "tester"},
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }
    assert {key: event[key] for key in wanted} == wanted
    assert event["metadata"]["namespace"] == "default"
    assert event["metadata"]["name"].startswith("n1.")
    assert event["involvedObject"]["uid"] == recording.node["metadata"]["uid"]


def test_a_repeated_event_is_counted() -> None:
    recording = _Recording()

    recording.say("hello", times=2)
    recording.clock.forward(minutes=1)
    recording.say("hello")

    (event,) = recording.store.list(EVENT)
    assert event["count"] == 3
    assert event["firstTimestamp"] == "2026-01-01T00:00:00Z"
    assert event["lastTimestamp"] == "2026-01-01T00:01:00Z"


def test_many_similar_events_become_one() -> None:
    recording = _Recording()

    recording.say("pod {}", times=12)

    events = recording.events()
    assert len(events) == 10
    assert events[0] == ("pod 0", 1)
    assert events[-1] == ("(combined from similar events): pod 11", 3)


def test_events_of_one_object_are_rate_limited() -> None:
    recording = _Recording()

    recording.say("hello", times=100)
    events = recording.events()
    recording.clock.forward(minutes=5)
    recording.say("hello", times=100)

    assert events == [("hello", 25)]
    assert recording.events() == [("hello", 26)]


def test_an_event_is_gone_after_an_hour() -> None:
    recording = _Recording()
    recording.say("first")
    recording.clock.forward(minutes=61)

    recording.say("second")

    assert recording.events() == [("second", 1)]


def test_a_repeated_event_stays() -> None:
    recording = _Recording()
    recording.say("hello")
    recording.clock.forward(minutes=40)
    recording.say("hello")
    recording.clock.forward(minutes=40)

    recording.say("other")

    assert recording.events() == [("hello", 2), ("other", 1)]


def test_a_deleted_event_is_written_anew() -> None:
    recording = _Recording()
    recording.say("hello")
    (event,) = recording.store.list(EVENT)
    recording.store.delete(EVENT, event["metadata"]["name"], namespace="default")

    recording.say("hello")

    assert recording.events() == [("hello", 1)]


def test_an_event_that_cannot_be_written_is_dropped() -> None:
    recording = _Recording()
    recording.node = {
        **recording.node,
        "metadata": {**recording.node["metadata"], "namespace": "nowhere"},
    }

    recording.say("hello")

    assert recording.events() == []
    assert recording.store.find(NAMESPACE, "nowhere") is None
