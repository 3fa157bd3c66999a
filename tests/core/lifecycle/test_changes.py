from datetime import timedelta

import pytest
from msgspec.structs import replace

from karpy.core.lifecycle.changes import (
    Changes,
    count_reschedulable,
    hydrate_claim,
    hydrate_node,
    termination_mode,
)
from karpy.model.pods import NODE, STATEFUL_SET
from karpy.model.records import NodeClassRef
from tests.builders.pods import daemon_pod, owner, pod
from tests.core.lifecycle.scenes import CLASS_LABEL, claim, node

MINUTE = timedelta(minutes=1)


def test_reschedulable_pods_are_counted() -> None:
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
def test_the_termination_mode_follows_the_grace_period(
    grace: timedelta | None, expected: str
) -> None:
    assert termination_mode(grace) == expected


def test_claims_and_nodes_name_their_node_class() -> None:
    hydrated, host = hydrate_claim(claim()).claim, hydrate_node(node(), claim()).node

    assert hydrated == claim(labels=CLASS_LABEL)
    assert host == node(labels=CLASS_LABEL)


def test_a_claim_without_a_node_class_gets_no_label() -> None:
    bare = replace(claim(), node_class=NodeClassRef())

    assert hydrate_claim(bare) == Changes(bare)
