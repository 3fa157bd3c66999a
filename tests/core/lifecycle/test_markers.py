from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from karpy.core.lifecycle.changes import Changes
from karpy.core.lifecycle.markers import (
    BUSY_TIME,
    RECHECK_PERIOD,
    PodEvent,
    can_wait,
    find_drift,
    is_markable,
    is_type_check_due,
    mark_consolidatable,
    mark_drifted,
    note_pod_event,
)
from karpy.model.instances import Catalog
from karpy.model.labels import INSTANCE_TYPE
from karpy.model.pods import Pod
from karpy.model.records import ClaimRecord
from karpy.model.requirements import Operator, Requirement, one_of, require
from tests.builders.clouds import RESERVATION, WELL_KNOWN_HERE, instance_type, offering
from tests.builders.pods import NOON, daemon_pod, pod
from tests.core.lifecycle.scenes import claim, condition_of, pool

MINUTE = timedelta(minutes=1)
HASH = "karpenter.sh/nodepool-hash"
VERSION = "karpenter.sh/nodepool-hash-version"


def catalog(*, name: str = "c-4x", zone: str = "zone-a", reservation: str = "") -> Catalog:
    sold = offering(zone, "spot", reservation=reservation, available=False)
    types = (instance_type(name, offerings=[sold]),)
    return Catalog(types, well_known=WELL_KNOWN_HERE, reservation_label=RESERVATION)


def test_a_claim_equal_to_its_pools_template_has_not_drifted() -> None:
    made = claim(labels={INSTANCE_TYPE: "c-4x"}, annotations={HASH: "1", VERSION: "v3"})
    its = pool(annotations={HASH: "1", VERSION: "v3"})

    assert find_drift(made, its, [one_of("karpenter.sh/nodepool", "web")], catalog()) == ""


@pytest.mark.parametrize(
    ("mine", "its", "expected"),
    [
        ({HASH: "1", VERSION: "v3"}, {HASH: "2", VERSION: "v3"}, "NodePoolDrifted"),
        ({HASH: "1", VERSION: "v2"}, {HASH: "2", VERSION: "v3"}, ""),
        ({HASH: "1"}, {HASH: "2", VERSION: "v3"}, ""),
        ({VERSION: "v3"}, {HASH: "2", VERSION: "v3"}, ""),
        ({HASH: "1", VERSION: "v3"}, {}, ""),
    ],
)
def test_hashes_of_the_same_version_are_compared(
    mine: dict[str, str], its: dict[str, str], expected: str
) -> None:
    assert find_drift(claim(annotations=mine), pool(annotations=its), ()) == expected


@pytest.mark.parametrize(
    ("requirements", "expected"),
    [
        ([one_of("topology.kubernetes.io/zone", "zone-a", "zone-b")], ""),
        ([one_of("topology.kubernetes.io/zone", "zone-b")], "RequirementsDrifted"),
        ([require("family", Operator.EXISTS)], "RequirementsDrifted"),
        ([require("family", Operator.NOT_IN, ["x"])], ""),
    ],
)
def test_labels_outside_the_pools_requirements_are_drift(
    requirements: Sequence[Requirement], expected: str
) -> None:
    assert find_drift(claim(), pool(), requirements) == expected


@pytest.mark.parametrize(
    ("sold", "expected"),
    [
        (catalog(), ""),
        (catalog(name="other"), "InstanceTypeNotFound"),
        (catalog(zone="zone-b"), "InstanceTypeNotFound"),
    ],
    ids=["sold out only", "no such type", "not in this zone"],
)
def test_an_instance_type_must_be_offered_where_the_node_is(sold: Catalog, expected: str) -> None:
    assert find_drift(claim(labels={INSTANCE_TYPE: "c-4x"}), pool(), (), sold) == expected


@pytest.mark.parametrize(
    ("sold", "expected"),
    [
        (catalog(reservation="cr-2"), ""),
        (
            Catalog(
                (instance_type("c-4x", offerings=[offering("zone-a", "on-demand")]),),
                well_known=WELL_KNOWN_HERE,
                reservation_label=RESERVATION,
            ),
            "",
        ),
        (catalog(), "InstanceTypeNotFound"),
    ],
    ids=["another reservation", "on demand", "spot only"],
)
def test_a_reserved_node_may_become_an_on_demand_one(sold: Catalog, expected: str) -> None:
    labels = {
        INSTANCE_TYPE: "c-4x",
        "karpenter.sh/capacity-type": "reserved",
        RESERVATION: "cr-1",
    }

    assert find_drift(claim(labels=labels), pool(), (), sold) == expected


def test_a_claim_that_is_not_launched_cannot_drift() -> None:
    made = claim(provider_id="", annotations={HASH: "1", VERSION: "v3"})

    assert find_drift(made, pool(annotations={HASH: "2", VERSION: "v3"}), ()) == ""


@pytest.mark.parametrize(
    ("age", "checked", "expected"),
    [
        (59 * MINUTE, None, False),
        (60 * MINUTE, None, True),
        (90 * MINUTE, 29 * MINUTE, False),
        (90 * MINUTE, 30 * MINUTE, True),
    ],
)
def test_instance_types_are_checked_after_an_hour_every_half_hour(
    age: timedelta, checked: timedelta | None, *, expected: bool
) -> None:
    last = None if checked is None else NOON - checked

    assert is_type_check_due(claim(age=age), last, NOON) is expected


def test_drifted_is_set_and_removed() -> None:
    tainted = mark_drifted(claim(), "NodePoolDrifted", NOON)

    assert tainted.claim is not None
    expected = ("True", "NodePoolDrifted", "NodePoolDrifted")
    assert condition_of(tainted.claim, "Drifted") == expected
    assert tainted.requeue_after == 5 * MINUTE
    assert mark_drifted(tainted.claim, "", NOON) == Changes(claim(), requeue_after=5 * MINUTE)


def test_drifted_is_removed_from_a_claim_that_is_not_launched() -> None:
    odd = claim(provider_id="", said={"Drifted": MINUTE})

    changes = mark_drifted(odd, "NodePoolDrifted", NOON)

    assert condition_of(changes.claim, "Drifted")[0] == "absent"


@pytest.mark.parametrize(
    ("given", "expected"),
    [(claim(), True), (claim(pool=""), False), (claim(deleted=MINUTE), False)],
)
def test_only_claims_with_a_pool_that_are_not_deleting_are_marked(
    given: ClaimRecord, *, expected: bool
) -> None:
    assert is_markable(given) is expected


def initialized(since: timedelta) -> ClaimRecord:
    return claim(said={"Registered": since, "Initialized": since, "Consolidatable": MINUTE})


def unmarked(since: timedelta) -> ClaimRecord:
    return claim(said={"Registered": since, "Initialized": since})


def test_a_node_without_pod_events_is_consolidatable() -> None:
    changes = mark_consolidatable(initialized(5 * MINUTE), 5 * MINUTE, NOON)

    assert condition_of(changes.claim, "Consolidatable") == ("True", "Consolidatable", "")
    assert changes.requeue_after is None


@pytest.mark.parametrize(
    ("given", "after", "again"),
    [
        (initialized(3 * MINUTE), 5 * MINUTE, 2 * MINUTE),
        (replace(initialized(9 * MINUTE), last_pod_event=NOON - MINUTE), 5 * MINUTE, 4 * MINUTE),
        (initialized(9 * MINUTE), None, None),
        (claim(said={"Consolidatable": MINUTE}), timedelta(), None),
    ],
    ids=["young", "busy", "never", "not initialized"],
)
def test_consolidatable_is_removed_after_a_pod_event(
    given: ClaimRecord, after: timedelta | None, again: timedelta | None
) -> None:
    changes = mark_consolidatable(given, after, NOON)

    assert condition_of(changes.claim, "Consolidatable")[0] == "absent"
    assert changes.requeue_after == again


def test_consolidate_after_counts_from_the_last_pod_event() -> None:
    quiet = replace(initialized(MINUTE), last_pod_event=NOON - 9 * MINUTE)

    changes = mark_consolidatable(quiet, 5 * MINUTE, NOON)

    assert condition_of(changes.claim, "Consolidatable")[0] == "True"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (unmarked(MINUTE + BUSY_TIME / 2), None),
        (unmarked(MINUTE + BUSY_TIME), "True"),
        (initialized(MINUTE + BUSY_TIME / 2), "True"),
    ],
    ids=["quiet", "quiet for long", "marked"],
)
def test_consolidatable_is_set_later_while_pods_are_being_bound(
    given: ClaimRecord, expected: str | None
) -> None:
    changes = mark_consolidatable(given, MINUTE, NOON, is_busy=True)

    said = changes.claim and condition_of(changes.claim, "Consolidatable")[0]
    assert said == expected
    assert changes.requeue_after == (None if expected else RECHECK_PERIOD)


def test_a_node_with_nominated_pods_is_not_consolidatable() -> None:
    changes = mark_consolidatable(initialized(9 * MINUTE), MINUTE, NOON, is_nominated=True)

    assert condition_of(changes.claim, "Consolidatable")[0] == "absent"
    assert changes.requeue_after == RECHECK_PERIOD


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (pod("p"), pod("p", on="node-1")),
        (pod("p", on="node-1"), pod("p", on="node-1", phase="Succeeded")),
        (pod("p", on="node-1"), pod("p", on="node-1", deleting=True)),
        (None, pod("p", on="node-1")),
    ],
    ids=["bound", "ended", "leaves", "first seen"],
)
def test_a_pod_that_is_bound_or_ends_is_a_pod_event(before: Pod | None, after: Pod) -> None:
    changes = note_pod_event(claim(), PodEvent(before, after, NOON))

    assert changes == Changes(replace(claim(), last_pod_event=NOON))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (pod("p"), pod("p")),
        (pod("p", on="node-1"), pod("p", on="node-1")),
        (pod("p", on="node-1", deleting=True), pod("p", on="node-1", deleting=True)),
        (daemon_pod("p"), daemon_pod("p", on="node-1")),
    ],
    ids=["pending", "running", "leaving", "daemon"],
)
def test_other_changes_are_no_pod_events(before: Pod, after: Pod) -> None:
    assert note_pod_event(claim(), PodEvent(before, after, NOON)) == Changes()


@pytest.mark.parametrize(("seconds", "is_noted"), [(9, False), (10, True)])
def test_a_claim_is_written_every_ten_seconds_at_most(seconds: int, *, is_noted: bool) -> None:
    busy = replace(claim(), last_pod_event=NOON - timedelta(seconds=seconds))

    changes = note_pod_event(busy, PodEvent(pod("p"), pod("p", on="node-1"), NOON))

    assert (changes.claim is not None) is is_noted


def test_a_restart_counts_no_old_pod_as_a_pod_event() -> None:
    known = replace(claim(), last_pod_event=NOON - MINUTE)
    old, new = pod("old", on="node-1", age=2 * MINUTE), pod("new", on="node-1", age=0 * MINUTE)

    assert note_pod_event(known, PodEvent(None, old, NOON)) == Changes()
    assert note_pod_event(known, PodEvent(None, new, NOON)).claim is not None


@pytest.mark.parametrize(
    ("seconds", "last", "is_patient"), [(14, None, True), (15, None, False), (1, NOON, False)]
)
def test_the_first_pod_event_of_a_claim_may_be_written_later(
    seconds: int, last: datetime | None, *, is_patient: bool
) -> None:
    can = can_wait(replace(claim(), last_pod_event=last), NOON, NOON + timedelta(seconds=seconds))

    assert can is is_patient
