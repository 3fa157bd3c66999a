"""Pods are expected on nodes for a while."""

from datetime import datetime, timedelta

import pytest

from karpy.controllers.nominations import NodeNominations
from tests.builders.pods import NOON

SECOND = timedelta(seconds=1)


class Watch:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.time = NOON

    def now(self) -> datetime:
        return self.time


@pytest.mark.parametrize(("batch", "window"), [(10, 20), (2, 10), (60, 120)])
def test_pods_are_expected_for_two_batches_or_ten_seconds(batch: int, window: int) -> None:
    nominations = NodeNominations(Watch(), batch * SECOND)

    nominations.note("node-1")

    assert nominations.until("node-1") == NOON + window * SECOND


def test_every_nomination_begins_anew() -> None:
    watch = Watch()
    nominations = NodeNominations(watch)

    nominations.note("node-1")
    watch.time += 15 * SECOND
    nominations.note("node-1")

    assert nominations.until("node-1") == NOON + 35 * SECOND


def test_a_node_is_known_by_its_own_name_and_by_that_of_its_claim() -> None:
    watch = Watch()
    nominations = NodeNominations(watch)

    nominations.note("claim-1")
    watch.time += SECOND
    nominations.note("node-1")

    assert nominations.until("claim-1") == NOON + 20 * SECOND
    assert nominations.until("claim-1", "node-1") == NOON + 21 * SECOND
    assert nominations.until("claim-2", "node-2") is None


def test_what_is_over_is_forgotten() -> None:
    watch = Watch()
    nominations = NodeNominations(watch)

    nominations.note("node-1")
    watch.time += 20 * SECOND
    nominations.note("node-2")

    assert nominations.until("node-1") is None
