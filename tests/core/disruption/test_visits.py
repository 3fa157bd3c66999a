"""Which of several broken nodes is repaired."""

from msgspec.structs import replace

from karpy.core.disruption.repairing import Patient, triage
from karpy.core.disruption.treatment import Visit, visit
from karpy.model.questions import TreatmentQuestion
from karpy.model.surroundings import NodeState
from tests.builders import node, pod, snapshot
from tests.builders import pool as node_pool
from tests.core.disruption.questions import REPAIRS
from tests.core.disruption.test_repairing import crowd, sick

HUGE, SMALL = "300", "1"


def asked(*nodes: NodeState, **cpu: str) -> tuple[TreatmentQuestion, tuple[Patient, ...]]:
    """Ask about broken nodes; those that are named have a pod of some size."""
    around = crowd(*nodes, well=15)
    cluster = snapshot(
        nodes=[node(each.name, pool="web") for each in nodes],
        pods=[pod(f"on-{name}", on=name, cpu=size) for name, size in cpu.items()],
        pools=[node_pool("web")],
    )
    return TreatmentQuestion(around, cluster, REPAIRS), triage(around, REPAIRS, {}).patients


def refusals(visited: Visit) -> list[tuple[str, str]]:
    found = [each.refusal for each in visited.refused]
    return [(each.node, each.why.name) for each in found if each is not None]


def test_the_first_is_repaired_that_something_can_be_done_about() -> None:
    question, patients = asked(sick("a"), sick("b"), sick("c"), a=HUGE, b=SMALL, c=SMALL)

    visited = visit(question, patients, "id-1")

    assert visited.patient == patients[1]
    assert visited.treatment.rollout is not None
    assert visited.treatment.rollout.id == "id-1"
    assert refusals(visited) == [("a", "PODS_UNPLACED")]
    assert visited.seen == {"a-claim", "b-claim"}


def test_nobody_is_repaired_if_nothing_can_be_done_about_anybody() -> None:
    question, patients = asked(sick("a"), sick("b"), a=HUGE, b=HUGE)

    visited = visit(question, patients)

    assert visited.patient is None
    assert refusals(visited) == [("a", "PODS_UNPLACED"), ("b", "PODS_UNPLACED")]


def test_whoever_was_tried_before_is_left_out() -> None:
    question, patients = asked(sick("a", "Slow"), sick("b", "Slow"))

    visited = visit(replace(question, tried=frozenset({"a-claim"})), patients)

    assert visited.patient == patients[1]
    assert visited.seen == {"b-claim"}


def test_where_all_were_tried_there_is_nothing_to_do() -> None:
    question, patients = asked(sick("a", "Slow"))

    visited = visit(replace(question, tried=frozenset({"a-claim"})), patients)

    assert visited == Visit()
