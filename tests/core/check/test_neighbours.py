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
    """Launch one node per (set of) zones for some pods, beside nodes, one per zone."""
    old = there or {}
    placed = [each for pods in where.values() for each in pods]
    running = [bound(each, f"n-{zone}") for zone, pods in old.items() for each in pods]
    launches = [launch(f"l-{z}", pods, in_zone(*z), options=[LARGE]) for z, pods in where.items()]
    given: SnapshotFields = {
        "nodes": tuple(node(f"n-{zone}", zone) for zone in old),
        **others,
    }
    return world(*launches, pods=[*placed, *running], **given)


def hermit(name: str, key: str = ZONE) -> Pod:
    return pod(name, "100m", labels=WEB, anti_affinity=(near("web", key),))


def friend(name: str, key: str = ZONE, of: str = "web", **labels: str) -> Pod:
    return pod(name, "100m", labels=labels or WEB, affinity=(near(of, key),))


# --- anti-affinity -------------------------------------------------------------------------------


def test_hermits_live_in_different_zones() -> None:
    assert plan({"a": [hermit("one")], "b": [hermit("two")]}).rules() == set()
    assert plan({"a": [hermit("one"), hermit("two")]}).breaches() == (
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


def test_two_nodes_that_may_come_up_in_one_zone_may_bring_hermits_together() -> None:
    assert plan({"a": [hermit("one")], "bc": [hermit("two")]}).rules() == set()
    assert plan({"ab": [hermit("one")], "bc": [hermit("two")]}).rules() == {Rule.ANTI_AFFINITY}


def test_hermits_share_a_zone_but_not_a_node() -> None:
    one, two = hermit("one", HOSTNAME), hermit("two", HOSTNAME)

    assert plan({"a": [one], "ab": [two]}).rules() == set()
    assert plan({"a": [one, two]}).rules() == {Rule.ANTI_AFFINITY}


def test_a_hermit_stays_away_from_those_who_are_there() -> None:
    neighbour = [pod("old", labels=WEB)]

    assert plan({"b": [hermit("new")]}, {"a": neighbour}).rules() == set()
    assert plan({"a": [hermit("new")]}, {"a": neighbour}).rules() == {Rule.ANTI_AFFINITY}


def test_a_hermit_who_is_there_keeps_newcomers_away() -> None:
    new = pod("new", labels=WEB)

    assert plan({"b": [new]}, {"a": [hermit("old")]}).rules() == set()
    assert plan({"a": [new]}, {"a": [hermit("old")]}).breaches() == (
        Breach(
            Rule.ANTI_AFFINITY, "l-a", "shop/new", f"{ZONE} a: 1 others, by the rule of shop/old"
        ),
    )


def test_hermits_who_live_together_already_are_no_breach() -> None:
    together = {"a": [hermit("one"), hermit("two")]}

    assert plan({"b": [pod("new", labels=DB)]}, together).rules() == set()


def test_a_pod_that_moves_is_no_neighbour_of_where_it_was() -> None:
    moving = bound(hermit("moving"), "n-a")
    nodes = (node("n-a", is_deleting=True),)

    judged = world(launch("l1", [moving], in_zone("a")), pods=[moving], nodes=nodes)

    assert judged.rules() == set()


def test_a_pod_of_a_going_node_that_no_plan_moves_is_a_neighbour_still() -> None:
    """It was refused before anything was tried; until it is mended, it stays."""
    stuck = bound(pod("stuck", labels=WEB, claims_devices=True), "n-a")
    new = hermit("new")
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


def test_without_the_label_there_is_no_domain_to_share() -> None:
    assert plan({"a": [hermit("one", "rack"), hermit("two", "rack")]}).rules() == set()


def test_any_value_of_an_open_label_may_be_the_same() -> None:
    racks = require("rack", Operator.EXISTS)
    pools = (pool("web", racks),)
    one, two = hermit("one", "rack"), hermit("two", "rack")
    old = bound(hermit("old", "rack"), "n1")
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
def test_a_term_is_about_its_namespaces(term: AffinityTerm, expected: set[Rule]) -> None:
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


def test_a_friend_is_in_the_zone_of_its_friends() -> None:
    old = {"a": [pod("old", labels=WEB)]}
    new = friend("new", app="client")

    assert plan({"a": [new]}, old).rules() == set()
    assert plan({"b": [new]}, old).breaches() == (Breach(Rule.AFFINITY, "l-b", "shop/new", ZONE),)


def test_a_friend_on_the_same_new_node_is_enough_in_any_zone() -> None:
    new, host = friend("new", app="client"), pod("host", labels=WEB)

    assert plan({"ab": [new, host]}).rules() == set()
    assert plan({"ab": [new], "a": [host]}).rules() == {Rule.AFFINITY}


def test_every_zone_that_is_possible_needs_a_friend() -> None:
    new = friend("new", app="client")
    hosts = [pod("h1", labels=WEB), pod("h2", labels=WEB)]

    assert plan({"ab": [new], "a": hosts[:1], "b": hosts[1:]}).rules() == set()


def test_a_friend_whose_zone_is_open_is_not_sure_to_be_near() -> None:
    new, host = friend("new", app="client"), pod("host", labels=WEB)

    assert plan({"a": [new], "bc": [host]}).rules() == {Rule.AFFINITY}


def test_friends_on_the_same_node() -> None:
    old = {"a": [pod("old", labels=WEB)]}
    new = friend("new", HOSTNAME, app="client")
    judged = plan({}, old)
    pods = (*judged.snapshot.pods, new)
    nominated = world(pods=pods, nodes=judged.snapshot.nodes, nominations={"n-a": [new]})

    assert nominated.rules() == set()
    assert plan({"a": [new]}, old).rules() == {Rule.AFFINITY}


def test_a_pod_is_not_its_own_friend_if_others_are_elsewhere() -> None:
    old = {"a": [pod("old", labels=WEB)]}

    assert plan({"a": [friend("new")]}, old).rules() == set()
    assert plan({"b": [friend("new")]}, old).rules() == {Rule.AFFINITY}


def test_a_pod_may_start_its_group_alone_or_with_others() -> None:
    assert plan({"a": [friend("one")]}).rules() == set()
    assert plan({"a": [friend("one"), friend("two")]}).rules() == set()
    assert plan({"a": [friend("one")]}, {"a": [pod("odd", labels=DB)]}).rules() == set()


def test_a_group_is_started_in_one_zone_only() -> None:
    assert plan({"a": [friend("one")], "b": [friend("two")]}).rules() == {Rule.AFFINITY}


def test_a_pod_starts_its_group_even_where_the_zone_is_open() -> None:
    """Wherever the node comes up, that is where the group is."""
    assert plan({"ab": [friend("one"), friend("two")]}).rules() == set()


def test_a_pod_that_must_be_first_takes_a_risk() -> None:
    """The other may be bound first, elsewhere, and then this one has nowhere to go."""
    starter, free = friend("one"), pod("free", labels=WEB)
    risk = (Breach(Rule.AFFINITY_START, "l-a", "shop/one", ZONE),)

    settled, open_zone = plan({"a": [starter], "b": [free]}), plan({"a": [starter], "bc": [free]})
    together = plan({"a": [starter, free]})

    assert (settled.breaches(), find_risks(*settled)) == ((), risk)
    assert (open_zone.breaches(), find_risks(*open_zone)) == ((), risk)
    assert (together.breaches(), find_risks(*together)) == ((), ())


def test_who_must_be_first_may_come_before_others_who_start_a_group_of_their_own() -> None:
    """As they were placed: the larger first, though its node is the second of the plan."""
    large = pod("large", "200m", labels=WEB, affinity=(near("web"),))
    stable = {**WEB, "track": "stable"}
    own = AffinityTerm(ZONE, LabelSelector((one_of("track", "stable"),)))
    small = pod("small", "100m", labels=stable, affinity=(own,))

    assert plan({"a": [small], "b": [large]}).rules() == set()


def test_what_is_wrong_in_any_order_is_no_risk() -> None:
    old = {"a": [pod("old", labels=WEB)]}

    assert find_risks(*plan({"b": [friend("new")]}, old)) == ()


def test_even_what_a_pod_cannot_reach_keeps_it_from_starting_its_group() -> None:
    """kube-scheduler asks whether such a pod is anywhere, not whether this one could join it."""
    tied = replace(friend("new"), rules=replace(friend("new").rules, node_selector=(in_zone("b"),)))

    assert plan({"b": [tied]}).rules() == set()
    assert plan({"b": [tied]}, {"a": [pod("old", labels=WEB)]}).rules() == {Rule.AFFINITY}


def test_an_open_label_may_be_elsewhere() -> None:
    racks = require("rack", Operator.EXISTS)
    starter, free = friend("one", "rack"), pod("free", labels=WEB)

    judged = world(
        launch("l1", [starter], one_of("rack", "r1")),
        launch("l2", [free], racks),
        pods=[starter, free],
        pools=(pool("web", racks),),
    )

    assert judged.rules() == set()
    assert {risk.rule for risk in find_risks(*judged)} == {Rule.AFFINITY_START}


def test_pods_that_wait_for_each_other_never_arrive() -> None:
    """Each finds the other in the end, but neither can be bound first."""
    web = friend("web", of="db", app="web")
    db = friend("db", of="web", app="db")

    assert plan({"a": [web, db]}).rules() == {Rule.AFFINITY}


def test_a_chain_of_friends_arrives_one_after_another() -> None:
    first = pod("first", labels={"app": "first"})
    second = friend("second", of="first", app="second")
    third = friend("third", of="second", app="third")

    assert plan({"a": [third, second, first]}).rules() == set()


def test_affinity_never_holds_on_a_node_without_the_topology_label() -> None:
    assert plan({"a": [friend("one", "rack"), pod("host", labels=WEB)]}).rules() == {Rule.AFFINITY}


def test_several_terms_want_pods_that_match_all_of_them() -> None:
    """kube-scheduler counts a pod for a term only if it matches the other terms, too."""
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
