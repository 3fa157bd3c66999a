from datetime import datetime, timedelta

from karpy.codec.fields import JsonObject
from karpy.model.kinds import EVENT, NAMESPACE, NODE
from karpy.sim.store.store import Store
from karpy.sim.workloads.recorder import NORMAL, Recorder
from tests.sim.workloads.stage import START


class _Clock:
    def __init__(self) -> None:
        self.moment = START

    def now(self) -> datetime:
        return self.moment

    def forward(self, **time: float) -> None:
        self.moment += timedelta(**time)


class _Scene:
    """A recorder, a clock, and an object to speak of."""

    def __init__(self) -> None:
        self.clock = _Clock()
        self.store = Store(self.clock)
        self.recorder = Recorder(self.store, self.clock)
        self.node = self.store.create(NODE, {"metadata": {"name": "n1"}})

    def say(self, message: str, *, times: int = 1) -> None:
        for number in range(times):
            text = (NORMAL, "Said", message.format(number))
            self.recorder.record(self.node, "tester", text)

    def told(self) -> list[tuple[str, int]]:
        events = sorted(self.store.list(EVENT), key=lambda each: str(each["metadata"]["name"]))
        return [(each["message"], each["count"]) for each in events]


def test_an_event_says_what_happened_to_what() -> None:
    scene = _Scene()

    scene.say("hello")

    (event,) = scene.store.list(EVENT)
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
    assert event["involvedObject"]["uid"] == scene.node["metadata"]["uid"]


def test_a_repeated_event_is_counted() -> None:
    scene = _Scene()

    scene.say("hello", times=2)
    scene.clock.forward(minutes=1)
    scene.say("hello")

    (event,) = scene.store.list(EVENT)
    assert event["count"] == 3
    assert event["firstTimestamp"] == "2026-01-01T00:00:00Z"
    assert event["lastTimestamp"] == "2026-01-01T00:01:00Z"


def test_many_similar_events_become_one() -> None:
    scene = _Scene()

    scene.say("pod {}", times=12)

    told = scene.told()
    assert len(told) == 10
    assert told[0] == ("pod 0", 1)
    assert told[-1] == ("(combined from similar events): pod 11", 3)


def test_who_speaks_too_much_is_not_heard_for_a_while() -> None:
    scene = _Scene()

    scene.say("hello", times=100)
    spoken = scene.told()
    scene.clock.forward(minutes=5)
    scene.say("hello", times=100)

    assert spoken == [("hello", 25)]
    assert scene.told() == [("hello", 26)]


def test_an_event_is_gone_after_an_hour() -> None:
    scene = _Scene()
    scene.say("first")
    scene.clock.forward(minutes=61)

    scene.say("second")

    assert scene.told() == [("second", 1)]


def test_a_repeated_event_stays() -> None:
    scene = _Scene()
    scene.say("hello")
    scene.clock.forward(minutes=40)
    scene.say("hello")
    scene.clock.forward(minutes=40)

    scene.say("other")

    assert scene.told() == [("hello", 2), ("other", 1)]


def test_a_deleted_event_is_written_anew() -> None:
    scene = _Scene()
    scene.say("hello")
    (event,) = scene.store.list(EVENT)
    scene.store.delete(EVENT, event["metadata"]["name"], namespace="default")

    scene.say("hello")

    assert scene.told() == [("hello", 1)]


def test_an_event_that_cannot_be_written_is_dropped() -> None:
    scene = _Scene()
    scene.node = {**scene.node, "metadata": {**scene.node["metadata"], "namespace": "nowhere"}}

    scene.say("hello")

    assert scene.told() == []
    assert scene.store.find(NAMESPACE, "nowhere") is None
