from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from karpy.codec.fields import FieldInvalid, Fields, JsonObject, read_duration
from karpy.codec.patches.merge import merge
from karpy.codec.records import (
    Writes,
    claim_writes,
    node_writes,
    pool_writes,
    read_claim_record,
    read_node_record,
    read_pool_record,
)
from karpy.model.conditions import Condition
from karpy.model.constraints import Taint
from karpy.model.records import OwnerReference

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
CLAIM: JsonObject = {
    "metadata": {
        "name": "web-1",
        "uid": "u1",
        "resourceVersion": "7",
        "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"karpenter.sh/nodepool": "web", "old": "x"},
        "finalizers": ["karpenter.sh/termination"],
    },
    "spec": {
        "nodeClassRef": {"group": "g", "kind": "K", "name": "k"},
        "requirements": [{"key": "zone", "operator": "In", "values": ["a"]}],
        "resources": {"requests": {"cpu": "1"}},
        "expireAfter": "720h",
        "terminationGracePeriod": "1h30m",
    },
    "status": {"conditions": [{"type": "Launched", "status": "Unknown"}]},
}
NODE: JsonObject = {
    "metadata": {"name": "n1", "resourceVersion": "3"},
    "spec": {
        "providerID": "kwok://n1",
        "taints": [{"key": "a", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}],
    },
    "status": {
        "conditions": [{"type": "Ready", "status": "True"}],
        "nodeInfo": {"bootID": "b1"},
    },
}
POOL: JsonObject = {
    "metadata": {"name": "web", "resourceVersion": "5"},
    "spec": {"replicas": 3, "limits": {"nodes": "9"}, "template": {"spec": {}}},
    "status": {"resources": {"cpu": "4", "example.com/gpu": "1"}, "nodes": 1},
}


def test_a_claim_is_read_in_full() -> None:
    claim = read_claim_record(Fields(CLAIM))

    assert (claim.name, claim.pool, claim.meta.version) == ("web-1", "web", "7")
    assert claim.expire_after == timedelta(hours=720)
    assert claim.grace_period == timedelta(minutes=90)
    assert claim.requests == {"cpu": 1000}
    assert not claim.conditions.is_true("Launched")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10s", timedelta(seconds=10)),
        ("1h30m", timedelta(minutes=90)),
        ("1.5h", timedelta(minutes=90)),
        ("500ms", timedelta(milliseconds=500)),
        ("Never", None),
        ("", None),
    ],
)
def test_durations_are_read_as_go_writes_them(text: str, expected: timedelta | None) -> None:
    assert read_duration(Fields({"after": text}), "after") == expected


def test_an_invalid_duration_is_named() -> None:
    with pytest.raises(FieldInvalid, match="`after` is `soon`"):
        read_duration(Fields({"after": "soon"}), "after")


def test_a_record_that_did_not_change_writes_nothing() -> None:
    claim, node = read_claim_record(Fields(CLAIM)), read_node_record(Fields(NODE))
    pool = read_pool_record(Fields(POOL))

    assert claim_writes(claim, claim) == Writes()
    assert node_writes(node, node, NODE) == Writes()
    assert pool_writes(pool, pool) == Writes()


def test_the_patches_turn_one_claim_into_the_other() -> None:
    before = read_claim_record(Fields(CLAIM))
    launched = Condition("Launched", "True", NOON, "Launched", "", 1)
    after = replace(
        before,
        meta=replace(before.meta, labels={"karpenter.sh/nodepool": "web", "new": "y"}),
        provider_id="kwok://n1",
        capacity={"cpu": 4000},
        last_pod_event=NOON,
        conditions=before.conditions.with_condition(launched, NOON),
    )

    writes = claim_writes(before, after)

    assert writes.main == {"metadata": {"labels": {"new": "y", "old": None}}}
    assert writes.status is not None
    assert writes.status["metadata"] == {"resourceVersion": "7"}
    whole = merge(merge(CLAIM, writes.main), writes.status)
    assert read_claim_record(Fields(whole)) == after


def test_taints_keep_fields_that_the_record_lacks() -> None:
    before = read_node_record(Fields(NODE))
    after = replace(before, taints=(*before.taints, Taint("karpenter.sh/disrupted", "NoSchedule")))

    writes = node_writes(before, after, NODE)

    assert writes.main == {
        "metadata": {"resourceVersion": "3"},
        "spec": {
            "taints": [
                {"key": "a", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"},
                {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"},
            ]
        },
    }


def test_lists_are_guarded_by_the_version_they_were_read_at() -> None:
    before = read_node_record(Fields(NODE))
    owner = OwnerReference("karpenter.sh/v1", "NodeClaim", "web-1", "u1", blocks_deletion=True)
    meta = replace(before.meta, finalizers=("karpenter.sh/termination",), owners=(owner,))

    writes = node_writes(before, replace(before, meta=meta), NODE)

    assert writes.main == {
        "metadata": {
            "resourceVersion": "3",
            "finalizers": ["karpenter.sh/termination"],
            "ownerReferences": [
                {
                    "apiVersion": "karpenter.sh/v1",
                    "kind": "NodeClaim",
                    "name": "web-1",
                    "uid": "u1",
                    "blockOwnerDeletion": True,
                }
            ],
        }
    }


def test_a_resource_that_a_pool_no_longer_has_is_removed() -> None:
    before = read_pool_record(Fields(POOL))

    writes = pool_writes(before, replace(before, resources={"cpu": 8000}, nodes=2))

    assert writes.status == {
        "status": {"resources": {"cpu": "8", "example.com/gpu": None}, "nodes": 2}
    }


def test_a_node_says_whether_it_is_ready_and_how_it_booted() -> None:
    node = read_node_record(Fields(NODE))

    assert node.is_ready
    assert node.boot_id == "b1"
