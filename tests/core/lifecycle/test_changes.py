from datetime import timedelta

import pytest

from karpy.core.lifecycle.changes import (
    count_reschedulable,
    termination_mode,
)
from karpy.model.pods import NODE, STATEFUL_SET
from tests.builders.pods import daemon_pod, owner, pod

MINUTE = timedelta(minutes=1)


def test_pods_that_must_move_are_counted() -> None:
    pods = [
        pod("runs", on="n"),
        pod("leaves", on="n", deleting=True),
        pod("ended", on="n", phase="Succeeded"),
        pod("db-0", on="n", deleting=True, owners=[owner(STATEFUL_SET)]),
        pod("static", on="n", owners=[owner(NODE)]),
        daemon_pod("daemon", on="n"),
    ]

    assert count_reschedulable(pods) == 2


@pytest.mark.parametrize(
    ("grace", "expected"),
    [(None, "graceful"), (MINUTE, "eventual"), (timedelta(), "forceful")],
)
def test_a_grace_period_says_how_a_node_ends(grace: timedelta | None, expected: str) -> None:
    assert termination_mode(grace) == expected
