from itertools import cycle, islice

import pytest
from syrupy.assertion import SnapshotAssertion

from karpy.cli.explanations import explanation_lines
from karpy.cli.terminal import Line, width_of
from karpy.core.explain import explain_pod
from karpy.model.verdicts import (
    Constraint,
    Exclusion,
    NearMiss,
    PoolRefusal,
    Reason,
    Refusal,
    Verdict,
)
from tests.builders import pod
from tests.builders import snapshot as cluster

WIDTH = 100
LINES_MAX = 14
LONG = "topology.kubernetes.io/zone In [" + " ".join(f"europe-west-{n}a" for n in range(9)) + "]"


def lines_of(*pools: PoolRefusal, nodes: tuple[Exclusion, ...] = ()) -> list[Line]:
    trainer = pod("trainer", namespace="ml", cpu="400", memory="1Ti")
    refusal = Refusal(Reason.NO_HOST, (trainer.key,), pools=pools, nodes=nodes)
    seen = cluster(pods=[trainer])
    explanation = explain_pod(seen, Verdict(refusals=(refusal,)), trainer.key)
    return explanation_lines(seen, explanation, WIDTH)


def shown(lines: list[Line]) -> str:
    return "\n".join("".join(span.text for span in each).rstrip() for each in lines)


def refusing(name: str, constraint: Constraint, detail: str, *, alone: bool = True) -> PoolRefusal:
    why = Exclusion(constraint, detail, 144)
    also = Exclusion(Constraint.REQUIREMENT, "kubernetes.io/arch In [arm64]", 72)
    nearest = NearMiss("m-256x-amd64-linux", ("144100m cpu", "272Gi memory"))
    return PoolRefusal(name, why, alone, 144, (why, also), nearest)


def test_twenty_pools_with_one_constraint_are_one_row(snapshot: SnapshotAssertion) -> None:
    pools = [refusing(f"pool-{n}", Constraint.RESOURCE, "cpu") for n in range(20)]

    assert shown(lines_of(*pools)) == snapshot


def test_twenty_pools_with_a_taint_each_are_one_row(snapshot: SnapshotAssertion) -> None:
    pools = [
        refusing(f"team-{n}", Constraint.TAINT, f"team={n}:NoSchedule", alone=False)
        for n in range(20)
    ]

    assert shown(lines_of(*pools)) == snapshot


def test_a_mixed_cluster_of_twenty_pools_is_explained_by_its_largest_groups(
    snapshot: SnapshotAssertion,
) -> None:
    pools = [refusing(f"general-{n}", Constraint.RESOURCE, "cpu") for n in range(9)]
    pools += [
        refusing(f"team-{n}", Constraint.TAINT, f"team={n}:NoSchedule", alone=False)
        for n in range(7)
    ]
    pools += [
        refusing("full", Constraint.LIMIT, "cpu"),
        refusing("spread", Constraint.SPREAD, "topology.kubernetes.io/zone"),
        refusing("spot", Constraint.OFFERING, "spot"),
        refusing("varied", Constraint.MIN_VALUES, "node.kubernetes.io/instance-type"),
    ]
    nodes = (
        Exclusion(Constraint.RESOURCE, "cpu", 37),
        Exclusion(Constraint.TAINT, "dedicated=data:NoSchedule", 3),
    )

    assert shown(lines_of(*pools, nodes=nodes)) == snapshot


@pytest.mark.parametrize("detail", ["", "cpu", LONG], ids=["bare", "short", "long"])
@pytest.mark.parametrize("kinds", [1, 2, 3, 4, 5, len(Constraint)])
def test_twenty_pools_never_take_fifteen_lines(kinds: int, detail: str) -> None:
    """An explanation must fit on half a screen."""
    constraints = islice(cycle(list(Constraint)[:kinds]), 20)
    pools = [refusing(f"pool-{n}", each, detail) for n, each in enumerate(constraints)]
    nodes = tuple(Exclusion(each, detail, 7) for each in Constraint)

    lines = lines_of(*pools, nodes=nodes)

    assert len(lines) <= LINES_MAX
    assert max(width_of(each) for each in lines) <= WIDTH
