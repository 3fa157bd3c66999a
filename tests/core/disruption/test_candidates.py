from datetime import timedelta

import pytest
from msgspec.structs import replace

from karpy.core.disruption.candidates import Candidate, Manner, best_first, find_candidates
from karpy.core.disruption.cost import POD
from karpy.model.labels import NODE_POOL
from karpy.model.surroundings import NodeState
from karpy.model.tenants import PodBudget, Tenant
from tests.builders import catalog, instance_type, offering
from tests.builders.pods import NOON
from tests.core.disruption.scenes import (
    ALL,
    DISRUPTED,
    around,
    pod_budget,
    pool,
    refused,
    state,
    tenant,
    told,
)

DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
MINUTE = timedelta(minutes=1)
WEB = {"app": "web"}


def unlabelled() -> NodeState:
    node = state("a").node
    assert node is not None
    rest = {key: value for key, value in node.meta.labels.items() if key != NODE_POOL}
    return replace(state("a"), node=replace(node, meta=replace(node.meta, labels=rest)))


def test_a_quiet_node_is_a_candidate_with_its_price_and_cost() -> None:
    full = state("a", type="large", tenants=[tenant("x"), tenant("y", is_daemon=True)])

    found = find_candidates(around(full))

    assert full.claim is not None
    assert full.node is not None
    assert found.candidates == (
        Candidate(
            full.claim,
            full.node,
            pool(),
            ALL,
            price=4_000_000,
            moving_cost=2 * POD,
            pods=1,
        ),
    )
    assert found.refusals == ()
    assert found.notices == ()


@pytest.mark.parametrize(
    ("node", "why", "text"),
    [
        (state("a", said=["Rebooting"], deleting=True), "REBOOTING", "Node is rebooting"),
        (
            state("a", deleting=True, initialized=False),
            "LEAVING",
            "Node is deleting or marked for deletion",
        ),
        (
            state("a", said=["InstanceTerminating"]),
            "LEAVING",
            "Node is deleting or marked for deletion",
        ),
        (state("a", marked=True), "LEAVING", "Node is deleting or marked for deletion"),
        (state("a", initialized=False), "UNINITIALIZED", "Node isn't initialized"),
        (
            state("a", nominated_for=MINUTE, annotations={DO_NOT_DISRUPT: "true"}),
            "NOMINATED",
            "Node is nominated for a pending pod",
        ),
        (
            state("a", annotations={DO_NOT_DISRUPT: "true"}),
            "DO_NOT_DISRUPT",
            'Disruption is blocked through the "karpenter.sh/do-not-disrupt" annotation',
        ),
        (
            unlabelled(),
            "NO_POOL_LABEL",
            "Node doesn't have required label (label=karpenter.sh/nodepool)",
        ),
    ],
)
def test_a_node_is_left_alone_and_says_why(node: NodeState, why: str, text: str) -> None:
    found = find_candidates(around(node))

    assert found.candidates == ()
    assert refused(found.refusals) == [("a", why, "")]
    assert told(found.notices) == [
        ("Node", "a", "DisruptionBlocked", text),
        ("NodeClaim", "a-claim", "DisruptionBlocked", text),
    ]


def test_a_node_that_is_not_registered_goes_by_the_name_of_its_claim() -> None:
    found = find_candidates(around(state("a", registered=False, initialized=False)))

    assert refused(found.refusals) == [("a-claim", "UNREGISTERED", "")]
    assert told(found.notices)[0][3] == "Node isn't initialized nor registered"


def test_a_claim_without_a_node_says_so_itself() -> None:
    found = find_candidates(around(NodeState(claim=state("a").claim)))

    text = "Nodeclaim does not have an associated node"
    assert refused(found.refusals) == [("a-claim", "NO_NODE", "")]
    assert told(found.notices) == [("NodeClaim", "a-claim", "DisruptionBlocked", text)]


def test_nobody_is_told_of_nodes_that_are_not_ours() -> None:
    found = find_candidates(around(NodeState(node=state("a").node)))

    assert refused(found.refusals) == [("a", "UNMANAGED", "")]
    assert found.notices == ()


def test_nobody_is_told_of_nodes_that_are_being_disrupted_already() -> None:
    found = find_candidates(around(state("a", deleting=True), busy=frozenset({"a-claim"})))

    assert refused(found.refusals) == [("a", "IN_ROLLOUT", "")]
    assert found.notices == ()


def test_a_nomination_ends() -> None:
    found = find_candidates(around(state("a", nominated_for=timedelta())))

    assert [each.name for each in found.candidates] == ["a"]


def test_only_true_keeps_a_node() -> None:
    found = find_candidates(around(state("a", annotations={DO_NOT_DISRUPT: "1h"})))

    assert [each.name for each in found.candidates] == ["a"]


@pytest.mark.parametrize(
    "changes", [{"pools": {}}, {"catalog": catalog([])}], ids=["no pool", "no types"]
)
def test_a_node_of_an_unknown_pool_is_left_alone(changes: dict[str, object]) -> None:
    found = find_candidates(around(state("a"), **changes))

    assert refused(found.refusals) == [("a", "POOL_MISSING", "web")]
    assert told(found.notices)[0][3] == "NodePool not found (NodePool=web)"


@pytest.mark.parametrize(
    "pod",
    [
        tenant("x", do_not_disrupt="true"),
        tenant("x", do_not_disrupt="true", is_daemon=True),
        tenant("x", do_not_disrupt="true", is_static=True),
        tenant("x", do_not_disrupt="2h"),
        tenant("x", do_not_disrupt="5s", started=None),
    ],
)
def test_a_pod_can_keep_its_node(pod: Tenant) -> None:
    found = find_candidates(around(state("a", tenants=[pod])))

    text = 'Pod has "karpenter.sh/do-not-disrupt" annotation (Pod=shop/x)'
    assert refused(found.refusals) == [("a", "POD_DO_NOT_DISRUPT", "shop/x")]
    assert ("Node", "a", "DisruptionBlocked", text) in told(found.notices)


@pytest.mark.parametrize("manner", [*Manner])
def test_a_node_that_cannot_be_read_as_it_is_now_is_not_touched(manner: Manner) -> None:
    odd = replace(state("a", grace_period=MINUTE), unreadable="`spec` is odd")

    found = find_candidates(around(odd), manner)

    assert refused(found.refusals) == [("a", "UNREADABLE", "`spec` is odd")]
    text = "Node, NodeClaim or NodePool cannot be read: `spec` is odd"
    assert told(found.notices)[0][3] == text


def test_a_pod_that_cannot_be_read_keeps_its_node_but_from_repair() -> None:
    odd = around(state("a", tenants=[tenant("x", unreadable="odd")]), state("b"))

    graceful, repair = find_candidates(odd), find_candidates(odd, Manner.REPAIR)

    assert refused(graceful.refusals) == [("a", "POD_UNREADABLE", "shop/x")]
    assert [(each.name, each.is_blocked) for each in repair.candidates] == [
        ("a", True),
        ("b", False),
    ]


@pytest.mark.parametrize(
    "pod",
    [
        tenant("x", do_not_disrupt="true", phase="Succeeded"),
        tenant("x", do_not_disrupt="true", deleted=NOON),
        tenant("x", do_not_disrupt="30m"),
        tenant("x", do_not_disrupt="soon"),
    ],
)
def test_a_pod_cannot_keep_its_node_for_ever(pod: Tenant) -> None:
    found = find_candidates(around(state("a", tenants=[pod])))

    assert found.refusals == ()


def test_the_owner_of_a_pod_is_told_what_its_annotation_does() -> None:
    found = find_candidates(around(state("a", tenants=[tenant("x", do_not_disrupt="30m")])))

    text = "The karpenter.sh/do-not-disrupt grace period has elapsed, pod is now disruptable"
    assert told(found.notices) == [("Pod", "x", "DoNotDisruptGracePeriodElapsed", text)]


@pytest.mark.parametrize(
    ("pods", "guards", "why", "text"),
    [
        (
            [tenant("x", labels=WEB)],
            [pod_budget("pdb")],
            ("a", "POD_BUDGET", "shop/pdb"),
            "Pdb prevents pod evictions (PodDisruptionBudget=[shop/pdb])",
        ),
        (
            [tenant("x", labels=WEB)],
            [pod_budget("pdb", None)],
            ("a", "POD_BUDGET", "shop/pdb"),
            "Pdb prevents pod evictions (PodDisruptionBudget=[shop/pdb])",
        ),
        (
            [tenant("x", labels=WEB, is_unready=True)],
            [pod_budget("pdb")],
            ("a", "POD_BUDGET", "shop/pdb"),
            "Pdb prevents pod evictions (PodDisruptionBudget=[shop/pdb])",
        ),
        (
            [tenant("x", labels=WEB, is_daemon=True)],
            [pod_budget("pdb")],
            ("a", "POD_BUDGET", "shop/pdb"),
            "Pdb prevents pod evictions (PodDisruptionBudget=[shop/pdb])",
        ),
        (
            [tenant("x", labels=WEB)],
            [pod_budget("two", 5), pod_budget("one", 5)],
            ("a", "POD_BUDGETS", "shop/one shop/two"),
            "Eviction does not support multiple PDBs (PodDisruptionBudget(s)=[shop/one shop/two])",
        ),
    ],
)
def test_a_pod_disruption_budget_can_keep_a_node(
    pods: list[Tenant], guards: list[PodBudget], why: tuple[str, str, str], text: str
) -> None:
    found = find_candidates(around(state("a", tenants=pods), pod_budgets=tuple(guards)))

    assert refused(found.refusals) == [why]
    assert told(found.notices)[0][3] == text


@pytest.mark.parametrize(
    ("pod", "guard"),
    [
        (tenant("x", labels=WEB), pod_budget("pdb", 1)),
        (tenant("x", labels={"app": "db"}), pod_budget("pdb")),
        (tenant("x", "other", labels=WEB), pod_budget("pdb")),
        (tenant("x", labels=WEB, is_unready=True), pod_budget("pdb", spares_unready=False)),
        (tenant("x", labels=WEB, is_static=True), pod_budget("pdb")),
        (tenant("x", labels=WEB, phase="Failed"), pod_budget("pdb")),
    ],
)
def test_a_pod_disruption_budget_lets_go_what_it_does_not_protect(
    pod: Tenant, guard: PodBudget
) -> None:
    found = find_candidates(around(state("a", tenants=[pod]), pod_budgets=(guard,)))

    assert found.refusals == ()


@pytest.mark.parametrize(
    ("manner", "grace_period", "names"),
    [
        (Manner.EVENTUAL, MINUTE, ["a"]),
        (Manner.EVENTUAL, None, []),
        (Manner.GRACEFUL, MINUTE, []),
    ],
)
def test_pods_cannot_keep_a_node_that_ends_by_a_deadline(
    manner: Manner, grace_period: timedelta | None, names: list[str]
) -> None:
    kept = state("a", tenants=[tenant("x", do_not_disrupt="true")], grace_period=grace_period)

    found = find_candidates(around(kept), manner)

    assert [each.name for each in found.candidates] == names


def test_a_node_of_an_unknown_type_is_a_candidate_that_saves_nothing() -> None:
    found = find_candidates(around(state("a", type="unheard-of")))

    assert [each.price for each in found.candidates] == [0]


def test_a_sold_out_offering_has_its_price_all_the_same() -> None:
    sold_out = instance_type("small", offerings=[offering(dollars=2.0, available=False)])

    found = find_candidates(around(state("a"), catalog=catalog([sold_out])))

    assert [each.price for each in found.candidates] == [2_000_000]


def test_those_that_save_most_per_trouble_come_first() -> None:
    nodes = [
        state("b", type="small"),
        state("a", type="small"),
        state("c", type="large", tenants=[tenant("x"), tenant("y")]),
        state("d", type="large", tenants=[tenant(f"z-{each}") for each in range(4)]),
    ]

    found = find_candidates(around(*nodes))

    assert [each.name for each in best_first(found.candidates)] == ["c", "a", "b", "d"]


def test_a_stray_taint_does_not_make_a_node_untouchable() -> None:
    found = find_candidates(around(state("a", taints=[DISRUPTED])))

    assert found.refusals == ()
