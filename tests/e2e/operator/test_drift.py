"""Drifted nodes are replaced, within the budgets of their NodePool at every moment."""

import json
from datetime import UTC, datetime, timedelta

from karpy.codec.fields import JsonObject
from karpy.model.kinds import DEPLOYMENT, NODE_POOL
from karpy.model.labels import CAPACITY_TYPE, HOSTNAME
from tests.e2e.claimlog import ClaimLog, disrupted, is_true, watching
from tests.e2e.operator.stage import Stage
from tests.scenarios.manifests import deployment, one_of, pod_spec, pool

ON_DEMAND = one_of(CAPACITY_TYPE, "on-demand")
SMALL = one_of("node.kubernetes.io/instance-type", "c-4x-amd64-linux")
STARTING: JsonObject = {"key": "example.com/starting", "effect": "NoSchedule"}
IS_BLOCKED = "No allowed disruptions for disruption reason Drifted due to blocking budget"


def furnish(stage: Stage, nodes: int, *budgets: JsonObject) -> None:
    """Bring up a number of nodes with one pod each."""
    disruption = {"consolidateAfter": "Never", "budgets": list(budgets)}
    stage.apply(NODE_POOL, pool(requirements=[ON_DEMAND, SMALL], disruption=disruption))
    apart = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "web"}}}
    alone = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    stage.apply(DEPLOYMENT, deployment("web", nodes, pod=pod_spec(affinity=alone)))
    stage.wait_for_pods("web", nodes)


def change(stage: Stage, **spec: object) -> None:
    """Change the spec of the NodePool."""
    body = json.dumps({"spec": spec})
    stage.plane.kubectl("patch", "nodepool", "default", "--type=merge", "-p", body)


def relabel(stage: Stage, **template: object) -> None:
    """Change the template of the NodePool so that all its nodes drift."""
    change(stage, template={"metadata": {"labels": {"team": "shop"}}, "spec": template})


def teams(stage: Stage) -> list[str]:
    return sorted(each["metadata"]["labels"].get("team", "") for each in stage.all("nodes"))


def is_rolled(stage: Stage, nodes: int) -> bool:
    return teams(stage) == ["shop"] * nodes == ["shop"] * len(stage.all("nodeclaims"))


def now_open() -> JsonObject:
    """Return a budget of zero nodes whose window began a quarter of an hour ago."""
    began = datetime.now(UTC) - timedelta(minutes=15)
    schedule = f"{began.minute} {began.hour} * * *"
    return {"nodes": "0", "schedule": schedule, "duration": "30m"}


def test_a_pool_is_rolled_within_its_budget_once_its_window_is_over(
    stage: Stage, log: ClaimLog
) -> None:
    furnish(stage, 6, {"nodes": "30%"}, now_open())
    relabel(stage)
    stage.wait(lambda: IS_BLOCKED in stage.events("DisruptionBlocked"))
    held = log.deleted
    with watching(stage.plane, "nodes") as nodes:
        change(stage, disruption={"budgets": [{"nodes": "30%"}]})
        stage.wait(lambda: is_rolled(stage, 6))
    stage.wait_for_pods("web", 6)

    assert held == set()
    assert len(log.created) == 12
    # Replacements count as nodes of the pool, too: 30 % of eight nodes are three.
    assert log.most_disrupted <= 3
    assert 0 < nodes.most_tainted <= 3
    assert stage.counted("karpenter_nodeclaims_created_total", reason="drifted") >= 6
    assert stage.counted("karpenter_nodeclaims_disrupted_total", reason="drifted") >= 6


def test_a_node_stays_until_its_replacement_is_initialized(stage: Stage, log: ClaimLog) -> None:
    furnish(stage, 1, {"nodes": "100%"})
    (before,) = (each["metadata"]["name"] for each in stage.all("nodeclaims"))
    relabel(stage, startupTaints=[STARTING])
    stage.wait(lambda: teams(stage) == ["", "shop"])
    stage.wait(lambda: "Launching NodeClaim: Drifted" in stage.events("DisruptionLaunching"))
    held, running = log.deleted, stage.running("web")
    stage.plane.kubectl("taint", "nodes", "-l", "team=shop", f"{STARTING['key']}-")
    stage.wait(lambda: is_rolled(stage, 1))
    stage.wait_for_pods("web", 1)

    assert held == set()
    assert len(running) == 1
    assert log.deleted == {before}
    assert len(log.created) == 2


def test_nodes_of_a_static_pool_are_replaced_within_its_limit(stage: Stage, log: ClaimLog) -> None:
    disruption = {"budgets": [{"nodes": "100%"}]}
    limits = {"nodes": "3"}
    stage.apply(
        NODE_POOL, pool(requirements=[SMALL], replicas=3, limits=limits, disruption=disruption)
    )
    stage.wait_for_nodes(3)
    relabel(stage)
    stage.wait(lambda: all(is_true(each, "Drifted") for each in stage.all("nodeclaims")))
    stage.wait_for_passes(2)
    held = log.deleted
    change(stage, limits={"nodes": "4"})
    stage.wait(lambda: is_rolled(stage, 3))

    assert held == set()
    assert len(log.created) == 6
    assert log.most <= 4


def test_a_drifted_node_with_a_protected_pod_stays(stage: Stage, log: ClaimLog) -> None:
    furnish(stage, 2, {"nodes": "100%"})
    pod, *_ = stage.running("web")
    held, name = pod["spec"]["nodeName"], pod["metadata"]["name"]
    protected = "karpenter.sh/do-not-disrupt"
    stage.plane.kubectl("annotate", "pod", name, f"{protected}=true")
    relabel(stage)
    stage.wait(lambda: teams(stage) == ["", "shop"])
    stage.wait_for_passes(2)
    left = [each["metadata"]["name"] for each in stage.all("nodes") if not_of_shop(each)]
    stage.plane.kubectl("annotate", "pod", name, f"{protected}-")
    stage.wait(lambda: is_rolled(stage, 2))

    assert left == [held]
    assert not disrupted(log.states()[-1])


def not_of_shop(node: JsonObject) -> bool:
    return "team" not in node["metadata"]["labels"]
