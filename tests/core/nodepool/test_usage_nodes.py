from msgspec.structs import replace

from karpy.core.nodepool.usage import NodeSums, find_utilization, in_units, sum_up
from karpy.model.labels import INITIALIZED
from tests.builders import daemon_pod, pod
from tests.core.lifecycle.scenes import claim, node

MI = 2**20
HERE = replace(
    node(labels={INITIALIZED: "true"}),
    capacity={"cpu": 4000, "memory": 1000 * MI, "pods": 110},
    allocatable={"cpu": 3900, "memory": 900 * MI, "pods": 110},
)


def test_a_node_is_summed_up_with_its_pods() -> None:
    web = replace(pod("web", on="node-1", cpu="1", memory="100Mi"), limits={"cpu": 2000})
    agent = replace(
        daemon_pod("agent", on="node-1", cpu="100m", memory="10Mi"), limits={"cpu": 100}
    )
    over = pod("over", on="node-1", phase="Succeeded")

    sums = sum_up(HERE, None, [web, agent, over])

    assert sums == NodeSums(
        allocatable=HERE.allocatable,
        overhead={"cpu": 100, "memory": 100 * MI, "pods": 0},
        requests={"cpu": 1100, "memory": 110 * MI, "pods": 2},
        limits={"cpu": 2100, "pods": 2},
        daemon_requests={"cpu": 100, "memory": 10 * MI, "pods": 1},
        daemon_limits={"cpu": 100, "pods": 1},
        expected=HERE.allocatable,
    )


def test_allocatable_is_that_of_the_claim_until_the_node_is_initialized() -> None:
    young = replace(node(), allocatable={"cpu": 0, "pods": 20})
    behind = replace(claim(), allocatable={"cpu": 3900, "memory": MI, "pods": 110})

    sums = sum_up(young, behind, [])

    assert sums.expected == {"cpu": 3900, "memory": MI, "pods": 20}


def test_utilization_is_what_pods_request_of_all_nodes() -> None:
    nodes = [
        NodeSums(expected={"cpu": 4000, "memory": 100, "gpu": 0}, requests={"cpu": 1000}),
        NodeSums(expected={"cpu": 4000, "memory": 100}, requests={"cpu": 3000, "memory": 10}),
    ]

    assert find_utilization(nodes) == {"cpu": 50.0, "memory": 5.0}


def test_amounts_are_written_as_metrics_have_them() -> None:
    amounts = {"cpu": 1500, "ephemeral-storage": 7, "limits.cpu": 1500}

    assert in_units(amounts) == {"cpu": 1.5, "ephemeral_storage": 7.0, "limits.cpu": 2.0}
