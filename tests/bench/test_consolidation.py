"""Consolidation on workload files: every command has a legal outcome, and saves what it claims."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from karpy.bench.consolidation import Consolidated, Method, carry_out, consolidate_once
from karpy.bench.files import write_bytes
from karpy.bench.harness import Measured, measure
from karpy.bench.workloads import encode_workload, find_recipe
from karpy.codec.karpbench import read_workload
from karpy.core.disruption.cost import Prices
from karpy.model.commands import Command, CommandNode
from karpy.model.snapshot import Snapshot

HEAD = ["harness", "workload", "run", "instance_types", "nodes", "pods", "cost", "converge"]
HEAD += ["wall_s", "setup_s", "nodes_after", "cost_after", "decisions", "peak_rss_mb", "breaches"]
DECISION = ["method", "decision", "candidates", "decision_s", "removed", "pods_moved"]
DECISION += ["replacement", "savings", "hit_timeout"]


def used_cluster(budget: str = "100%") -> dict[str, Any]:
    """Make six nodes in use without pending pods, of which so many may go."""
    made = find_recipe("mixed-6x60").make()
    bound = [pod for pod in made["pods"] if "nodeName" in pod["spec"]]
    (pool,) = made["nodePools"]
    spec = {**pool["spec"], "disruption": {"budgets": [{"nodes": budget}]}}
    return {
        **made,
        "kind": "consolidate",
        "pods": bound,
        "nodePools": [{**pool, "spec": spec}],
    }


def run(folder: Path, made: dict[str, Any], *, converges: bool = False) -> Measured:
    path = write_bytes(folder / "w.json", encode_workload(made), is_gzipped=False)
    (measured,) = measure(path, converges=converges)
    return measured


def result(measured: Measured) -> Consolidated:
    assert isinstance(measured.result, Consolidated)
    return measured.result


def cluster() -> Snapshot:
    return read_workload(used_cluster())


def test_each_method_decides_once_on_the_same_cluster(tmp_path: Path) -> None:
    line = json.loads(msgspec.json.encode(result(run(tmp_path, used_cluster()))))

    assert list(line) == HEAD
    assert [list(each) for each in line["decisions"]] == [DECISION] * 3
    assert [each["method"] for each in line["decisions"]] == ["empty", "multi", "single"]
    assert [each["candidates"] for each in line["decisions"]] == [0, 6, 6]
    assert line["breaches"] == 0


def test_the_cluster_afterwards_is_that_of_the_first_command(tmp_path: Path) -> None:
    found = result(run(tmp_path, used_cluster()))

    first = next(each for each in found.decisions if each.removed)
    launched = 1 if first.replacement else 0
    assert found.nodes_after == found.nodes - len(first.removed) + launched
    assert found.cost_after == pytest.approx(found.cost - first.savings, abs=1e-6)


def test_converging_ends_when_no_method_has_a_command(tmp_path: Path) -> None:
    found = result(run(tmp_path, used_cluster(), converges=True))

    assert [each.decision for each in found.decisions[-3:]] == ["no-op"] * 3
    applied = [each for each in found.decisions if each.removed]
    costs = [found.cost, *(float(each.cost_after or 0) for each in applied)]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == found.cost_after
    assert (found.breaches, found.converge) == (0, True)


def test_the_same_file_gives_the_same_commands(tmp_path: Path) -> None:
    runs = [result(run(tmp_path, used_cluster())) for _ in range(2)]

    first, second = ([replace(each, decision_s=0.0) for each in one.decisions] for one in runs)
    assert first == second


def test_budgets_of_the_file_hold(tmp_path: Path) -> None:
    found = result(run(tmp_path, used_cluster(budget="1")))

    assert [len(each.removed) for each in found.decisions] == [0, 0, 1]


def only_with(snapshot: Snapshot, name: str) -> Snapshot:
    """Leave one node of a cluster, and its pods."""
    nodes = tuple(each for each in snapshot.nodes if each.name == name)
    pods = tuple(each for each in snapshot.pods if each.node_name == name)
    return replace(snapshot, nodes=nodes, pods=pods)


def command_on(snapshot: Snapshot) -> Command:
    command = consolidate_once(snapshot, Method.SINGLE)
    assert command is not None
    return command


def test_a_command_keeps_what_it_claims() -> None:
    given = cluster()

    assert carry_out(given, command_on(given)).problems == ()


def test_a_command_that_claims_too_much_is_a_problem() -> None:
    given = cluster()
    command = command_on(given)
    (node,) = command.nodes
    boasting = replace(command, nodes=(replace(node, price=node.price + 1),))

    applied = carry_out(given, boasting)

    fell = command.savings
    assert applied.problems == (f"PRICE falls by {fell} micro-dollars, and {fell + 1} are claimed",)


def test_a_command_that_leaves_pods_without_a_place_is_a_problem() -> None:
    given = cluster()
    prices = Prices(given.catalog)
    everything = tuple(
        CommandNode(each.name, each.claim, each.pool, prices.of(each)) for each in given.nodes
    )

    applied = carry_out(given, replace(command_on(given), nodes=everything, replacements=()))

    moved = sorted(pod.key for pod in given.pods if pod.is_reschedulable)
    assert applied.problems == tuple(f"UNPLACED {key}" for key in moved)


def test_a_replacement_that_is_not_cheaper_is_a_problem() -> None:
    together = consolidate_once(cluster(), Method.MULTI)
    assert together is not None
    cheap = min(together.nodes, key=lambda each: each.price)
    command = replace(together, nodes=(cheap,))

    applied = carry_out(only_with(cluster(), cheap.node), command)

    risen = together.replacements[0].launch.price - cheap.price
    assert risen > 0
    assert applied.problems == (f"PRICE falls by {-risen} micro-dollars, which is no saving",)
