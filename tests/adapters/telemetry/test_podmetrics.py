from datetime import timedelta

from msgspec.structs import replace

from karpy.adapters.telemetry.podmetrics import PodMetrics, PodTimes
from karpy.model.labels import ARCH
from karpy.model.pods import Pod
from karpy.model.verdicts import Nomination, Reason, Refusal, Verdict
from tests.adapters.telemetry.books import Book
from tests.builders import NOON, owner, pod, snapshot
from tests.core.lifecycle.scenes import node

PENDING = pod("web", namespace="shop", age=timedelta())
PLACED = Verdict(nominations=(Nomination("node-1", ("shop/web",)),))
REFUSED = Verdict(refusals=(Refusal(Reason.NO_HOST, ("shop/web",)),))
NOT_YET = Verdict(refusals=(Refusal(Reason.UNDECIDED, ("shop/web",)),))
WAITS = (
    "unstarted",
    "unbound",
    "provisioning_unstarted",
    "provisioning_unbound",
    "provisioning_scheduling_undecided",
)
MEASURED = (
    "scheduling_decision",
    "bound",
    "provisioning_bound",
    "startup",
    "provisioning_startup",
)


class Story:
    """A pod's way, told second by second."""

    def __init__(self) -> None:
        self.book = Book()
        self.times = PodTimes(self.book.metrics, self.book.records, self.book)
        PodMetrics(self.book.metrics, self.book.records, self.times)

    def after(self, seconds: float, pod: Pod) -> None:
        self.book.wait(seconds)
        self.book.put_pods(pod)

    def decide(self, seconds: float, verdict: Verdict) -> None:
        self.book.wait(seconds)
        self.times.decided(snapshot(), verdict)

    def waits(self) -> dict[str, float]:
        """Return for how long the pod has waited for what."""
        told = {each: self.book.told(f"pods_{each}_time_seconds", "name") for each in WAITS}
        return {each: values["web"] for each, values in told.items() if values}

    def measured(self) -> dict[str, float]:
        """Return how long everything took together that was measured."""
        told = {each: self.book.told(f"pods_{each}_duration_seconds_sum") for each in MEASURED}
        return {each: values[""] for each, values in told.items() if values}


def bound(pod: Pod, seconds: float) -> Pod:
    moment = NOON + timedelta(seconds=seconds)
    return replace(pod, node_name="node-1", is_unschedulable=False, bound=moment)


def ready(pod: Pod, seconds: float) -> Pod:
    return replace(bound(pod, 5), phase="Running", ready=NOON + timedelta(seconds=seconds))


def test_a_pod_is_exported_with_its_node() -> None:
    story = Story()
    story.book.put_node(node(labels={ARCH: "arm64"}))
    owned = pod(
        "web", namespace="shop", on="node-1", owners=[owner(("apps/v1", "ReplicaSet"), "web")]
    )
    story.book.put_pods(replace(owned, ready=NOON))

    assert story.book.labels("pods_state") == [
        {
            "arch": "arm64",
            "capacity_type": "",
            "instance_type": "",
            "managed": "true",
            "name": "web",
            "namespace": "shop",
            "node": "node-1",
            "nodepool": "web",
            "owner": "/apis/apps/v1/namespaces/shop/replicasets/web",
            "phase": "Running",
            "ready": "true",
            "scheduled": "true",
            "zone": "zone-a",
        }
    ]


def test_an_unbound_pod_is_exported_without_a_node() -> None:
    story = Story()
    story.book.put_pods(PENDING)

    (labels,) = story.book.labels("pods_state")

    told = {key: labels[key] for key in ("node", "scheduled", "phase", "ready", "managed")}
    assert told == {
        "node": "",
        "scheduled": "false",
        "phase": "Pending",
        "ready": "false",
        "managed": "false",
    }


def test_a_pod_waits_for_a_decision_then_for_a_node_then_to_be_ready() -> None:
    story, waits = Story(), []
    story.after(1, PENDING)
    story.times.acked(PENDING)
    story.book.wait(1)
    waits.append(story.waits())
    story.decide(1, PLACED)
    story.book.wait(1)
    waits.append(story.waits())
    story.after(1, bound(PENDING, 5))
    waits.append(story.waits())
    story.after(4, ready(PENDING, 9))
    waits.append(story.waits())

    assert waits == [
        {"unstarted": 2.0, "unbound": 2.0, "provisioning_scheduling_undecided": 1.0},
        {
            "unstarted": 4.0,
            "unbound": 4.0,
            "provisioning_unstarted": 1.0,
            "provisioning_unbound": 1.0,
        },
        {"unstarted": 5.0, "provisioning_unstarted": 2.0},
        {},
    ]
    assert story.measured() == {
        "scheduling_decision": 2.0,
        "bound": 5.0,
        "provisioning_bound": 2.0,
        "startup": 9.0,
        "provisioning_startup": 6.0,
    }


def test_only_the_first_decision_is_measured_and_the_first_place_counts() -> None:
    story = Story()
    story.after(0, PENDING)
    story.times.acked(PENDING)
    story.decide(1, NOT_YET)
    story.decide(1, REFUSED)
    story.decide(1, PLACED)
    story.decide(1, PLACED)

    assert story.measured() == {"scheduling_decision": 2.0}
    assert story.waits()["provisioning_unbound"] == 1.0


def test_a_pod_that_lost_its_place_waits_without_one() -> None:
    story = Story()
    story.after(0, PENDING)
    story.decide(1, PLACED)
    story.decide(1, REFUSED)

    assert story.waits() == {"unstarted": 2.0, "unbound": 2.0}


def test_what_started_before_we_looked_is_not_measured() -> None:
    story = Story()

    story.after(0, ready(PENDING, 9))
    story.after(1, replace(ready(PENDING, 9), ready=None))
    story.after(1, ready(PENDING, 11))

    assert story.measured() == {}


def test_a_pod_that_ended_was_never_started() -> None:
    story = Story()
    story.after(0, PENDING)

    story.after(1, replace(bound(PENDING, 1), phase="Failed"))

    assert (story.waits(), story.measured()) == ({}, {"bound": 1.0})


def test_another_pod_of_the_same_name_starts_anew() -> None:
    story = Story()
    story.after(0, PENDING)
    story.times.acked(PENDING)
    story.decide(1, PLACED)

    story.after(9, replace(PENDING, uid="other", created=NOON + timedelta(seconds=10)))

    assert story.waits() == {"unstarted": 0.0, "unbound": 0.0}


def test_a_pod_that_is_gone_is_forgotten() -> None:
    story = Story()
    story.after(0, PENDING)
    story.times.acked(PENDING)
    story.decide(1, PLACED)

    story.book.records.pods.put("shop/web", None)

    assert (story.waits(), story.times.all()) == ({}, {})


def test_pods_that_leave_their_node_do_not_wait_yet() -> None:
    story = Story()
    story.after(0, ready(PENDING, 9))

    story.decide(1, PLACED)

    assert story.times.all() == {}
