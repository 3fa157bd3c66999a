"""`karpy explain node`: from manifests, from a journal, from a live cluster."""

import asyncio
import json
from datetime import datetime
from pathlib import Path

import pytest
import yaml
from syrupy.assertion import SnapshotAssertion

from karpy.adapters.journal import JournalFiles
from karpy.core.disruption.decide import decide_disruption
from karpy.model.kinds import NODE, NODE_CLAIM, NODE_POOL
from karpy.model.snapshot import DisruptionQuestion
from karpy.sim.world import World
from karpy.wiring.embedded import embedded_world, serve
from karpy.wiring.resident import apply_manifests
from tests.cli.conftest import Karpy
from tests.cli.manifests import pod as pending
from tests.cli.manifests import stream
from tests.cli.nodemanifests import (
    CLUSTER,
    NOW,
    POOLS,
    claim,
    node,
    pod,
    pod_budget,
    pool,
)
from tests.core.disruption import scenes

STORIES = ("general-1", "general-2", "general-3", "general-4", "batch-1", "old-1")
LINES_MAX = 30


@pytest.mark.parametrize("name", STORIES)
def test_each_node_says_why_it_is_still_there(
    karpy: Karpy, name: str, snapshot: SnapshotAssertion
) -> None:
    run = karpy("explain", "node", name, "-", *NOW, stdin=CLUSTER)

    assert len(run.out.splitlines()) < LINES_MAX
    assert run == snapshot


@pytest.mark.parametrize(
    ("name", "code"), [("general-1", 3), ("general-2", 3), ("general-4", 0), ("old-1", 1)]
)
def test_the_exit_code_says_whether_it_stays(karpy: Karpy, name: str, code: int) -> None:
    assert karpy("explain", "node", name, "-", *NOW, stdin=CLUSTER).code == code


def test_a_slash_and_the_name_of_the_claim_will_do_too(karpy: Karpy) -> None:
    words = karpy("explain", "node", "general-1", "-", *NOW, stdin=CLUSTER)
    slash = karpy("explain", "node/general-1", "-", *NOW, stdin=CLUSTER)
    named = karpy("explain", "node", "general-1-claim", "-", *NOW, stdin=CLUSTER)

    assert words == slash == named


def test_json_has_all_methods_ways_and_numbers(karpy: Karpy, snapshot: SnapshotAssertion) -> None:
    run = karpy("explain", "node", "batch-1", "-", *NOW, "--output", "json", stdin=CLUSTER)

    assert run.err == ""
    assert json.loads(run.out) == snapshot


def test_the_word_pod_before_the_name_is_optional(karpy: Karpy) -> None:
    plain = karpy("explain", "shop/web-0", "-", *NOW, stdin=CLUSTER)

    assert karpy("explain", "pod", "shop/web-0", "-", *NOW, stdin=CLUSTER) == plain


def test_an_unknown_name_is_an_error_with_the_nearest_names(karpy: Karpy) -> None:
    run = karpy("explain", "node", "genral-1", "-", *NOW, stdin=CLUSTER)

    assert (run.code, run.out) == (1, "")
    assert "there is no node `genral-1`" in run.err
    assert "hint: name one of: general-1" in run.err


def test_a_pending_pod_that_has_room_there_keeps_the_node(karpy: Karpy) -> None:
    run = karpy("explain", "node", "batch-1", "-", *NOW, stdin=stream(CLUSTER, pending("new")))

    assert run.code == 3
    assert "batch-1 stays: a pending pod is nominated to it" in run.out
    assert "will get      shop/new" in run.out


def test_a_drifted_node_says_since_when_and_both_budgets(karpy: Karpy) -> None:
    drifted = stream(
        pool("general", '[{nodes: "0"}]'),
        node("general-1", 8),
        claim("general-1", 8, said="Drifted Consolidatable"),
        pod("web", "general-1"),
        pod_budget(),
    )

    run = karpy("explain", "node", "general-1", "-", *NOW, stdin=drifted)

    assert "drifted since 2026-03-01 12:05:00 UTC (Drifted)" in " ".join(run.out.split())
    assert "budgets       Drifted: 0 of 1 nodes allowed, 0 taken\n" in run.out
    assert "              Underutilized: 0 of 1 nodes allowed, 0 taken\n" in run.out


def test_explain_uses_the_given_feature_gates(karpy: Karpy) -> None:
    spot = stream(POOLS, node("general-1", 32), claim("general-1", 32), pod("web", "general-1"))
    spot = spot.replace("values: [on-demand]", "values: [spot]")
    spot = spot.replace("capacity-type: on-demand", "capacity-type: spot")
    words = ("explain", "node", "general-1", "-", *NOW)

    closed = karpy(*words, stdin=spot)
    opened = karpy(*words, "--feature-gates", "SpotToSpotConsolidation=true", stdin=spot)

    assert "say so: --feature-gates SpotToSpotConsolidation=true" in " ".join(closed.out.split())
    assert opened.out.startswith("general-1 goes: single-node-consolidation replaces it")


# --- incomplete input ----------------------------------------------------------------------------


def test_nodes_without_claims_are_said_to_lack_them(karpy: Karpy) -> None:
    run = karpy("explain", "node", "general-1", "-", *NOW, stdin=stream(POOLS, node("general-1")))

    assert run.code == 1
    assert "not seen      its NodeClaim" in run.out
    assert "`kubectl get nodeclaims`" in run.out


def test_a_budget_without_a_status_is_said_to_lack_it(karpy: Karpy) -> None:
    bare = CLUSTER.replace(pod_budget(), pod_budget(""))

    run = karpy("explain", "node", "general-1", "-", *NOW, stdin=bare)

    assert run.code == 1
    assert "not seen      the status of PodDisruptionBudget shop/orders-db" in run.out


def test_an_input_without_budgets_of_pods_says_so(karpy: Karpy) -> None:
    run = karpy(
        "explain",
        "node",
        "general-1",
        "-",
        *NOW,
        stdin=stream(POOLS, node("general-1"), claim("general-1")),
    )

    assert run.code == 0
    assert run.err == "note: the input holds no PodDisruptionBudget, so that none protects a pod\n"


def test_a_node_that_karpenter_did_not_make_lacks_nothing(karpy: Karpy) -> None:
    foreign = node("byhand").replace("karpenter.sh/nodepool: general, ", "")

    run = karpy("explain", "node", "byhand", "-", *NOW, stdin=stream(POOLS, foreign))

    assert (run.code, run.err) == (3, "")
    assert "not seen" not in run.out


# --- journals ------------------------------------------------------------------------------------


def journal(folder: Path) -> Path:
    """Record a decision that leaves a node alone, then a decision without that node."""
    held = scenes.pod("db", on="a", cpu="2", do_not_disrupt="true")
    early = scenes.cluster(scenes.node("a"), scenes.node("b"), pods=[held])
    late = scenes.cluster(scenes.node("b"))
    files = JournalFiles(folder, file_bytes=1, files=9)
    for each in (early, late):
        question = DisruptionQuestion(each)
        files.record_disruption(question, decide_disruption(question))
    files.close()
    return folder


def test_a_journal_has_the_last_verdict_on_a_node(
    karpy: Karpy, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    run = karpy("explain", "node", "a", str(journal(tmp_path)))

    assert run.code == 3
    assert run.out.replace(_version(run.out), "VERSION") == snapshot


def test_a_file_of_a_journal_will_do(karpy: Karpy, tmp_path: Path) -> None:
    first = journal(tmp_path) / "decisions-000001.jsonl"

    found = karpy("explain", "node", "a", str(first), "--output", "json")

    answer = json.loads(found.out)["recorded"]
    assert answer["moment"] == "2026-03-02T12:00:00Z"
    assert {each["reason"] for each in answer["last"]["refusals"]} == {"POD_DO_NOT_DISRUPT"}


def test_a_node_that_no_decision_has_seen_is_not_there(karpy: Karpy, tmp_path: Path) -> None:
    run = karpy("explain", "node", "c", str(journal(tmp_path)))

    assert (run.code, run.out) == (1, "")
    assert "no decision has seen it" in run.err


def _version(out: str) -> str:
    return out.partition("by karpy ")[2].partition(";")[0]


# --- live clusters -------------------------------------------------------------------------------


async def test_a_live_cluster_is_looked_at_and_left_as_it_is(karpy: Karpy, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    objects = stream(pool("general"), node("general-1", 8), claim("general-1", 8))
    words = ("explain", "node", "general-1", "--kubeconfig", str(kubeconfig))

    async with embedded_world() as world:
        apply_with_status(world, objects)
        before = versions(world)
        async with serve(world, kubeconfig=kubeconfig):
            run = await asyncio.to_thread(karpy, *words)
        after = versions(world)

    assert (run.code, run.err) == (0, "")
    assert run.out.startswith("general-1 goes: emptiness deletes it")
    assert after == before


def apply_with_status(world: World, text: str) -> None:
    """Create objects with their status, which an API server ignores at creation."""
    apply_manifests(world, [("objects", text)])
    for each in yaml.safe_load_all(text):
        kind = {"Node": NODE, "NodeClaim": NODE_CLAIM}.get(each["kind"])
        if kind is not None:
            stored = world.store.get(kind, each["metadata"]["name"])
            plain = json.loads(json.dumps(each["status"], default=_moment))
            world.store.set_status(kind, stored, plain)


def versions(world: World) -> list[str]:
    names = ((NODE_POOL, "general"), (NODE_CLAIM, "general-1-claim"))
    return [world.store.get(*each)["metadata"]["resourceVersion"] for each in names]


def _moment(value: datetime) -> str:
    return f"{value:%Y-%m-%dT%H:%M:%SZ}"


def test_a_cluster_that_does_not_answer_is_an_error_at_once(karpy: Karpy, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        '{"current-context": "x", "contexts": [{"name": "x", "context": {"cluster": "x", "user":'
        ' "x"}}], "users": [{"name": "x", "user": {}}], "clusters": [{"name": "x", "cluster":'
        ' {"server": "http://127.0.0.1:9"}}]}'
    )

    run = karpy("explain", "node", "a", "--kubeconfig", str(kubeconfig))

    assert (run.code, run.out) == (1, "")
    assert "(KP2001)" in run.err
