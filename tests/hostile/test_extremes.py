"""Whatever number an object carries: it is read or set aside, and the others have their answer."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final, TypeVar, Unpack

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import DecodeError
from msgspec.json import encode
from msgspec.structs import replace

from karpy.adapters.mirror import records
from karpy.codec.buffers import buffer_writes, read_buffer_record
from karpy.codec.disruption import read_policy
from karpy.codec.fields import FieldInvalid, JsonObject
from karpy.codec.objects import read_budget
from karpy.codec.podjson import PodJsonReader
from karpy.codec.pods import PodReader
from karpy.codec.recordings import (
    RecordingReader,
    encode_catalog,
    encode_decision,
    encode_disruption,
)
from karpy.codec.records import claim_writes, node_writes, pool_writes
from karpy.codec.templates import read_template
from karpy.codec.unreadable import bound_pod
from karpy.codec.verdicts import disruption_to_json, verdict_to_json
from karpy.codec.workloads import read_daemon_set
from karpy.core.buffers import PODS_MAX, Resolved, settle, virtual_pods
from karpy.core.disruption.decide import METHODS, decide_nodes
from karpy.core.lifecycle.changes import Changes
from karpy.core.lifecycle.drain import DrainingNode
from karpy.core.lifecycle.expiration import check_expiry
from karpy.core.lifecycle.markers import mark_consolidatable
from karpy.core.lifecycle.reboot import is_rebooting, reboot
from karpy.core.lifecycle.registration import ClaimInputs, advance
from karpy.core.lifecycle.termination import terminate_claim, terminate_node
from karpy.core.nodepool.hash import hash_template
from karpy.core.nodepool.staticcapacity import CREATES_MAX, fill_up
from karpy.core.scheduling.decide import decide
from karpy.model.labels import NODE_POOL
from karpy.model.nodes import Node, RepairRules, join_node
from karpy.model.pods import Pod
from karpy.model.pools import DisruptionPolicy, Headcount
from karpy.model.snapshot import DisruptionQuestion, LegacyRepairQuestion, NodeQuestion, Snapshot
from karpy.model.times import LONGEST
from karpy.ports.objects import Reader
from karpy.ports.records import Kept
from tests.builders import node, pod, pool, snapshot
from tests.builders.clusters import SnapshotFields
from tests.builders.pods import NOON
from tests.core.disruption import scenes
from tests.core.disruption.methods.test_repair import broken
from tests.core.disruption.questions import REPAIRS
from tests.hostile import extremes
from tests.hostile.extremes import read_or_none

T = TypeVar("T")

POOLS: Final = (pool("shop"), pool("hostile"))
FINE: Final = tuple(
    pod(f"fine-{number}", cpu="3", selector={NODE_POOL: "shop"}) for number in range(4)
)
BESIDE: Final = node("beside", pool="shop", cpu="4")
WELL: Final = tuple(scenes.node(f"well-{number}") for number in range(20))
often: Final = settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])


def entries(reader: Reader[T], obj: JsonObject) -> tuple[T, ...]:
    """Read an object as the mirror does; none if it is set aside."""
    try:
        return (reader.from_bytes(encode(obj)),)
    except (FieldInvalid, DecodeError):
        return ()


def fine_answers(cluster: Snapshot) -> tuple[object, ...]:
    """Decide, record the decision, and return what becomes of the pods that are like any other."""
    verdict = decide(cluster)
    digest, catalog = encode_catalog(cluster.catalog)
    reader = RecordingReader()
    reader.read(catalog[:-1])
    recording = reader.read(encode_decision(cluster, verdict, digest, "test")[:-1])
    assert recording is not None
    assert recording.verdict == verdict_to_json(verdict)
    launches = [
        (each.pods, each.resources, each.options)
        for each in verdict.launches
        if each.pool == "shop"
    ]
    nominations = [each for each in verdict.nominations if each.node == "beside"]
    keys = {each.key for each in FINE}
    refused = [key for each in verdict.refusals for key in each.pods if key in keys]
    return launches, nominations, refused


def cluster(*hostile: Pod, **more: Unpack[SnapshotFields]) -> Snapshot:
    """Build a cluster of pods like any other, with hostile objects."""
    fields = SnapshotFields(pools=POOLS)
    fields.update(more)
    fields["pods"] = (*FINE, *hostile)
    fields["nodes"] = (BESIDE, *more.get("nodes", ()))
    return snapshot(**fields)


FINE_ANSWERS: Final = fine_answers(cluster())


@often
@given(extremes.pods() | extremes.pods("there"))
def test_a_pod_changes_no_answer_about_others(obj: JsonObject) -> None:
    there = node("there", pool="hostile", cpu="8")

    assert fine_answers(cluster(*entries(PodJsonReader(), obj), nodes=[there])) == FINE_ANSWERS


@often
@given(extremes.nodes(), extremes.node_claims())
def test_a_node_changes_no_answer_about_others(node_obj: JsonObject, claim_obj: JsonObject) -> None:
    found = entries(records.NODES, node_obj)
    claims = entries(records.CLAIMS, claim_obj)
    claim = claims[0].value if claims else None
    joined = [join_node(each.value, claim, None) for each in found]

    assert fine_answers(cluster(nodes=joined)) == FINE_ANSWERS


@often
@given(extremes.node_pools(), extremes.pods())
def test_a_pool_changes_no_answer_about_others(obj: JsonObject, pod_obj: JsonObject) -> None:
    pools = [POOLS[0], *(each.value for each in entries(records.POOLS, obj))]

    found = fine_answers(cluster(*entries(PodJsonReader(), pod_obj), pools=pools))

    assert found == FINE_ANSWERS


@often
@given(extremes.overlays(), extremes.daemon_sets(), extremes.pods())
def test_an_overlay_and_a_daemon_change_no_answer_about_others(
    overlay: JsonObject, daemon_set: JsonObject, pod_obj: JsonObject
) -> None:
    overlays = [each.value for each in entries(records.OVERLAYS, overlay)]
    daemon = read_or_none(lambda fields: read_daemon_set(fields, PodReader()), daemon_set)

    found = cluster(
        *entries(PodJsonReader(), pod_obj),
        overlays=filter(None, overlays),
        daemons=filter(None, [daemon]),
    )

    assert fine_answers(found) == FINE_ANSWERS


@often
@given(extremes.buffers())
def test_a_buffer_has_no_more_pods_than_a_decision_can_look_at(obj: JsonObject) -> None:
    buffer = read_or_none(read_buffer_record, obj)
    records = [] if buffer is None else [buffer]

    settled = [settle(each, Resolved(FINE[0], 5), NOON) for each in records]
    sizes = [len(virtual_pods(each, FINE[0], NOON)) for each in (*records, *settled)]
    written = [encode(buffer_writes(*pair).status) for pair in zip(records, settled, strict=True)]

    assert max(sizes, default=0) <= PODS_MAX
    assert len(written) == len(records)


def hostile_nodes(node_obj: JsonObject, claim_obj: JsonObject) -> tuple[Node, ...]:
    """Return a node as disruption sees it; none if any part of it is set aside."""
    found = entries(records.NODES, node_obj)
    claims = entries(records.CLAIMS, claim_obj)
    return tuple(
        join_node(node.value, claim.value) for node, claim in zip(found, claims, strict=False)
    )


def hostile_cluster(
    nodes: Iterable[Node], pod_obj: JsonObject, pool_obj: JsonObject, budget_obj: JsonObject
) -> Snapshot:
    """Build a cluster of nodes that are empty, and one that is broken, with hostile objects."""
    budget = read_or_none(read_budget, budget_obj)
    pools = [
        replace(each.value, record=each.kept.record) for each in entries(records.POOLS, pool_obj)
    ]
    return scenes.cluster(
        *WELL,
        broken("ill"),
        *nodes,
        pods=entries(PodJsonReader(), pod_obj),
        pools=[scenes.pool(), *pools],
        budgets=() if budget is None else (budget,),
        repair=RepairRules(REPAIRS),
    )


def chosen(question: NodeQuestion) -> list[str]:
    """Decide, record the decision, and return which nodes go that are like any other."""
    verdict = decide_nodes(question)
    line = encode_disruption(question, verdict, "a", "test")
    assert disruption_to_json(verdict) in line
    return sorted(each.node for each in verdict.nodes if each.pool == "web")


@often
@given(
    st.builds(hostile_nodes, extremes.nodes(), extremes.node_claims()),
    extremes.pods("hostile"),
    extremes.node_pools(),
    extremes.pod_budgets(),
)
def test_a_node_that_is_hostile_keeps_no_other_from_its_disruption(
    nodes: tuple[Node, ...], pod_obj: JsonObject, pool_obj: JsonObject, budget_obj: JsonObject
) -> None:
    snapshot = hostile_cluster(nodes, pod_obj, pool_obj, budget_obj)

    found = {
        "repair": chosen(DisruptionQuestion(snapshot)) in ([], ["ill"]),
        "empty": chosen(DisruptionQuestion(snapshot, frozenset({"repair"}))),
        "legacy": [chosen(LegacyRepairQuestion(snapshot, each.claim)) for each in nodes],
    }

    assert found == {
        "repair": True,
        "empty": sorted([*(each.name for each in WELL), "ill"]),
        "legacy": [[] for _ in nodes],
    }


@often
@given(
    st.builds(hostile_nodes, extremes.nodes(), extremes.node_claims()),
    extremes.pods("hostile"),
    extremes.node_pools(),
    extremes.pod_budgets(),
    st.integers(0, len(METHODS)),
)
def test_every_method_has_an_answer_about_a_hostile_node(
    nodes: tuple[Node, ...],
    pod_obj: JsonObject,
    pool_obj: JsonObject,
    budget_obj: JsonObject,
    first: int,
) -> None:
    drifted = scenes.node("drifted", true_conditions=["Drifted"])
    snapshot = hostile_cluster((drifted, *nodes), pod_obj, pool_obj, budget_obj)
    settled = frozenset(each.name for each in METHODS[:first])

    verdict = decide_nodes(DisruptionQuestion(snapshot, settled))

    assert disruption_to_json(verdict).startswith(b"{")


def pauses(outcomes: Iterable[Changes]) -> list[timedelta]:
    """Return after how long objects are looked at again."""
    return [each.requeue_after for each in outcomes if each.requeue_after is not None]


def steps(found: Node, pods: tuple[Pod, ...], patience: timedelta | None) -> list[Changes]:
    """Take every step of the life of a claim and its node that there is."""
    claim, seen = found.claim_record, found.node_record
    assert claim is not None
    assert seen is not None
    draining = DrainingNode(seen, claim, pods)
    return [
        advance(claim, ClaimInputs((seen,)), NOON),
        check_expiry(claim, NOON),
        mark_consolidatable(claim, patience, NOON),
        terminate_claim(claim, (seen,), NOON).changes,
        terminate_node(draining, (), NOON).changes,
        *([reboot(claim, seen, pods, NOON).changes] if is_rebooting(claim) else []),
    ]


def written(found: Node, outcome: Changes) -> bytes:
    """Write the patches of a step."""
    assert found.claim_record is not None
    assert found.node_record is not None
    claim = claim_writes(found.claim_record, outcome.claim or found.claim_record)
    node = node_writes(found.node_record, outcome.node or found.node_record, {})
    return encode([claim.main, claim.status, node.main])


@often
@given(
    st.builds(hostile_nodes, extremes.nodes(), extremes.node_claims()),
    extremes.pods("hostile"),
    extremes.node_pools(),
)
def test_every_step_of_a_claim_can_be_taken_and_written(
    nodes: tuple[Node, ...], pod_obj: JsonObject, pool_obj: JsonObject
) -> None:
    policy = read_or_none(read_policy, pool_obj) or DisruptionPolicy()
    pods = (bound_pod(pod_obj),)

    outcomes = [
        (each, outcome) for each in nodes for outcome in steps(each, pods, policy.consolidate_after)
    ]
    patches = [written(*each) for each in outcomes]

    longest = max(pauses(outcome for _, outcome in outcomes), default=timedelta())
    # Moments of objects end in the year 9000.
    assert longest < 30 * LONGEST
    assert all(patch.startswith(b"[") for patch in patches)


@often
@given(extremes.node_pools())
def test_a_pool_is_hashed_and_filled_up_in_bounded_steps(obj: JsonObject) -> None:
    template = read_or_none(read_template, obj)
    pools: list[Kept[Any]] = [each.kept for each in entries(records.POOLS, obj)]

    digests = [hash_template(each) for each in filter(None, [template])]
    creates = [fill_up(each.record, Headcount(), is_synced=True).creates for each in pools]
    patches = [pool_writes(each.record, each.record) for each in pools]

    assert all(digest.isdecimal() for digest in digests)
    assert max(creates, default=0) <= CREATES_MAX
    assert len(patches) == len(pools)
