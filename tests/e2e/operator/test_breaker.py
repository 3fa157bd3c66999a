"""A pod that is deleted from each new node does not cause endless launches."""

from time import monotonic, sleep
from typing import Final

from karpy.model.kinds import DEPLOYMENT, NODE_POOL
from tests.e2e.operator.stage import Stage
from tests.scenarios.manifests import deployment, one_of, pool

SECONDS: Final = 40.0
LAUNCHES_MAX: Final = 6
"""One launch at once, and one after each pause of 1, 2, 4, 8 and 16 seconds; then comes 32."""
CLOSED: Final = "example.com/closed=:NoSchedule"
SMALL: Final = one_of("node.kubernetes.io/instance-type", "c-4x-amd64-linux")


def push_out(stage: Stage, app: str, seconds: float) -> set[str]:
    """Cordon the node of each pod of an app, and delete the pod; return all NodeClaims seen."""
    claims: set[str] = set()
    deadline = monotonic() + seconds
    while monotonic() < deadline:
        pods = stage.all("pods", "-l", f"app={app}")
        for pod in [each for each in pods if each["spec"].get("nodeName")]:
            stage.plane.kubectl(
                "taint", "nodes", pod["spec"]["nodeName"], CLOSED, "--overwrite=true"
            )
            stage.plane.kubectl("delete", "pod", pod["metadata"]["name"], "--wait=false")
        claims |= {each["metadata"]["name"] for each in stage.all("nodeclaims")}
        sleep(0.2)
    return claims


def test_a_pod_that_is_pushed_out_of_each_node_gets_few(stage: Stage) -> None:
    stage.apply(NODE_POOL, pool(requirements=[SMALL]))
    stage.apply(DEPLOYMENT, deployment("victim", 1))

    claims = push_out(stage, "victim", SECONDS)

    assert 2 <= len(claims) <= LAUNCHES_MAX
    assert any("launched for" in each for each in stage.events("LaunchedInVain"))


def test_other_pods_get_their_nodes_meanwhile(stage: Stage) -> None:
    stage.apply(NODE_POOL, pool(requirements=[SMALL]))
    stage.apply(DEPLOYMENT, deployment("victim", 1))
    push_out(stage, "victim", SECONDS / 2)

    stage.apply(DEPLOYMENT, deployment("web", 5))

    stage.wait_for_pods("web", 5)
