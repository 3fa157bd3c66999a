"""Pods with very many constraints keep no node but their own from its disruption."""

import asyncio
import json
from collections.abc import Callable

import pytest

from karpy.codec.verdicts import disruption_to_json
from karpy.controllers import context
from karpy.controllers.context import decide_in_time
from karpy.core.disruption.decide import Pass, validate, verdict_of_validation
from karpy.core.disruption.evaluation import Evaluation
from karpy.core.disruption.methods.drift import Drift
from karpy.core.disruption.methods.multinode import MultiNodeConsolidation
from karpy.core.disruption.methods.singlenode import SingleNodeConsolidation
from karpy.core.scheduling.effort import Effort
from karpy.core.scheduling.packers.greedy import Packer, PlacingResult
from karpy.core.scheduling.podclasses import PodClass
from karpy.model.pods import Pod
from karpy.model.snapshot import DisruptionQuestion, Snapshot, ValidationQuestion
from karpy.model.verdicts import NodeReason
from tests.builders import anti_affinity
from tests.core.disruption.scenes import cluster, node, pod

NODES = [node(f"n-{number:02}") for number in range(12)]
FULL = [pod(f"full-{each.name}", on=each.name, cpu="3500m") for each in NODES]
"""Pods that fit nowhere but on nodes of their own."""


def shy(name: str, count: int, *, on: str = "", cpu: str = "1m") -> Pod:
    """Build a pod that would rather not be near others, by labels of its own."""
    terms = [anti_affinity(f"{name}-{number}", {"app": "web"}) for number in range(count)]
    return pod(name, on=on, cpu=cpu, prefers_away=[(1, each) for each in terms])


def work_of(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> int:
    """Count the work of all methods on a snapshot."""
    work: list[int] = []
    with monkeypatch.context() as patch:
        patch.setattr(Effort, "spend", lambda _, more: work.append(more))
        patch.setattr(Effort, "pass_time", lambda _, more: work.append(more))
        made = Pass(DisruptionQuestion(snapshot))
        for method in made.methods():
            made.propose(method)
    return sum(work)


@pytest.mark.parametrize(("count", "constraints"), [(10, 2000), (100, 490), (1, 30_000)])
def test_pending_pods_with_many_constraints_make_no_question_about_nodes_long(
    count: int, constraints: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = work_of(cluster(*NODES, pods=FULL), monkeypatch)
    costly = [shy(f"costly-{number}", constraints, cpu="999") for number in range(count)]

    work = work_of(cluster(*NODES, pods=[*FULL, *costly]), monkeypatch)

    assert work < usual + len(NODES) * 20_000


def test_a_node_stays_for_a_pod_with_thousands_of_constraints_and_the_others_go() -> None:
    pods = [shy("costly", 4000, on="n-00"), FULL[0], pod("movable", on="n-03", cpu="1m")]
    snapshot = cluster(NODES[0], NODES[3], pods=pods)

    alone = SingleNodeConsolidation().propose(Evaluation(snapshot))
    together = MultiNodeConsolidation().propose(Evaluation(snapshot))

    assert [each.node for command in alone.commands for each in command.nodes] == ["n-03"]
    assert together.commands == ()
    (why,) = SingleNodeConsolidation().propose(Evaluation(cluster(NODES[0], pods=pods))).refusals
    assert "4000 constraints" in why.detail


def after(looks: int) -> Callable[[], bool]:
    """Make what says that time is up after so many looks at the clock."""
    left = looks

    def keep_going() -> bool:
        nonlocal left
        left -= 1
        return left >= 0

    return keep_going


def test_a_method_without_time_refuses_nodes_by_name_and_is_asked_again() -> None:
    made = Pass(DisruptionQuestion(cluster(*NODES, pods=FULL)))

    made.propose(SingleNodeConsolidation(), after(3))
    verdict = made.verdict()

    late = [each.node for each in verdict.refusals if each.why is NodeReason.OUT_OF_TIME]
    assert (len(late), verdict.commands) == (len(NODES) - 3, ())
    assert made.settled() == frozenset()
    assert made.considered() == frozenset()
    assert json.loads(disruption_to_json(verdict))["isComplete"] is False


@pytest.mark.parametrize("looks", [1, 2, 3, 5, 7])
def test_each_node_has_its_turn_within_as_many_passes_as_it_takes(looks: int) -> None:
    snapshot, put_off = cluster(*NODES, pods=FULL), frozenset[str]()
    considered = list[str]()
    for _ in range(-(-len(NODES) // looks)):
        made = Pass(DisruptionQuestion(snapshot, put_off=put_off))
        made.propose(SingleNodeConsolidation(), after(looks))
        refusals, put_off = made.verdict().refusals, made.put_off()
        considered += [each.node for each in refusals if each.why is not NodeReason.OUT_OF_TIME]

    assert set(considered) == {each.name for each in NODES}


def test_a_node_that_takes_all_the_time_there_is_comes_first_once() -> None:
    snapshot, put_off = cluster(*NODES, pods=FULL), frozenset[str]()
    first = list[str]()
    for _ in NODES:
        made = Pass(DisruptionQuestion(snapshot, put_off=put_off))
        made.propose(SingleNodeConsolidation(), after(0))
        first.append(made.verdict().refusals[0].node)
        put_off = made.put_off()

    assert sorted(first) == [each.name for each in NODES]


@pytest.mark.parametrize(("waiting", "looks"), [([], 3), ([pod("waits", cpu="999")], 6)])
def test_drifted_nodes_have_their_turn_in_the_next_pass_too(waiting: list[Pod], looks: int) -> None:
    """While pods wait there are two questions about each node."""
    drifted = [node(each.name, true_conditions=["Drifted"]) for each in NODES]
    pods = [pod(each.name, on=each.name, cpu="999") for each in NODES]
    snapshot, put_off = cluster(*drifted, pods=[*pods, *waiting]), frozenset[str]()
    considered = list[str]()
    for _ in range(4):
        made = Pass(DisruptionQuestion(snapshot, put_off=put_off))
        made.propose(Drift(), after(looks))
        refusals, put_off = made.verdict().refusals, made.put_off()
        considered += [each.node for each in refusals if each.why is NodeReason.PODS_UNPLACED]

    assert considered == [each.name for each in NODES]


def test_a_drifted_node_that_takes_all_the_time_there_is_comes_first_once() -> None:
    """The first of two questions about it is answered, and the second one is not."""
    drifted = [node(each.name, true_conditions=["Drifted"]) for each in NODES]
    pods = [pod(each.name, on=each.name, cpu="999") for each in NODES]
    snapshot, put_off = cluster(*drifted, pods=[*pods, pod("waits", cpu="999")]), frozenset[str]()
    first = list[str]()
    for _ in NODES:
        made = Pass(DisruptionQuestion(snapshot, put_off=put_off))
        made.propose(Drift(), after(1))
        first.append(made.verdict().refusals[0].node)
        put_off = made.put_off()

    assert sorted(first) == [each.name for each in NODES]


@pytest.mark.parametrize("looks", range(8))
def test_after_a_method_that_ran_out_of_time_the_next_one_finds_what_it_always_does(
    looks: int,
) -> None:
    pods = [*FULL[1:], pod("movable", on="n-00", cpu="1m")]
    usual = SingleNodeConsolidation().propose(
        Pass(DisruptionQuestion(snapshot := cluster(*NODES, pods=pods))).evaluation
    )

    made = Pass(DisruptionQuestion(snapshot))
    made.propose(MultiNodeConsolidation(), after(looks))
    found = made.propose(SingleNodeConsolidation(), lambda: True)

    assert found.commands == usual.commands
    assert found.commands


def test_a_command_that_cannot_be_validated_in_time_is_given_up() -> None:
    pods = [*FULL[1:], pod("movable", on="n-00", cpu="1m")]
    snapshot = cluster(*NODES, pods=pods)
    made = Pass(DisruptionQuestion(snapshot))
    (command,) = made.propose(SingleNodeConsolidation()).commands

    question = ValidationQuestion(snapshot, command)
    found = validate(question, None, after(0))

    assert found.command is None
    assert not verdict_of_validation(question, found).is_complete


@pytest.mark.parametrize(("culprit", "left"), [("waits", []), ("movable", ["n-00"])])
def test_a_pod_with_which_questions_fail_keeps_no_node_but_its_own(
    culprit: str, left: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Packer.place

    def fail(packer: Packer, pod_class: PodClass, about: Pod) -> PlacingResult:
        if about.name == culprit:
            raise KeyError(culprit)
        return place(packer, pod_class, about)

    pods = [pod("movable", on="n-00", cpu="1m"), pod("other", on="n-01", cpu="1m"), *FULL[2:4]]
    waiting = pod("waits", cpu="999")
    evaluation = Evaluation(cluster(*NODES[:4], pods=[*pods, waiting]))
    monkeypatch.setattr(Packer, "place", fail)

    found = SingleNodeConsolidation().propose(evaluation)

    assert len(found.commands) == 1
    assert left == [each.node for each in found.refusals if "bug in karpy" in each.detail]
    assert evaluation.take_failures()
    assert evaluation.take_failures() == []


async def test_a_decision_about_nodes_ends_for_one_about_pods(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(context, "_YIELDS_AFTER", 0.0)
    ends: list[str] = []

    def about_nodes(keep_going: Callable[[], bool]) -> None:
        while keep_going():
            pass
        ends.append("nodes")

    async def decide(about: Callable[[Callable[[], bool]], None], *, can_wait: bool) -> None:
        await decide_in_time(about, 3600, can_wait=can_wait)

    long = asyncio.create_task(decide(about_nodes, can_wait=True))
    await asyncio.sleep(0.05)
    assert not ends
    await decide(lambda _: ends.append("pods"), can_wait=False)
    await long

    assert ends == ["nodes", "pods"]
