from datetime import timedelta

from msgspec.structs import replace

from karpy.core.lifecycle.outcomes import Outcome
from karpy.core.pools.usage import judge_usage, usage_by_pool
from tests.builders import node
from tests.core.pools.records import pool

GIB = 2**30


def test_a_pool_uses_what_its_nodes_have() -> None:
    nodes = [
        node("a", pool="web", cpu="2", memory="4Gi", pods=10),
        node("b", pool="web", cpu="4", memory="8Gi", pods=20, capacity={"gpu": "1"}),
        node("c", pool="batch", cpu="8", memory="8Gi", pods=30),
        node("d", pool=""),
    ]

    usage = usage_by_pool(nodes)

    assert usage == {
        "web": {"cpu": 6000, "memory": 12 * GIB, "pods": 30, "gpu": 1, "nodes": 2},
        "batch": {"cpu": 8000, "memory": 8 * GIB, "pods": 30, "nodes": 1},
    }


def test_a_node_that_is_going_is_not_used_any_more() -> None:
    nodes = [node("a", deleting=True), node("b"), node("c")]

    usage = usage_by_pool(nodes, marked={"b-claim"})

    assert usage["default"]["nodes"] == 1


def test_a_claim_without_a_machine_is_not_used_yet() -> None:
    in_flight = replace(node("a"), capacity={"nodes": 1})

    assert usage_by_pool([in_flight]) == {}


def test_a_pool_without_nodes_says_so_of_every_common_resource() -> None:
    outcome = judge_usage(pool(), {})

    nothing = {"cpu": 0, "memory": 0, "pods": 0, "ephemeral-storage": 0, "nodes": 0}
    assert outcome == Outcome(
        pool=replace(pool(), resources=nothing, nodes=0), look_again=timedelta(seconds=5)
    )


def test_what_is_not_known_yet_is_not_written() -> None:
    outcome = judge_usage(replace(pool(), nodes=5), None)

    assert outcome == Outcome(look_again=timedelta(seconds=1))
