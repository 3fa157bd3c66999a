from typing import Final, Unpack

import pytest
from msgspec.structs import replace

from karpy.core.check.breaches import Breach, Rule
from karpy.core.check.plan import find_risks
from karpy.model.constraints import AffinityTerm, LabelSelector
from karpy.model.labels import HOSTNAME, ZONE
from karpy.model.pods import Pod
from karpy.model.requirements import Operator, one_of, require
from karpy.model.verdicts import Reason, Refusal
from tests.core.check.builders import (
    LARGE,
    World,
    app,
    bound,
    in_zone,
    launch,
    near,
    node,
    pod,
    pool,
    world,
)
from tests.core.check.fields import SnapshotFields

WEB: Final = {"app": "web"}
DB: Final = {"app": "db"}
EVERYWHERE: Final = LabelSelector()


def plan(
    where: dict[str, list[Pod]],
    there: dict[str, list[Pod]] | None = None,
    **others: Unpack[SnapshotFields],
) -> World:
    """Launch a node for each zone or set of zones, beside existing nodes, one per zone."""
    old = there or {}
    placed = [each for pods in where.values() for each in pods]
    running = [bound(each, f"n-{zone}") for zone, pods in old.items() for each in pods]
    launches = [launch(f"l-{z}", pods, in_zone(*z), options=[LARGE]) for z, pods in where.items()]
    given: SnapshotFields = {
        "nodes": tuple(node(f"n-{zone}", zone) for zone in old),
        **others,
    }
    return world(*launches, pods=[*placed, *running], **given)


def with_anti_affinity(name: str, key: str = ZONE) -> Pod:
    return pod(name, "100m", labels=WEB, anti_affinity=(near("web", key),))


def with_affinity(name: str, key: str = ZONE, of: str = "web", **labels: str) -> Pod:
    return pod(name, "100m", labels=labels or WEB, affinity=(near(of, key),))


# --- anti-affinity -------------------------------------------------------------------------------


def test_pods_with_anti_affinity_need_different_zones() -> None:
    assert (
        plan({"a": [with_anti_affinity("one")], "b": [with_anti_affinity("two")]}).rules() == set()
    )
    assert plan({"a": [with_anti_affinity("one"), with_anti_affinity("two")]}).breaches() == (
        Breach(
            Rule.ANTI_AFFINITY,
            "l-a",
            "shop/one",
            f"{ZONE} a: 1 others, by the rule of shop/one",
        ),
        Breach(
            Rule.ANTI_AFFINITY,
            "l-a",
            "shop/two",
            f"{ZONE} a: 1 others, by the rule of shop/two",
        ),
    )


def test_anti_affinity_breaks_if_two_nodes_may_be_in_one_zone() -> None:
    assert (
        plan({"a": [with_anti_affinity("one")], "bc": [with_anti_affinity("two")]}).rules() == set()
    )
    assert plan({"ab": [with_anti_affinity("one")], "bc": [with_anti_affinity("two")]}).rules() == {
        Rule.ANTI_AFFINITY
    }


def test_anti_affinity_by_hostname_allows_the_same_zone() -> None:
    one, two = with_anti_affinity("one", HOSTNAME), with_anti_affinity("two", HOSTNAME)

    assert plan({"a": [one], "ab": [two]}).rules() == set()
    assert plan({"a": [one, two]}).rules() == {Rule.ANTI_AFFINITY}


def test_anti_affinity_of_a_new_pod_excludes_bound_pods() -> None:
    neighbour = [pod("old", labels=WEB)]

    assert plan({"b": [with_anti_affinity("new")]}, {"a": neighbour}).rules() == set()
    assert plan({"a": [with_anti_affinity("new")]}, {"a": neighbour}).rules() == {
        Rule.ANTI_AFFINITY
    }


def test_anti_affinity_of_a_bound_pod_excludes_new_pods() -> None:
    new = pod("new", labels=WEB)

    assert plan({"b": [new]}, {"a": [with_anti_affinity("old")]}).rules() == set()
    assert plan({"a": [new]}, {"a": [with_anti_affinity("old")]}).breaches() == (
        Breach(
            Rule.ANTI_AFFINITY, "l-a", "shop/new", f"{ZONE} a: 1 others, by the rule of shop/old"
        ),
    )


def test_bound_pods_that_break_anti_affinity_are_no_breach() -> None:
    together = {"a": [with_anti_affinity("one"), with_anti_affinity("two")]}

    assert plan({"b": [pod("new", labels=DB)]}, together).rules() == set()


def test_a_displaced_pod_does_not_count_on_its_former_node() -> None:
    moving = bound(with_anti_affinity("moving"), "n-a")
    nodes = (node("n-a", is_deleting=True),)

    judged = world(launch("l1", [moving], in_zone("a")), pods=[moving], nodes=nodes)

    assert judged.rules() == set()


def test_a_refused_pod_of_a_deleting_node_counts_on_it() -> None:
    """It was refused before any node was tried, and stays until its spec is corrected."""
    stuck = bound(pod("stuck", labels=WEB, claims_devices=True), "n-a")
    new = with_anti_affinity("new")
    judged = world(
        launch("l1", [new], in_zone("a")),
        pods=[new, stuck],
        nodes=(node("n-a", is_deleting=True),),
    )

    def refused(reason: Reason) -> set[Rule]:
        refusals = (Refusal(reason, (stuck.key,)),)
        return World(judged.snapshot, replace(judged.verdict, refusals=refusals)).rules()

    assert refused(Reason.NO_HOST) == set()
    assert refused(Reason.DEVICE_CLAIMS) == {Rule.ANTI_AFFINITY}


def test_nodes_without_the_label_share_no_domain() -> None:
    assert (
        plan({"a": [with_anti_affinity("one", "rack"), with_anti_affinity("two", "rack")]}).rules()
        == set()
    )


def test_nodes_with_an_open_label_may_share_a_value() -> None:
    racks = require("rack", Operator.EXISTS)
    pools = (pool("web", racks),)
    one, two = with_anti_affinity("one", "rack"), with_anti_affinity("two", "rack")
    old = bound(with_anti_affinity("old", "rack"), "n1")
    free = launch("l1", [one], racks)
    fixed = launch("l2", [two], one_of("rack", "r1"))
    nodes = (node("n1", labels={"rack": "r9"}),)

    assert world(fixed, pods=[two], pools=pools).rules() == set()
    assert world(free, fixed, pods=[one, two], pools=pools).rules() == {Rule.ANTI_AFFINITY}
    assert world(fixed, pods=[two, old], pools=pools, nodes=nodes).rules() == set()
    assert world(free, pods=[one, old], pools=pools, nodes=nodes).rules() == {Rule.ANTI_AFFINITY}


# --- whom a term is about ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (near("web"), set()),
        (AffinityTerm(ZONE, app("web"), namespaces=("bank",)), {Rule.ANTI_AFFINITY}),
        (AffinityTerm(ZONE, app("web"), namespaces=("park",)), set()),
        (AffinityTerm(ZONE, app("web"), namespace_selector=EVERYWHERE), {Rule.ANTI_AFFINITY}),
        (
            AffinityTerm(
                ZONE, app("web"), namespace_selector=LabelSelector((one_of("tier", "money"),))
            ),
            {Rule.ANTI_AFFINITY},
        ),
        (
            AffinityTerm(
                ZONE, app("web"), namespace_selector=LabelSelector((one_of("tier", "toys"),))
            ),
            set(),
        ),
        (AffinityTerm(ZONE, None, namespace_selector=EVERYWHERE), set()),
        (AffinityTerm(ZONE, EVERYWHERE, namespaces=("bank",)), {Rule.ANTI_AFFINITY}),
    ],
)
def test_a_term_selects_pods_of_its_namespaces(term: AffinityTerm, expected: set[Rule]) -> None:
    banker = replace(pod("banker", labels=WEB), namespace="bank")
    new = pod("new", anti_affinity=(term,))
    namespaces = {"bank": {"tier": "money"}, "shop": {}}

    assert plan({"a": [new]}, {"a": [banker]}, namespaces=namespaces).rules() == expected


def test_label_keys_narrow_a_term() -> None:
    same = AffinityTerm(ZONE, app("web"), match_label_keys=("revision",))
    other = AffinityTerm(ZONE, app("web"), mismatch_label_keys=("revision",))
    old = {"a": [pod("old", labels={**WEB, "revision": "1"})]}

    def new(revision: str, term: AffinityTerm) -> dict[str, list[Pod]]:
        labels = {**WEB, "revision": revision}
        return {"a": [pod("new", labels=labels, anti_affinity=(term,))]}

    assert plan(new("2", same), old).rules() == set()
    assert plan(new("1", same), old).rules() == {Rule.ANTI_AFFINITY}
    assert plan(new("1", other), old).rules() == set()
    assert plan(new("2", other), old).rules() == {Rule.ANTI_AFFINITY}


# --- affinity ------------------------------------------------------------------------------------


def test_affinity_holds_in_the_zone_of_a_selected_pod() -> None:
    old = {"a": [pod("old", labels=WEB)]}
    new = with_affinity("new", app="client")

    assert plan({"a": [new]}, old).rules() == set()
    assert plan({"b": [new]}, old).breaches() == (Breach(Rule.AFFINITY, "l-b", "shop/new", ZONE),)


def test_affinity_holds_on_the_same_new_node_in_any_zone() -> None:
    new, host = with_affinity("new", app="client"), pod("host", labels=WEB)

    assert plan({"ab": [new, host]}).rules() == set()
    assert plan({"ab": [new], "a": [host]}).rules() == {Rule.AFFINITY}


def test_affinity_needs_a_selected_pod_in_every_possible_zone() -> None:
    new = with_affinity("new", app="client")
    hosts = [pod("h1", labels=WEB), pod("h2", labels=WEB)]

    assert plan({"ab": [new], "a": hosts[:1], "b": hosts[1:]}).rules() == set()


def test_a_selected_pod_with_an_open_zone_does_not_surely_count() -> None:
    new, host = with_affinity("new", app="client"), pod("host", labels=WEB)

    assert plan({"a": [new], "bc": [host]}).rules() == {Rule.AFFINITY}


def test_affinity_by_hostname_holds_on_the_same_node() -> None:
    old = {"a": [pod("old", labels=WEB)]}
    new = with_affinity("new", HOSTNAME, app="client")
    judged = plan({}, old)
    pods = (*judged.snapshot.pods, new)
    nominated = world(pods=pods, nodes=judged.snapshot.nodes, nominations={"n-a": [new]})

    assert nominated.rules() == set()
    assert plan({"a": [new]}, old).rules() == {Rule.AFFINITY}


def test_a_pod_does_not_meet_its_own_term_if_its_group_is_elsewhere() -> None:
    old = {"a": [pod("old", labels=WEB)]}

    assert plan({"a": [with_affinity("new")]}, old).rules() == set()
    assert plan({"b": [with_affinity("new")]}, old).rules() == {Rule.AFFINITY}


def test_a_pod_may_be_first_of_its_group_alone_or_with_others() -> None:
    assert plan({"a": [with_affinity("one")]}).rules() == set()
    assert plan({"a": [with_affinity("one"), with_affinity("two")]}).rules() == set()
    assert plan({"a": [with_affinity("one")]}, {"a": [pod("odd", labels=DB)]}).rules() == set()


def test_a_group_has_its_first_pod_in_one_zone_only() -> None:
    assert plan({"a": [with_affinity("one")], "b": [with_affinity("two")]}).rules() == {
        Rule.AFFINITY
    }


def test_a_pod_may_be_first_of_its_group_in_an_open_zone() -> None:
    """The group is in whatever zone the node gets."""
    assert plan({"ab": [with_affinity("one"), with_affinity("two")]}).rules() == set()


def test_a_pod_that_must_be_first_takes_a_risk() -> None:
    """If the other pod is bound first, elsewhere, no node suits this one."""
    starter, free = with_affinity("one"), pod("free", labels=WEB)
    risk = (Breach(Rule.AFFINITY_START, "l-a", "shop/one", ZONE),)

    settled, open_zone = plan({"a": [starter], "b": [free]}), plan({"a": [starter], "bc": [free]})
    together = plan({"a": [starter, free]})

    assert (settled.breaches(), find_risks(*settled)) == ((), risk)
    assert (open_zone.breaches(), find_risks(*open_zone)) == ((), risk)
    assert (together.breaches(), find_risks(*together)) == ((), ())


def test_a_pod_that_must_be_first_may_precede_a_smaller_one_of_its_group() -> None:
    """In the order of placement the larger pod is first, although its node is the second."""
    large = pod("large", "200m", labels=WEB, affinity=(near("web"),))
    stable = {**WEB, "track": "stable"}
    own = AffinityTerm(ZONE, LabelSelector((one_of("track", "stable"),)))
    small = pod("small", "100m", labels=stable, affinity=(own,))

    assert plan({"a": [small], "b": [large]}).rules() == set()


def test_a_breach_in_every_order_is_no_risk() -> None:
    old = {"a": [pod("old", labels=WEB)]}

    assert find_risks(*plan({"b": [with_affinity("new")]}, old)) == ()


def test_a_pod_of_the_group_out_of_reach_also_prevents_a_first_pod() -> None:
    """kube-scheduler checks whether such a pod exists, not whether its domain is allowed."""
    tied = replace(
        with_affinity("new"),
        rules=replace(with_affinity("new").rules, node_selector=(in_zone("b"),)),
    )

    assert plan({"b": [tied]}).rules() == set()
    assert plan({"b": [tied]}, {"a": [pod("old", labels=WEB)]}).rules() == {Rule.AFFINITY}


def test_a_pod_with_an_open_label_may_be_elsewhere() -> None:
    racks = require("rack", Operator.EXISTS)
    starter, free = with_affinity("one", "rack"), pod("free", labels=WEB)

    judged = world(
        launch("l1", [starter], one_of("rack", "r1")),
        launch("l2", [free], racks),
        pods=[starter, free],
        pools=(pool("web", racks),),
    )

    assert judged.rules() == set()
    assert {risk.rule for risk in find_risks(*judged)} == {Rule.AFFINITY_START}


def test_pods_with_mutual_affinity_are_never_bound() -> None:
    """Each would have the other as neighbour, but neither can be bound first."""
    web = with_affinity("web", of="db", app="web")
    db = with_affinity("db", of="web", app="db")

    assert plan({"a": [web, db]}).rules() == {Rule.AFFINITY}


def test_a_chain_of_affinities_is_bound_one_after_another() -> None:
    first = pod("first", labels={"app": "first"})
    second = with_affinity("second", of="first", app="second")
    third = with_affinity("third", of="second", app="third")

    assert plan({"a": [third, second, first]}).rules() == set()


def test_affinity_does_not_hold_on_a_node_without_the_label() -> None:
    assert plan({"a": [with_affinity("one", "rack"), pod("host", labels=WEB)]}).rules() == {
        Rule.AFFINITY
    }


def test_several_terms_need_pods_that_match_all_terms() -> None:
    """kube-scheduler counts a pod for a term only if the pod matches all other terms."""
    seeker = pod("seeker", affinity=(near("web"), near("db")))
    web, db = pod("web", labels=WEB), pod("db", labels=DB)
    picky = pod(
        "picky",
        affinity=(near("web"), AffinityTerm(ZONE, LabelSelector((one_of("tier", "x"),)))),
    )
    both = pod("both", labels={**WEB, "tier": "x"})

    assert plan({"a": [picky, both]}).rules() == set()
    assert plan({"a": [seeker, web, db]}).breaches() == (
        Breach(Rule.AFFINITY_TERMS, "l-a", "shop/seeker", ZONE),
    )
    assert plan({"a": [seeker, web]}).rules() == {Rule.AFFINITY}
