from typing import Final

from msgspec.structs import replace

from karpy.core.check.alone import find_hosts
from karpy.model.constraints import NodeTerm
from karpy.model.labels import CAPACITY_TYPE, ON_DEMAND, RESERVED, SPOT
from karpy.model.pods import PodVolume
from karpy.model.requirements import Operator, one_of, require
from karpy.model.settings import ReservedMode, Settings
from karpy.model.storage import PersistentVolume, PersistentVolumeClaim, Storage
from karpy.model.verdicts import Launch
from tests.core.check.builders import (
    LARGE,
    RESERVATION,
    RESERVED_IN_A,
    bound,
    catalog,
    even,
    in_zone,
    instance_type,
    launch,
    near,
    node,
    offering,
    option,
    pod,
    pool,
    world,
)

WEB: Final = {"app": "web"}
LARGE_ONE: Final = instance_type("large", 8, [offering("a", 800), offering("b", 800)])
SHY: Final = require("rack", Operator.NOT_IN, ["r9"])


def test_a_launch_into_a_reservation_may_be_of_any_capacity_type_to_the_end() -> None:
    """The law looks at what the claim says, and it says `reserved` only when it is launched."""
    both = instance_type("large", 8, [RESERVED_IN_A, offering("a", 800, SPOT)])
    hermit = pod("hermit", anti_affinity=(near("web", CAPACITY_TYPE),))
    web = pod("web", labels=WEB)

    def kinds_left(its: Launch) -> set[str]:
        settings = Settings(reserved_mode=ReservedMode.FALLBACK)
        judged = world(
            its, pods=[hermit, web], refused=[web], catalog=catalog(both), settings=settings
        )
        assert judged.rules() == set()
        return {host.capacity_type for host in find_hosts(*judged, web.key)}

    paid = (one_of(CAPACITY_TYPE, RESERVED), one_of(RESERVATION, "r-1"))
    cheap = [option(both, "a", RESERVED)]
    reserved = launch("l1", [hermit], *paid, options=cheap, reservations=("r-1",))
    spot = launch("l1", [hermit], one_of(CAPACITY_TYPE, SPOT), options=[option(both, "a", SPOT)])

    assert kinds_left(reserved) == set()
    assert kinds_left(spot) == {RESERVED}


def test_a_zone_that_another_term_reaches_is_compared_once_it_has_a_node() -> None:
    terms = (NodeTerm((in_zone("a"),)), NodeTerm((in_zone("b"), one_of("rack", "r1"))))
    web = pod("web", labels=WEB, required_node_terms=terms, spreads=(even("web"),))
    old = bound(pod("old", labels=WEB), "n-a")

    def zones_left(*racks: str) -> set[str]:
        nodes = (node("n-a", "a"), *(node("n-b", "b", labels={"rack": rack}) for rack in racks))
        judged = world(pods=[web, old], refused=[web], nodes=nodes)
        return {host.zone for host in find_hosts(*judged, web.key)}

    assert zones_left() == {"a"}
    assert zones_left("r1") == set()
    assert zones_left("r2") == {"a"}


def test_a_launch_counts_for_a_spread_unless_its_requirements_rule_that_out() -> None:
    """Be it that no type on sale would pass the filter: the law does not look at types."""
    terms = (NodeTerm((one_of(CAPACITY_TYPE, SPOT),)), NodeTerm((one_of("rack", "r1"),)))
    web = pod("web", labels=WEB, required_node_terms=terms, spreads=(even("web"),))
    placed = pod("placed", labels=WEB)

    def zones_left(*kinds: str) -> set[str]:
        asked = [one_of(CAPACITY_TYPE, *kinds)] if kinds else []
        its = launch("l1", [placed], in_zone("a"), *asked, options=[LARGE])
        pools = (pool(), pool("racked", one_of("rack", "r1")))
        judged = world(its, pods=[web, placed], refused=[web], pools=pools)
        return {host.zone for host in find_hosts(*judged, web.key)}

    assert zones_left() == {"b", "c"}
    assert zones_left("on-demand") == {"a", "b", "c"}


def test_a_launch_fills_a_domain_by_what_its_claim_says_not_by_what_its_types_bring() -> None:
    """All types are on-demand; the law counts the launch only if the claim says so."""
    bought = NodeTerm((one_of(CAPACITY_TYPE, SPOT, ON_DEMAND),))
    web = pod("web", labels=WEB, required_node_terms=(bought,), spreads=(even("web"),))
    old, placed = bound(pod("old", labels=WEB), "n-a"), pod("placed", labels=WEB)

    def zones_left(*kinds: str) -> set[str]:
        asked = [one_of(CAPACITY_TYPE, *kinds)] if kinds else []
        its = launch("l1", [placed], in_zone("b"), *asked, options=[option(LARGE_ONE, "b")])
        judged = world(
            its,
            pods=[web, old, placed],
            refused=[web],
            pools=(pool("web", in_zone("a", "b")),),
            nodes=(node("n-a", "a", labels={CAPACITY_TYPE: ON_DEMAND}),),
            catalog=catalog(LARGE_ONE),
        )
        return {host.zone for host in find_hosts(*judged, web.key)}

    assert zones_left() == set()
    assert zones_left(ON_DEMAND) == {"a", "b"}


def test_a_key_that_the_pod_only_shuns_has_no_domains() -> None:
    racked = pool("racked", one_of("rack", "r1"), limits={"nodes": 0})
    web = pod("web", labels=WEB, node_selector=(SHY,), spreads=(even("web", "rack"),))

    judged = world(pods=[web], refused=[web], pools=(pool(), racked))

    assert {host.pool for host in find_hosts(*judged, web.key)} == set()


def test_a_key_that_the_pod_only_shuns_is_not_defined_for_its_volumes() -> None:
    term = NodeTerm((one_of("rack", "r1"),))
    disks = Storage(
        {"shop/data": PersistentVolumeClaim("data", "shop", "pv-1", is_bind_completed=True)},
        {"pv-1": PersistentVolume("pv-1", "ebs", (term,))},
    )
    db = pod("db", node_selector=(SHY,), volumes=(PodVolume("disk", "data"),))

    judged = world(pods=[db], refused=[db], storage=disks)
    racked = world(pods=[db], refused=[db], storage=disks, pools=(pool("web", *term.expressions),))

    assert find_hosts(*judged, db.key) == ()
    assert find_hosts(*racked, db.key) != ()


def test_a_term_that_contradicts_itself_is_met_nowhere() -> None:
    torn = NodeTerm((one_of("rack", "r1"), one_of("rack", "r2")))
    web = pod("web", required_node_terms=(torn,))
    either = replace(web, rules=replace(web.rules, required_node_terms=(torn, NodeTerm((SHY,)))))

    assert find_hosts(*world(pods=[web], refused=[web]), web.key) == ()
    assert find_hosts(*world(pods=[either], refused=[either]), web.key) != ()
