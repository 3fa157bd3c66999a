"""Consolidation removes and replaces nodes; protected pods keep their nodes."""

import json
from collections.abc import Callable

import pytest

from benchmarks.peer.measuring import price_of
from karpy.codec.fields import JsonObject
from karpy.model.kinds import DEPLOYMENT, NODE_POOL
from karpy.model.labels import CAPACITY_TYPE
from tests.e2e.claimlog import ClaimLog, Claims, is_true
from tests.e2e.operator.stage import Stage
from tests.scenarios.manifests import deployment, one_of, pool

ON_DEMAND = one_of(CAPACITY_TYPE, "on-demand")
UP_TO_8_CPUS = one_of("karpenter.kwok.sh/instance-cpu", "1", "2", "4", "8")
FREELY: JsonObject = {"consolidateAfter": "2s", "budgets": [{"nodes": "100%"}]}
NOTHING: JsonObject = {"consolidateAfter": "2s", "budgets": [{"nodes": "0"}]}
PROTECTED = "karpenter.sh/do-not-disrupt"
IS_MARKED = "DisruptionReason"


def furnish(stage: Stage, disruption: JsonObject) -> None:
    stage.apply(NODE_POOL, pool(requirements=[ON_DEMAND, UP_TO_8_CPUS], disruption=disruption))


def price(stage: Stage) -> float:
    return sum(map(price_of, stage.all("nodes")))


def is_clean(stage: Stage) -> bool:
    """Say whether every claim has its node, and no node is disrupted."""
    nodes, claims = stage.all("nodes"), stage.all("nodeclaims")
    machines = {each["spec"]["providerID"] for each in nodes}
    return (
        machines == {(each.get("status") or {}).get("providerID") for each in claims}
        and not any(each["spec"].get("taints") for each in nodes)
        and not any(is_true(each, IS_MARKED) for each in claims)
    )


@pytest.mark.usefixtures("log")
def test_after_a_scale_in_the_cluster_costs_what_its_pods_need(stage: Stage) -> None:
    furnish(stage, FREELY)
    stage.apply(DEPLOYMENT, deployment("web", 150))
    stage.wait_for_pods("web", 150)
    full = price(stage)
    stage.scale("web", 100)
    stage.wait(lambda: price(stage) < 0.72 * full and is_clean(stage))
    stage.wait_for_pods("web", 100)

    decided = "karpenter_voluntary_disruption_decisions_total"
    assert stage.counted(decided, reason="underutilized") >= 1
    assert stage.counted("karpenter_consolidation_moves_total", decision="approved") >= 1
    assert stage.counted("karpenter_nodeclaims_disrupted_total", reason="underutilized") >= 1
    assert any("Disrupting Node: Underutilized" in each for each in terminating(stage))


def terminating(stage: Stage) -> list[str]:
    return stage.events("DisruptionTerminating")


def test_what_budgets_and_annotations_protect_stays_until_they_let_it_go(
    stage: Stage, log: ClaimLog
) -> None:
    furnish(stage, NOTHING)
    large(stage)
    stage.wait(lambda: any("blocking budget" in each for each in stage.events("DisruptionBlocked")))
    note(stage, "true")
    stage.plane.kubectl("patch", "nodepool", "default", "--type=merge", "-p", patch(FREELY))
    stage.wait_for_passes(3)
    held = log.deleted | {name for state in log.states() for name in marked(state)}
    note(stage, None)
    stage.wait(lambda: log.deleted and is_clean(stage))

    assert held == set()
    assert len(log.created) == 2
    assert len(stage.running("web")) == 1


def large(stage: Stage) -> None:
    """Bring one pod onto a node that is too large for it."""
    stage.apply(DEPLOYMENT, deployment("web", 7))
    stage.wait_for_pods("web", 7)
    stage.scale("web", 1)
    stage.wait_for_pods("web", 1)


def note(stage: Stage, value: str | None) -> None:
    """Set the annotation on all pods, or remove it."""
    words = f"{PROTECTED}-" if value is None else f"{PROTECTED}={value}"
    stage.plane.kubectl("annotate", "pods", "-l", "app=web", words)


def patch(disruption: JsonObject) -> str:
    return json.dumps({"spec": {"disruption": disruption}})


def marked(claims: Claims) -> list[str]:
    return [name for name, claim in claims.items() if is_true(claim, IS_MARKED)]


def is_replacement_there(claims: Claims) -> bool:
    return len(claims) == 2


def is_deleting(claims: Claims) -> bool:
    return any("deletionTimestamp" in each["metadata"] for each in claims.values())


def kill_once(stage: Stage, log: ClaimLog, has_come: Callable[[Claims], object]) -> None:
    """Kill the operator as soon as a condition holds, and start it again."""
    log.wait(has_come, seconds=90)
    stage.operator.stop(is_killed=True)
    stage.operator.start()


def test_an_operator_killed_between_the_steps_of_a_command_is_continued(
    stage: Stage, log: ClaimLog
) -> None:
    """The new operator continues the command or removes its taint, and no extra node is left."""
    furnish(stage, FREELY)
    large(stage)
    before = price(stage)

    kill_once(stage, log, marked)
    kill_once(stage, log, is_replacement_there)
    kill_once(stage, log, is_deleting)
    stage.wait(lambda: price(stage) < before and is_clean(stage))
    stage.wait_for_pods("web", 1)

    assert len(stage.all("nodes")) == 1
    # The replacement of the first command is used, or is empty and thus removed.
    assert len(log.created) <= 3
