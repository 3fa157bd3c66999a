import asyncio
from collections.abc import Callable

from karpy.adapters.kube.events import EventRecorder
from karpy.adapters.kube.retry import TokenBucket
from karpy.errors import ClusterError, CredentialsRefused
from karpy.model.kinds import NODE, POD
from karpy.model.notices import Notice, Subject
from tests.adapters.kube.clocks import SetClock, run
from tests.adapters.kube.smallstore import SmallStore

WEB = Subject(POD, "web-1", "shop", "u1")
NOMINATED = Notice(WEB, "Nominated", "Pod should schedule on: node/n1", same_as=("u1",))


async def recorded(act: Callable[[EventRecorder], object], store: SmallStore) -> EventRecorder:
    """Run a recorder while `act` emits events, until all are written."""
    recorder = EventRecorder(
        store,
        SetClock(),
        instance="karpy-0",
        rates={"Nominated": TokenBucket(qps=5, burst=10)},
    )
    running = asyncio.create_task(recorder.run())
    done = act(recorder)
    if asyncio.iscoroutine(done):
        await done
    recorder.close()
    await running
    return recorder


def emit_many(recorder: EventRecorder, reason: str, count: int) -> None:
    """Emit this number of events, no two of which are equal."""
    for number in range(count):
        recorder.emit(Notice(WEB, reason, "", same_as=(str(number),)))


def reasons(store: SmallStore) -> list[str]:
    return [each["reason"] for _, each in store.writes]


def test_a_notice_becomes_an_event_of_its_object() -> None:
    store = SmallStore()

    run(recorded(lambda recorder: recorder.emit(NOMINATED), store))

    event = store.writes[0][1]
    meta = event.pop("metadata")
    assert meta["namespace"] == "shop"
    assert meta["name"].startswith("web-1.")
    assert event == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "eventTime": "2026-03-02T12:00:00.000000Z",
        "reportingController": "karpenter",
        "reportingInstance": "karpy-0",
        "action": "Nominated",
        "reason": "Nominated",
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "web-1",
            "namespace": "shop",
            "uid": "u1",
        },
        "note": "Pod should schedule on: node/n1",
        "type": "Normal",
    }


def test_an_event_about_a_node_lives_in_the_default_namespace() -> None:
    store = SmallStore()
    notice = Notice(Subject(NODE, "n1"), "FailedDraining", "x" * 3000, is_warning=True)

    run(recorded(lambda recorder: recorder.emit(notice), store))

    event = store.writes[0][1]
    assert event["metadata"]["namespace"] == "default"
    assert event["type"] == "Warning"
    assert len(event["note"]) == 1024


def test_an_equal_notice_is_dropped_within_its_window() -> None:
    store = SmallStore()

    async def story(recorder: EventRecorder) -> None:
        recorder.emit(NOMINATED)
        await asyncio.sleep(119)
        recorder.emit(NOMINATED)
        await asyncio.sleep(2)
        recorder.emit(NOMINATED)

    run(recorded(story, store))

    assert [moment for moment, _ in store.writes] == [0, 121]


def test_different_notices_are_all_written() -> None:
    store = SmallStore()

    def story(recorder: EventRecorder) -> None:
        recorder.emit(NOMINATED)
        recorder.emit(Notice(WEB, "Nominated", "another pod", same_as=("u2",)))
        recorder.emit(Notice(WEB, "Evicted", "same pod", same_as=("u1",)))

    run(recorded(story, store))

    assert reasons(store) == ["Nominated", "Nominated", "Evicted"]


def test_a_notice_without_same_as_is_always_written() -> None:
    store = SmallStore()
    notice = Notice(WEB, "Ready", "Status condition transitioned")

    def story(recorder: EventRecorder) -> None:
        recorder.emit(notice)
        recorder.emit(notice)
        recorder.emit(notice)

    run(recorded(story, store))

    assert reasons(store) == ["Ready"] * 3


def test_events_of_a_reason_are_limited_to_its_rate() -> None:
    store = SmallStore()

    def story(recorder: EventRecorder) -> None:
        emit_many(recorder, "Nominated", 30)
        emit_many(recorder, "Evicted", 30)

    recorder = run(recorded(story, store))

    assert reasons(store).count("Nominated") == 10
    assert reasons(store).count("Evicted") == 30
    assert recorder.dropped == 20


def test_notices_that_can_wait_are_written_last_at_a_limited_rate() -> None:
    store = SmallStore()

    async def emit_all(recorder: EventRecorder) -> None:
        for number in range(40):
            recorder.emit(Notice(WEB, "Ready", "", same_as=(str(number),), can_wait=True))
        recorder.emit(NOMINATED)
        await asyncio.sleep(1.05)
        said.extend(reasons(store))

    said: list[str] = []
    run(recorded(emit_all, store))

    assert said == ["Nominated", *["Ready"] * 24]
    assert len(reasons(store)) == 41


def test_events_that_the_server_refuses_are_dropped_and_reported() -> None:
    store = SmallStore()
    store.is_failing = True
    troubles: list[str] = []

    def trouble(notice: Notice, error: ClusterError | CredentialsRefused) -> None:
        troubles.append(f"{notice.reason}: {error.message}")

    async def story() -> EventRecorder:
        recorder = EventRecorder(store, SetClock(), instance="karpy-0", on_trouble=trouble)
        recorder.emit(NOMINATED)
        recorder.close()
        await recorder.run()
        return recorder

    assert run(story()).dropped == 1
    assert troubles == ["Nominated: no etcd"]


def test_a_server_that_hangs_fills_no_memory() -> None:
    store = SmallStore()
    store.is_hanging = True

    async def story() -> int:
        recorder = EventRecorder(store, SetClock(), instance="karpy-0")
        running = asyncio.create_task(recorder.run())
        emit_many(recorder, "Ready", 5000)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return recorder.dropped

    assert run(story()) == 4000


def test_a_closed_recorder_drops_notices() -> None:
    store = SmallStore()

    async def story() -> None:
        recorder = EventRecorder(store, SetClock(), instance="karpy-0")
        recorder.close()
        recorder.emit(NOMINATED)
        await recorder.run()

    run(story())

    assert store.writes == []
