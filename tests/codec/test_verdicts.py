import json
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karpy.codec.constraints import POOL_OPERATORS, read_requirement
from karpy.codec.fields import Fields
from karpy.codec.verdicts import (
    disruption_to_dict,
    disruption_to_json,
    dollars,
    pool_verdict_to_dict,
    pool_verdict_to_json,
    requirement_to_entries,
    requirements_to_list,
    verdict_to_dict,
    verdict_to_json,
)
from karpy.model.commands import Command, CommandNode, DisruptionVerdict, Replacement
from karpy.model.labels import ARCH, ZONE
from karpy.model.nodes import RepairAction
from karpy.model.pools import DisruptionReason
from karpy.model.requirements import Requirement, collect, one_of
from karpy.model.verdicts import (
    Constraint,
    Exclusion,
    Launch,
    LaunchOption,
    NearMiss,
    NodeReason,
    NodeRefusal,
    Nomination,
    PoolNotice,
    PoolRefusal,
    PoolVerdict,
    Reason,
    Refusal,
    Verdict,
)
from tests.codec.plain import Json, wants

LIMIT = Exclusion(Constraint.LIMIT, "cpu", 3)
VERDICT = Verdict(
    launches=(
        Launch(
            name="launch-1",
            pool="default",
            pods=("ns/a", "ns/b"),
            requirements=collect([one_of(ZONE, "b", "a"), one_of(ARCH, "amd64")]),
            resources={"memory": 3 * 2**30, "cpu": 1500},
            options=(
                LaunchOption("small", 96_001, "a", "spot"),
                LaunchOption("large", 2_000_000, "b", "on-demand"),
            ),
            reservations=("r-1",),
            is_min_values_relaxed=True,
        ),
    ),
    nominations=(Nomination("n", ("ns/c",)),),
    refusals=(
        Refusal(
            Reason.NO_HOST,
            ("ns/d",),
            "detail",
            pools=(
                PoolRefusal("default", LIMIT, True, 144, (LIMIT,), NearMiss("small", ("cpu",))),
                PoolRefusal("other", LIMIT, False, 0),
            ),
            nodes=(Exclusion(Constraint.TAINT, "k:NoSchedule", 1),),
        ),
    ),
    pools=(PoolNotice("static", Exclusion(Constraint.POOL_STATIC, "", 0)),),
    is_complete=False,
)


def excluded(constraint: Constraint, detail: str, count: int) -> Json:
    return {
        "constraint": constraint.name,
        "sentence": constraint.value,
        "detail": detail,
        "count": count,
    }


def option(name: str, zone: str, capacity_type: str, price: float) -> Json:
    return {
        "instanceType": name,
        "zone": zone,
        "capacityType": capacity_type,
        "dollarsPerHour": price,
    }


def test_a_verdict_is_written_whole() -> None:
    limit = excluded(Constraint.LIMIT, "cpu", 3)

    assert verdict_to_dict(VERDICT) == {
        "isComplete": False,
        "dollarsPerHour": 0.096001,
        "launches": [
            {
                "name": "launch-1",
                "pool": "default",
                "pods": ["ns/a", "ns/b"],
                "requirements": [wants(ARCH, "In", "amd64"), wants(ZONE, "In", "a", "b")],
                "resources": {"cpu": "1500m", "memory": "3Gi"},
                "dollarsPerHour": 0.096001,
                "options": [
                    option("small", "a", "spot", 0.096001),
                    option("large", "b", "on-demand", 2.0),
                ],
                "reservations": ["r-1"],
                "isMinValuesRelaxed": True,
            }
        ],
        "nominations": [{"node": "n", "pods": ["ns/c"]}],
        "refusals": [
            {
                "reason": "NO_HOST",
                "sentence": Reason.NO_HOST.value,
                "detail": "detail",
                "pods": ["ns/d"],
                "pools": [
                    {
                        "pool": "default",
                        "decisive": limit,
                        "isSingle": True,
                        "types": 144,
                        "exclusions": [limit],
                        "nearest": {"instanceType": "small", "lacks": ["cpu"]},
                    },
                    {
                        "pool": "other",
                        "decisive": limit,
                        "isSingle": False,
                        "types": 0,
                        "exclusions": [],
                        "nearest": None,
                    },
                ],
                "nodes": [excluded(Constraint.TAINT, "k:NoSchedule", 1)],
            }
        ],
        "pools": [{"pool": "static", **excluded(Constraint.POOL_STATIC, "", 0)}],
    }


def test_json_has_sorted_keys_and_says_the_same() -> None:
    data = verdict_to_json(VERDICT)

    assert json.loads(data) == verdict_to_dict(VERDICT)
    assert json.dumps(json.loads(data), sort_keys=True) == json.dumps(json.loads(data))


def test_an_empty_verdict_is_written() -> None:
    assert verdict_to_dict(Verdict()) == {
        "isComplete": True,
        "dollarsPerHour": 0.0,
        "launches": [],
        "nominations": [],
        "refusals": [],
        "pools": [],
    }


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        (one_of("a", "y", "x"), [wants("a", "In", "x", "y")]),
        (Requirement("a"), [wants("a", "DoesNotExist")]),
        (Requirement("a", complement=True), [wants("a", "Exists")]),
        (Requirement("a", frozenset({"x"}), True), [wants("a", "NotIn", "x")]),
        (Requirement("a", complement=True, gte=3), [wants("a", "Gte", "3")]),
        (Requirement("a", complement=True, lte=3), [wants("a", "Lte", "3")]),
        (
            Requirement("a", frozenset({"5"}), True, 3, 9, 2),
            [
                wants("a", "Gte", "3", minValues=2),
                wants("a", "Lte", "9", minValues=2),
                wants("a", "NotIn", "5", minValues=2),
            ],
        ),
    ],
)
def test_a_requirement_is_written_as_kubernetes_has_it(
    requirement: Requirement, expected: list[Json]
) -> None:
    assert requirement_to_entries(requirement) == expected


def test_requirements_are_sorted_by_key() -> None:
    requirements = collect([one_of("b", "1"), one_of("a", "2")])

    assert requirements_to_list(requirements) == [wants("a", "In", "2"), wants("b", "In", "1")]


values = st.frozensets(st.integers(0, 20).map(str), max_size=4)
bounds = st.none() | st.integers(0, 20)
sets = st.builds(
    Requirement,
    st.just("a"),
    values,
    st.booleans(),
    min_values=st.none() | st.integers(1, 9),
)


@given(sets, bounds, bounds)
def test_a_requirement_survives_being_written_and_read(
    made: Requirement, gte: int | None, lte: int | None
) -> None:
    bounded = made & Requirement("a", complement=True, gte=gte, lte=lte)

    entries = requirement_to_entries(bounded)

    again = collect(read_requirement(Fields(entry), POOL_OPERATORS) for entry in entries)
    assert again == {"a": bounded}


@given(st.integers(0, 10**12))
def test_dollars_are_exact_in_json(price: int) -> None:
    whole, part = divmod(price, 10**6)

    assert f"{dollars(price):.6f}" == f"{whole}.{part:06d}"


def refusal_of(reason: NodeReason, node: str, **numbers: Json | object) -> Json:
    """Return a refusal of a node as it is written; numbers that are not known are null."""
    written: Json = {
        "reason": reason.name,
        "sentence": reason.value,
        "node": node,
        "detail": "",
        "method": "",
        "pods": [],
        "dollarsPerHour": None,
        "replacementDollarsPerHour": None,
        "score": None,
        "until": None,
    }
    return {**written, **numbers}


REPAIRED = CommandNode(
    "a",
    "a-claim",
    "web",
    1_500_000,
    3,
    RepairAction.REPLACE,
    "Slow/Swapping",
    timedelta(minutes=5),
)
REPAIR = Command(
    "repair",
    DisruptionReason.UNHEALTHY,
    (REPAIRED,),
    (Replacement(VERDICT.launches[0]),),
    ("c",),
)


def test_a_command_is_written_whole() -> None:
    (written,) = disruption_to_dict(DisruptionVerdict("repair", (REPAIR,)))["commands"]

    assert written == {
        "method": "repair",
        "reason": "Unhealthy",
        "decision": "replace",
        "nodes": [
            {
                "node": "a",
                "nodeClaim": "a-claim",
                "pool": "web",
                "dollarsPerHour": 1.5,
                "pods": 3,
                "action": "ReplaceNode",
                "condition": "Slow/Swapping",
                "drainBound": "5m0s",
            }
        ],
        "launches": verdict_to_dict(VERDICT)["launches"],
        "nominated": ["c"],
        "terminatesFirst": "",
        "savingsPerHour": 1.403999,
    }


def test_refusals_of_nodes_are_written_with_their_numbers() -> None:
    refusals = (
        NodeRefusal(NodeReason.POD_BUDGET, "b", "shop/guard", pods=("shop/x",)),
        NodeRefusal(
            NodeReason.SCORE_TOO_LOW,
            "d",
            method="single-node-consolidation",
            price=2_000_000,
            replacement=0,
            score=Fraction(1, 3),
        ),
        NodeRefusal(NodeReason.NOT_QUIET, "e", until=datetime(2026, 3, 2, 12, 30, tzinfo=UTC)),
    )

    written = disruption_to_dict(DisruptionVerdict(refusals=refusals))

    assert written["refusals"] == [
        refusal_of(NodeReason.POD_BUDGET, "b", detail="shop/guard", pods=["shop/x"]),
        refusal_of(
            NodeReason.SCORE_TOO_LOW,
            "d",
            method="single-node-consolidation",
            dollarsPerHour=2.0,
            replacementDollarsPerHour=0.0,
            score=1 / 3,
        ),
        refusal_of(NodeReason.NOT_QUIET, "e", until="2026-03-02T12:30:00Z"),
    ]


def test_json_about_nodes_says_the_same() -> None:
    verdict = DisruptionVerdict("repair", (REPAIR,), (NodeRefusal(NodeReason.GONE, "b"),))

    assert json.loads(disruption_to_json(verdict)) == disruption_to_dict(verdict)


def test_a_verdict_about_nodes_has_sorted_keys() -> None:
    assert disruption_to_json(DisruptionVerdict()) == b'{"commands":[],"method":"","refusals":[]}'


@pytest.mark.parametrize(
    ("action", "first", "decision"),
    [
        (RepairAction.REBOOT, "", "reboot"),
        (RepairAction.REPLACE, "static-at-limit", "terminate-first"),
        (RepairAction.REPLACE, "", "delete"),
    ],
)
def test_a_command_is_written_with_its_decision(
    action: RepairAction, first: str, decision: str
) -> None:
    node = CommandNode("a", "a-claim", "web", action=action)
    command = Command("repair", DisruptionReason.UNHEALTHY, (node,), terminates_first=first)

    (written,) = disruption_to_dict(DisruptionVerdict("repair", (command,)))["commands"]

    assert (written["decision"], written["terminatesFirst"]) == (decision, first)
    assert (written["nodes"][0]["action"], written["nodes"][0]["drainBound"]) == (
        action.value,
        None,
    )


def test_a_verdict_about_a_pool_is_written_whole() -> None:
    verdict = PoolVerdict(
        "web",
        2,
        VERDICT.launches[0],
        LIMIT,
        ("a-claim",),
        (NodeRefusal(NodeReason.POOL_SIZE, "b"),),
    )

    written = pool_verdict_to_dict(verdict)

    assert written == {
        "pool": "web",
        "creates": 2,
        "launch": verdict_to_dict(VERDICT)["launches"][0],
        "withheld": excluded(Constraint.LIMIT, "cpu", 3),
        "deletes": ["a-claim"],
        "refusals": [refusal_of(NodeReason.POOL_SIZE, "b")],
    }
    assert json.loads(pool_verdict_to_json(verdict)) == written


def test_an_empty_verdict_about_a_pool_is_written() -> None:
    assert pool_verdict_to_json(PoolVerdict("web")) == (
        b'{"creates":0,"deletes":[],"launch":null,"pool":"web","refusals":[],"withheld":null}'
    )
