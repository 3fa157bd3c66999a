from datetime import timedelta

import pytest
from msgspec.structs import replace

from karpy.codec.fields import JsonObject
from karpy.codec.pods import EPOCH
from karpy.codec.unreadable import (
    WITHOUT_ROOM,
    attachment,
    bound_pod,
    claim_record,
    node_record,
    pod_budget,
    unreadable_pod,
)
from karpy.model.pods import Owner, Pod, PodDisruption, PodRules
from karpy.model.resources import CPU, PODS
from karpy.model.storage import VolumeAttachment
from tests.builders import pod as known_pod
from tests.builders.pods import NOON

META = {
    "name": "a",
    "namespace": "shop",
    "uid": "uid-a",
    "creationTimestamp": "2026-03-02T12:00:00Z",
    "labels": {"app": "web"},
    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u"}],
}
SPEC = {"nodeName": "n1", "containers": [{"resources": {"requests": {"cpu": "1"}}}]}
RULES = PodRules(unreadable="it is odd")
OWNERS = (Owner("apps/v1", "DaemonSet", "d", "u"),)


def test_an_unreadable_pod_has_all_readable_fields() -> None:
    obj = {"metadata": META, "spec": SPEC, "status": {"phase": "Running"}}

    assert unreadable_pod(obj, "it is odd") == Pod(
        "a",
        "shop",
        "uid-a",
        NOON,
        {"app": "web"},
        {CPU: 1000, PODS: 1},
        RULES,
        node_name="n1",
        phase="Running",
        owners=OWNERS,
    )


def test_a_pod_with_unreadable_requests_fills_its_node() -> None:
    meta = {**META, "labels": 1, "ownerReferences": 2, "creationTimestamp": 3}
    obj = {"metadata": meta, "spec": {"nodeName": "n1", "containers": 4}, "status": 5}

    made = unreadable_pod(obj, "it is odd")

    assert made == replace(
        made, name="a", namespace="shop", uid="uid-a", node_name="n1", labels={}, owners=()
    )
    assert made.requests == WITHOUT_ROOM


def test_a_pod_with_only_a_readable_name_stays_on_its_node() -> None:
    known = known_pod("a", on="n1")

    made = unreadable_pod({"metadata": {"name": "a"}}, "it is odd", known)

    assert made == replace(known, rules=RULES)


def test_a_drain_reads_all_readable_fields_of_an_unreadable_pod() -> None:
    spec = {**SPEC, "tolerations": [{"operator": "Odd"}], "terminationGracePeriodSeconds": 5}

    found = bound_pod({"metadata": META, "spec": spec})

    problem = "`spec.tolerations[0].operator` is `Odd`"
    assert replace(found, labels={}, requests={}, owners=(), created=EPOCH) == Pod(
        name="a",
        namespace="shop",
        uid="uid-a",
        created=EPOCH,
        labels={},
        requests={},
        rules=PodRules(unreadable=problem),
        node_name="n1",
        disruption=PodDisruption(grace=timedelta(seconds=5)),
    )
    assert found.is_daemon


@pytest.mark.parametrize("annotations", [3, {"a": 1}, ["b"]])
def test_a_pod_with_unreadable_annotations_blocks_disruption(annotations: object) -> None:
    obj: JsonObject = {"metadata": {"name": "a", "annotations": annotations}}

    assert bound_pod(obj).disruption.do_not_disrupt == "true"
    assert unreadable_pod(obj, "it is odd").disruption.do_not_disrupt == "true"


def test_an_unreadable_budget_allows_no_eviction_in_its_namespace() -> None:
    selector = {"matchExpressions": [{"key": "app", "operator": "Odd"}]}
    meta = {"name": "b", "namespace": "shop"}
    budget = pod_budget({"metadata": meta, "spec": {"selector": selector}})

    covered = [budget.covers(known_pod("a", namespace=name)) for name in ("shop", "other")]

    assert (covered, budget.disruptions_allowed) == ([True, False], None)


def test_unreadable_claims_and_nodes_keep_their_provider_id() -> None:
    odd = {"metadata": {"name": "a", "finalizers": 3, "labels": {"b": "c"}}}
    claim = claim_record({**odd, "status": {"providerID": "kwok://a"}})
    node = node_record({**odd, "spec": {"providerID": "kwok://a"}})

    assert (claim.name, claim.provider_id) == ("a", "kwok://a")
    assert (node.name, node.provider_id, node.meta.labels) == ("a", "kwok://a", {"b": "c"})


def test_a_node_waits_for_an_attachment_that_cannot_be_read() -> None:
    source = {"persistentVolumeName": ["pv-1"]}

    made = attachment({"metadata": {"name": "va"}, "spec": {"nodeName": "n1", "source": source}})

    assert made == VolumeAttachment("va", "n1", "va")
