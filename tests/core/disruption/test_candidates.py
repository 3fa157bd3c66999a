"""Which nodes may be disrupted: each reason against it, in Karpenter's order, with its event."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from karpy.core.disruption.candidates import (
    Candidate,
    DisruptionClass,
    as_command_node,
    best_first,
    find_candidates,
    refusal_notices,
    refuse,
)
from karpy.core.disruption.cost import POD
from karpy.core.disruption.evaluation import Evaluation
from karpy.model.commands import CommandNode
from karpy.model.constraints import Toleration
from karpy.model.labels import NODE_POOL
from karpy.model.nodes import Node
from karpy.model.pods import DisruptionBudget, Pod
from karpy.model.verdicts import NodeReason, NodeRefusal
from tests.builders import NOON, catalog, instance_type, offering
from tests.core.disruption.scenes import (
    DISRUPTED,
    DO_NOT_DISRUPT,
    DOLLAR,
    HOUR,
    MINUTE,
    WEB,
    NodeFields,
    candidates,
    claim_record,
    cluster,
    event_rows,
    node,
    node_record,
    only_claim,
    only_node,
    pod,
    pod_budget,
    pool,
    refused,
)

GRACEFUL, EVENTUAL, REPAIR = DisruptionClass
FORBIDDEN = {DO_NOT_DISRUPT: "true"}


def names(found: tuple[Candidate, ...]) -> list[str]:
    return [each.name for each in found]


def test_a_node_with_nothing_against_it_is_a_candidate_with_its_price_and_its_cost() -> None:
    moving = pod("x", on="a")
    full = node("a", type="large")
    given = cluster(full, pods=[moving, pod("y", on="a", daemon=True), pod("z", on="b")])

    found = find_candidates(Evaluation(given))

    assert found.candidates == (
        Candidate(
            full,
            claim_record("a", type="large"),
            node_record("a", type="large"),
            pool(),
            (moving,),
            price=4 * DOLLAR,
            moving_cost=2 * POD,
        ),
    )
    assert found.refusals == ()
    assert found.notices == ()


# --- what the node itself forbids ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "why", "text"),
    [
        (only_claim("a"), "NO_NODE", "Nodeclaim does not have an associated node"),
        (node("a", true_conditions=["Rebooting"]), "REBOOTING", "Node is rebooting"),
        (node("a", deleting=True), "DELETING", "Node is deleting or marked for deletion"),
        (node("a", replaced=True), "DELETING", "Node is deleting or marked for deletion"),
        (
            node("a", true_conditions=["InstanceTerminating"]),
            "DELETING",
            "Node is deleting or marked for deletion",
        ),
        (
            node("a", registered=False, initialized=False),
            "UNREGISTERED",
            "Node isn't initialized nor registered",
        ),
        (node("a", initialized=False), "UNINITIALIZED", "Node isn't initialized"),
        (node("a", nominated_for=MINUTE), "NOMINATED", "Node is nominated for a pending pod"),
        (
            node("a", annotations=FORBIDDEN),
            "DO_NOT_DISRUPT",
            'Disruption is blocked through the "karpenter.sh/do-not-disrupt" annotation',
        ),
        (
            node("a", labels={NODE_POOL: ""}),
            "NO_POOL_LABEL",
            "Node doesn't have required label (label=karpenter.sh/nodepool)",
        ),
        (node("a", pool="gone"), "POOL_MISSING", "NodePool not found (NodePool=gone)"),
        (
            node("a", unreadable="`spec` is odd"),
            "UNREADABLE",
            "Node, NodeClaim or NodePool cannot be read: `spec` is odd",
        ),
    ],
)
def test_a_node_is_left_alone_and_its_events_say_why(given: Node, why: str, text: str) -> None:
    evaluation = Evaluation(cluster(given))

    (refusal,) = find_candidates(evaluation).refusals

    assert refusal.why.name == why
    assert {each[2:] for each in event_rows(refusal_notices([refusal], evaluation))} == {
        ("DisruptionBlocked", text)
    }


ODDITIES: tuple[tuple[str, NodeFields], ...] = (
    ("IN_COMMAND", {}),
    ("UNREADABLE", {"unreadable": "odd"}),
    ("REBOOTING", {"true_conditions": ["Rebooting"]}),
    ("DELETING", {"deleting": True}),
    ("UNINITIALIZED", {"initialized": False}),
    ("NOMINATED", {"nominated_for": MINUTE}),
    ("DO_NOT_DISRUPT", {"annotations": FORBIDDEN}),
    ("POOL_MISSING", {"pool": "gone"}),
)


@pytest.mark.parametrize("first", range(len(ODDITIES)))
def test_of_several_reasons_the_first_in_karpenters_order_is_given(first: int) -> None:
    rest = ODDITIES[first:]
    fields: NodeFields = {}
    for _, each in rest:
        fields.update(each)
    in_command = frozenset({"a-claim"}) if first == 0 else frozenset()

    found = find_candidates(Evaluation(cluster(node("a", **fields), in_command=in_command)))

    assert [each.why.name for each in found.refusals] == [rest[0][0]]


def test_a_node_that_is_not_ours_is_left_alone_without_an_event() -> None:
    evaluation = Evaluation(cluster(only_node("a"), node("b", foreign=True)))

    found = find_candidates(evaluation)

    assert refused(found.refusals) == [("a", "UNMANAGED", ""), ("b", "UNMANAGED", "")]
    assert list(refusal_notices(found.refusals, evaluation)) == []


def test_a_node_in_a_command_is_left_alone_without_an_event() -> None:
    evaluation = Evaluation(cluster(node("a"), in_command=frozenset({"a-claim"})))

    found = find_candidates(evaluation)

    assert refused(found.refusals) == [("a", "IN_COMMAND", "")]
    assert list(refusal_notices(found.refusals, evaluation)) == []


def test_the_events_on_a_blocked_node_are_on_its_claim_too() -> None:
    evaluation = Evaluation(cluster(node("a", deleting=True)))

    refusal_events = event_rows(refusal_notices(find_candidates(evaluation).refusals, evaluation))

    assert [each[:2] for each in refusal_events] == [("Node", "a"), ("NodeClaim", "a-claim")]


def test_a_nomination_ends_at_its_time() -> None:
    until, over = node("a", nominated_for=MINUTE), node("b", nominated_for=timedelta())

    found = find_candidates(Evaluation(cluster(until, over)))

    assert names(found.candidates) == ["b"]
    assert [each.until for each in found.refusals] == [NOON + MINUTE]


def test_only_the_word_true_on_a_node_keeps_it() -> None:
    assert names(candidates(cluster(node("a", annotations={DO_NOT_DISRUPT: "1h"})))) == ["a"]


def test_the_annotation_of_the_claim_counts_until_the_node_is_registered() -> None:
    """After its registration, the annotation of the Node counts, not that of the NodeClaim."""
    made = node("a")
    assert made.claim_record is not None
    meta = replace(made.claim_record.meta, annotations=FORBIDDEN)
    made = replace(made, claim_record=replace(made.claim_record, meta=meta))

    assert names(candidates(cluster(made))) == ["a"]


def test_a_stray_taint_of_an_earlier_command_keeps_no_node() -> None:
    assert names(candidates(cluster(node("a", taints=[DISRUPTED])))) == ["a"]


def test_without_instance_types_a_nodepool_counts_as_missing() -> None:
    found = find_candidates(Evaluation(cluster(node("a"), types=[])))

    assert refused(found.refusals) == [("a", "POOL_MISSING", "web")]


def test_the_nodes_of_a_nodepool_that_cannot_be_read_stay() -> None:
    given = cluster(node("a"), pools=[pool(unreadable="it is odd")])

    assert [each.why for each in find_candidates(Evaluation(given)).refusals] == [
        NodeReason.UNREADABLE
    ]


# --- what its pods forbid ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "keeper",
    [
        pod("x", on="a", do_not_disrupt="true"),
        pod("x", on="a", do_not_disrupt="true", daemon=True),
        pod("x", on="a", do_not_disrupt="true", static=True),
        pod("x", on="a", do_not_disrupt="2m"),
        pod("x", on="a", do_not_disrupt="5s", started=None),
    ],
    ids=["always", "daemon", "static", "for a time", "not started"],
)
def test_a_pod_can_keep_its_node(keeper: Pod) -> None:
    evaluation = Evaluation(cluster(node("a"), pods=[keeper]))

    (refusal,) = find_candidates(evaluation).refusals

    text = 'Pod has "karpenter.sh/do-not-disrupt" annotation (Pod=shop/x)'
    assert refused([refusal]) == [("a", "POD_DO_NOT_DISRUPT", "shop/x")]
    assert event_rows(refusal_notices([refusal], evaluation)) == [
        ("Node", "a", "DisruptionBlocked", text),
        ("NodeClaim", "a-claim", "DisruptionBlocked", text),
    ]


@pytest.mark.parametrize(
    "other",
    [
        pod("x", on="a", do_not_disrupt="true", phase="Succeeded"),
        pod("x", on="a", do_not_disrupt="true", deleted=NOON),
        pod("x", on="a", do_not_disrupt="30s"),
        pod("x", on="a", do_not_disrupt="soon"),
        pod("x", on="a", do_not_disrupt="-1h"),
        pod("x", on="b", do_not_disrupt="true"),
        pod("x", on="a", do_not_disrupt="true", expected=True),
    ],
    ids=["over", "deleting", "elapsed", "no duration", "negative", "elsewhere", "expected"],
)
def test_a_pod_that_is_not_protected_keeps_no_node(other: Pod) -> None:
    assert names(candidates(cluster(node("a"), pods=[other]))) == ["a"]


def test_a_refusal_says_until_when_pods_keep_a_node() -> None:
    some = [
        pod("x", on="a", do_not_disrupt="2h"),
        pod("y", on="a", do_not_disrupt="3h"),
        pod("z", on="b", do_not_disrupt="2h"),
        pod("v", on="b", do_not_disrupt="true"),
    ]

    found = find_candidates(Evaluation(cluster(node("a"), node("b"), pods=some)))

    assert found.refusals == (
        NodeRefusal(
            NodeReason.POD_DO_NOT_DISRUPT,
            "a",
            "shop/x",
            pods=("shop/x", "shop/y"),
            until=NOON - MINUTE + 3 * HOUR,
        ),
        NodeRefusal(NodeReason.POD_DO_NOT_DISRUPT, "b", "shop/v", pods=("shop/v", "shop/z")),
    )


def test_a_refusal_names_a_few_of_many_pods() -> None:
    some = [pod(f"x-{number}", on="a", do_not_disrupt="true") for number in range(9)]

    (refusal,) = find_candidates(Evaluation(cluster(node("a"), pods=some))).refusals

    assert refusal.pods == tuple(f"shop/x-{number}" for number in range(5))


def test_the_owner_of_a_pod_learns_what_its_annotation_does() -> None:
    some = [
        pod("done", on="a", do_not_disrupt="30s"),
        pod("odd", on="a", do_not_disrupt="soon"),
        pod("held", on="a", do_not_disrupt="1h"),
    ]

    notices = event_rows(find_candidates(Evaluation(cluster(node("a"), pods=some))).notices)

    assert [each[1:3] for each in notices] == [
        ("done", "DoNotDisruptGracePeriodElapsed"),
        ("odd", "InvalidDoNotDisruptAnnotation"),
        ("held", "DoNotDisruptUntil"),
    ]


PDB_TEXT = "Pdb prevents pod evictions (PodDisruptionBudget=[shop/pdb])"


@pytest.mark.parametrize(
    ("kept", "guards", "why", "text"),
    [
        (pod("x", on="a", labels=WEB), [pod_budget("pdb")], "POD_BUDGET", PDB_TEXT),
        (pod("x", on="a", labels=WEB), [pod_budget("pdb", None)], "POD_BUDGET", PDB_TEXT),
        (
            pod("x", on="a", labels=WEB, unready=True),
            [pod_budget("pdb")],
            "POD_BUDGET",
            PDB_TEXT,
        ),
        (
            pod("x", on="a", labels=WEB),
            [pod_budget("pdb", allows_unready=True)],
            "POD_BUDGET",
            PDB_TEXT,
        ),
        (pod("x", on="a", labels=WEB, daemon=True), [pod_budget("pdb")], "POD_BUDGET", PDB_TEXT),
        (pod("x", on="a"), [pod_budget("pdb", selector=())], "POD_BUDGET", PDB_TEXT),
        (
            pod("x", on="a", labels=WEB),
            [pod_budget("two", 5), pod_budget("one", 5)],
            "POD_BUDGETS",
            "Eviction does not support multiple PDBs (PodDisruptionBudget(s)=[shop/one shop/two])",
        ),
    ],
)
def test_a_pod_disruption_budget_can_keep_a_node(
    kept: Pod, guards: list[DisruptionBudget], why: str, text: str
) -> None:
    evaluation = Evaluation(cluster(node("a"), pods=[kept], budgets=tuple(guards)))

    (refusal,) = find_candidates(evaluation).refusals

    assert (refusal.why.name, refusal.pods) == (why, ("shop/x",))
    assert event_rows(refusal_notices([refusal], evaluation))[0][3] == text


@pytest.mark.parametrize(
    ("free", "guard"),
    [
        (pod("x", on="a", labels=WEB), pod_budget("pdb", 1)),
        (pod("x", on="a", labels={"app": "db"}), pod_budget("pdb")),
        (pod("x", on="a", labels=WEB, namespace="other"), pod_budget("pdb")),
        (pod("x", on="a", labels=WEB, unready=True), pod_budget("pdb", allows_unready=True)),
        (pod("x", on="a", labels=WEB, static=True), pod_budget("pdb")),
        (pod("x", on="a", labels=WEB, phase="Failed"), pod_budget("pdb")),
        (pod("x", on="a", labels=WEB, deleted=NOON), pod_budget("pdb")),
        (
            pod("x", on="a", labels=WEB, tolerations=[Toleration(operator="Exists")]),
            pod_budget("pdb"),
        ),
        (pod("x", on="a", labels=WEB), pod_budget("pdb", selector=None)),
    ],
    ids=[
        "one may go",
        "others",
        "other namespace",
        "unready may go",
        "static",
        "over",
        "deleting",
        "tolerates disruption",
        "no selector",
    ],
)
def test_a_pod_disruption_budget_keeps_no_node_of_pods_it_lets_go(
    free: Pod, guard: DisruptionBudget
) -> None:
    assert names(candidates(cluster(node("a"), pods=[free], budgets=(guard,)))) == ["a"]


def test_of_several_budgets_the_one_of_the_first_pod_is_named() -> None:
    some = [pod("y", on="a", labels=WEB), pod("x", on="a", labels={"app": "db"})]
    guards = (pod_budget("web"), replace(pod_budget("all"), selector=(), disruptions_allowed=0))

    found = find_candidates(Evaluation(cluster(node("a"), pods=some, budgets=guards)))

    assert refused(found.refusals) == [("a", "POD_BUDGET", "shop/all")]


def test_an_annotation_is_named_before_a_budget() -> None:
    some = [pod("a", on="a", labels=WEB), pod("b", on="a", do_not_disrupt="true")]

    found = find_candidates(Evaluation(cluster(node("a"), pods=some, budgets=(pod_budget("pdb"),))))

    assert refused(found.refusals) == [("a", "POD_DO_NOT_DISRUPT", "shop/b")]


def test_a_pod_that_cannot_be_read_keeps_its_node() -> None:
    """Whether another node has a place for an unreadable pod is not known."""
    some = [pod("x", on="a", unreadable="odd"), pod("y", on="b", unreadable="odd", daemon=True)]
    evaluation = Evaluation(cluster(node("a"), node("b"), pods=some))

    found = find_candidates(evaluation)

    assert refused(found.refusals) == [("a", "POD_UNREADABLE", "shop/x")]
    assert (
        event_rows(refusal_notices(found.refusals, evaluation))[0][3]
        == "Pod cannot be read (Pod=shop/x)"
    )


# --- what other methods respect ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("class_", "grace_period", "expected"),
    [
        (EVENTUAL, MINUTE, ["a"]),
        (EVENTUAL, None, []),
        (GRACEFUL, MINUTE, []),
        (REPAIR, None, ["a"]),
    ],
)
def test_pods_cannot_keep_a_node_whose_drain_has_an_end(
    class_: DisruptionClass, grace_period: timedelta | None, expected: list[str]
) -> None:
    given = cluster(
        node("a", grace_period=grace_period), pods=[pod("x", on="a", do_not_disrupt="true")]
    )

    found = find_candidates(Evaluation(given), class_)

    assert names(found.candidates) == expected
    assert all(each.blocker is not None for each in found.candidates)


def test_repair_overrides_what_the_node_forbids_and_that_it_never_was_initialized() -> None:
    given = cluster(
        node("forbidden", annotations=FORBIDDEN),
        node("young", initialized=False, nominated_for=MINUTE),
        node("nominated", nominated_for=MINUTE),
        node("unregistered", registered=False, initialized=False),
    )

    found = find_candidates(Evaluation(given), REPAIR)

    assert names(found.candidates) == ["forbidden", "young"]
    assert [each.why.name for each in found.refusals] == ["NOMINATED", "UNREGISTERED"]


def test_repair_needs_a_nodepool_before_anything_else() -> None:
    evaluation = Evaluation(cluster(only_claim("a", pool="")))

    found = find_candidates(evaluation, REPAIR)

    text = "repair requires a NodePool to construct and budget a safe replacement"
    assert [each.why.name for each in found.refusals] == ["REPAIR_NEEDS_POOL"]
    assert event_rows(refusal_notices(found.refusals, evaluation))[0][3] == text


# --- prices and order ----------------------------------------------------------------------------


def test_a_node_of_an_unknown_type_is_a_candidate_without_a_price() -> None:
    assert [each.price for each in candidates(cluster(node("a", type="unheard-of")))] == [0]


def test_an_offering_that_is_sold_out_has_its_price_all_the_same() -> None:
    sold_out = instance_type("small", offerings=[offering(dollars=2.0, available=False)])

    found = candidates(cluster(node("a"), catalog=catalog([sold_out])))

    assert [each.price for each in found] == [2 * DOLLAR]


def test_those_that_save_most_for_the_cost_of_moving_their_pods_come_first() -> None:
    """The ratios: four dollars for three pods, one for one, one for one, four for five."""
    some = [pod(f"c-{number}", on="c") for number in range(2)]
    some += [pod(f"d-{number}", on="d") for number in range(4)]
    nodes = [node("b"), node("a"), node("c", type="large"), node("d", type="large")]

    found = candidates(cluster(*nodes, pods=some))

    assert [each.name for each in best_first(found)] == ["c", "a", "b", "d"]


def test_a_pod_that_costs_nothing_to_move_leaves_a_node_empty() -> None:
    free = pod("x", on="a", disruption_cost="-134217728")

    (found,) = candidates(cluster(node("a"), pods=[free]))

    assert found.is_empty
    assert found.pods == (free,)


def test_a_command_keeps_the_price_of_a_node_and_how_many_pods_move() -> None:
    (found,) = candidates(
        cluster(node("a"), pods=[pod("x", on="a"), pod("y", on="a", daemon=True)])
    )

    assert as_command_node(found) == CommandNode("a", "a-claim", "web", DOLLAR, 1)


def test_a_refusal_by_a_method_has_the_price_of_the_node() -> None:
    (found,) = candidates(cluster(node("a")))

    assert refuse(found, NodeReason.NOT_CHEAPER, "m", "d", replacement=7) == NodeRefusal(
        NodeReason.NOT_CHEAPER, "a", "d", "m", price=DOLLAR, replacement=7
    )
