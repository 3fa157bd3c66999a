"""Section 5: on which nodes a spread counts pods, and which domains it compares."""

from karpy.model.constraints import PREFER_NO_SCHEDULE
from karpy.model.labels import ZONE
from tests.builders import (
    FAMILY,
    ZONE_A,
    ZONE_B,
    ZONE_C,
    is_in,
    node,
    pod,
    pool,
    snapshot,
    spread,
    taint,
    term,
)
from tests.reference.answers import hosts, values_launched

WEB = {"app": "web"}


def test_nodes_with_soft_taints_count_even_if_taints_are_honoured() -> None:
    """Karpenter leaves them out; kube-scheduler does not."""
    nodes = [node("n", zone=ZONE_A, taints=[taint("slow", effect=PREFER_NO_SCHEDULE)])]
    rule = spread(ZONE, WEB, honors_taints=True)
    batch = [pod("old", labels=WEB, on="n"), pod("p", labels=WEB, spreads=[rule])]

    assert values_launched(snapshot(pods=batch, nodes=nodes), ZONE) == [[ZONE_B]]


def test_zones_behind_a_soft_taint_are_domains_even_if_taints_are_honoured() -> None:
    soft = taint("slow", effect=PREFER_NO_SCHEDULE)
    pools = [
        pool("swift", requirements=[is_in(ZONE, ZONE_A)], weight=1),
        pool("slow", requirements=[is_in(ZONE, ZONE_B)], taints=[soft]),
    ]
    rule = spread(ZONE, WEB, honors_taints=True)
    batch = [pod(name, labels=WEB, spreads=[rule]) for name in ("a", "b")]

    assert hosts(snapshot(pods=batch, pools=pools)) == {"a": "swift#0", "b": "slow#1"}


def test_the_minimum_is_also_taken_over_nodes_that_pass_by_another_term() -> None:
    """The pod is placed by its second term, but kube-scheduler sees zone-c by the first."""
    terms = [term(is_in("rack", "r1")), term(is_in(ZONE, ZONE_A))]
    web = pod("p", labels=WEB, terms=terms, spreads=[spread(ZONE, WEB)])
    old = pod("old", labels=WEB, on="a")

    def placed(rack: str) -> dict[str, str]:
        nodes = [
            node("a", zone=ZONE_A, cpu="0"),
            node("c", zone=ZONE_C, cpu="0", labels={"rack": rack}),
        ]
        return hosts(snapshot(pods=[old, web], nodes=nodes))

    assert placed("r1") == {"p": "NO_HOST"}
    assert placed("r2") == {"p": "default#0"}


def test_a_term_that_contradicts_itself_lets_no_node_pass() -> None:
    """What is left of it is not DoesNotExist: the first pod's node counts for nothing here."""
    terms = [term(is_in("rack", "r1"), is_in("rack", "r2")), term(is_in(FAMILY, "c"))]
    first = pod("first", cpu="2", labels=WEB, selector={ZONE: ZONE_A, FAMILY: "m"})
    second = pod("second", labels=WEB, terms=terms, spreads=[spread(ZONE, WEB)])

    assert values_launched(snapshot(pods=[first, second]), ZONE) == [[ZONE_A], [ZONE_A]]
