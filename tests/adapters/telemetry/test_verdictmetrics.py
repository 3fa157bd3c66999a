from karpy.adapters.telemetry.verdictmetrics import VerdictMetrics
from karpy.core.scheduling.decide import decide
from karpy.model.labels import ZONE
from karpy.model.snapshot import Snapshot
from tests.adapters.telemetry.books import Book
from tests.builders import ZONE_A, ZONE_B, pod, snapshot


def recorded(verdicts: VerdictMetrics, cluster: Snapshot) -> None:
    verdicts.record(cluster, decide(cluster))


def test_only_the_last_decision_is_exported() -> None:
    book = Book()
    verdicts = VerdictMetrics(book.metrics, book)
    zones = "scheduler_pending_pods_by_effective_zone_count"
    recorded(verdicts, snapshot(pods=[pod("a", selector={ZONE: ZONE_A}), pod("b", cpu="999")]))
    first = book.told(zones, "zone"), book.told("scheduler_unschedulable_pods_count", "controller")

    recorded(verdicts, snapshot(pods=[pod("c", selector={ZONE: ZONE_B})]))

    assert first == ({ZONE_A: 1.0, "flexible": 1.0}, {"provisioner": 1.0})
    assert book.told(zones, "zone") == {ZONE_B: 1.0}
    assert book.told("karpy_refused_pods", "reason")["NO_HOST"] == 0.0
    assert book.told(zones, "zone") == {ZONE_B: 1.0}


def test_before_the_first_decision_there_is_nothing_to_tell() -> None:
    book = Book()
    VerdictMetrics(book.metrics, book)

    assert book.told("karpy_refused_pods", "reason") == {}


def test_a_running_decision_is_measured_by_its_age_and_then_by_its_duration() -> None:
    book = Book()
    verdicts = VerdictMetrics(book.metrics, book)
    cluster = snapshot(pods=[pod("a")])
    unfinished = "scheduler_unfinished_work_seconds"

    verdicts.begin(cluster)
    book.wait(3)
    meanwhile = book.told(unfinished, "controller", "scheduling_id")
    book.wait(1)
    recorded(verdicts, cluster)
    book.wait(60)

    assert meanwhile == {"provisioner 2026-03-02T12:00:00Z": 3.0}
    assert book.told(unfinished, "controller", "scheduling_id") == {
        "provisioner 2026-03-02T12:00:00Z": 4.0
    }
