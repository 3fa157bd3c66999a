from collections.abc import Iterable
from typing import Final, NamedTuple, Unpack

import pytest
from msgspec.structs import replace

from karpy.core.check.alone import PossibleHost, find_hosts, why_not_alone
from karpy.core.check.breaches import Rule
from karpy.model.constraints import NO_SCHEDULE, AffinityTerm, NodeTerm, Taint, Toleration
from karpy.model.labels import (
    ARCH,
    CAPACITY_TYPE,
    HOSTNAME,
    INSTANCE_TYPE,
    ON_DEMAND,
    RESERVED,
    SPOT,
)
from karpy.model.pods import HostPort, Pod, PodVolume
from karpy.model.requirements import Operator, one_of, require
from karpy.model.settings import MinValuesPolicy, ReservedMode, Settings
from karpy.model.storage import (
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolume,
    PersistentVolumeClaim,
    Storage,
    StorageClass,
)
from karpy.model.verdicts import Launch
from tests.core.check.builders import (
    LARGE,
    MEDIUM,
    RESERVATION,
    RESERVED_IN_A,
    amounts,
    app,
    bound,
    catalog,
    daemon,
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
from tests.core.check.fields import RuleFields, SnapshotFields

WEB: Final = {"app": "web"}
ONLY_A: Final = (pool("web", in_zone("a")),)
TAINT: Final = Taint("gpu", NO_SCHEDULE)
LARGE_ONE: Final = instance_type("large", 8, [offering("a", 800), offering("b", 800)])
SHY: Final = require("rack", Operator.NOT_IN, ["r9"])


def why(
    refused_pod: Pod,
    *launches: Launch,
    pods: Iterable[Pod] = (),
    **snapshot: Unpack[SnapshotFields],
) -> tuple[Rule, ...] | None:
    """Return why a refused pod could have no node beside a plan."""
    judged = world(*launches, pods=[refused_pod, *pods], refused=[refused_pod], **snapshot)
    return why_not_alone(judged.snapshot, judged.verdict, refused_pod.key)


def hosts(
    refused_pod: Pod,
    *launches: Launch,
    pods: Iterable[Pod] = (),
    **snapshot: Unpack[SnapshotFields],
) -> set[tuple[str, str]]:
    judged = world(*launches, pods=[refused_pod, *pods], refused=[refused_pod], **snapshot)
    found = find_hosts(judged.snapshot, judged.verdict, refused_pod.key)
    return {(host.instance_type, host.zone) for host in found}


def test_a_pod_that_fits_could_have_a_node() -> None:
    three = pod("three", "3")
    judged = world(pods=[three], refused=[three], pools=ONLY_A)

    assert why_not_alone(judged.snapshot, judged.verdict, "shop/three") is None
    assert find_hosts(judged.snapshot, judged.verdict, "shop/three") == (
        PossibleHost("web", "medium", "a", ON_DEMAND),
        PossibleHost("web", "large", "a", ON_DEMAND),
    )


def test_without_a_pool_there_is_no_node() -> None:
    assert why(pod("web"), pools=()) == ()


def test_a_pod_too_large_for_every_type_has_no_host() -> None:
    assert why(pod("huge", "9")) == (Rule.RESOURCES,)
    assert why(pod("full", "8"), daemons=(daemon("log"),)) == (Rule.RESOURCES,)


def test_a_daemon_of_another_zone_takes_room() -> None:
    """As in the solver, daemons are expected by instance type, not by zone."""
    elsewhere = daemon("log", node_selector=(in_zone("b"),))
    full = pod("full", "8", node_selector=(in_zone("a"),))

    assert why(full, daemons=(elsewhere,)) == (Rule.RESOURCES,)


def test_taints_must_be_tolerated_in_some_pool() -> None:
    tainted = (pool(taints=(TAINT,)),)
    bold = pod("bold", tolerations=(Toleration("gpu", "Exists"),))

    assert why(pod("shy"), pools=tainted) == (Rule.TAINT,)
    assert why(bold, pools=tainted) is None
    assert why(pod("shy"), pools=(*tainted, pool("other"))) is None


def test_one_required_term_is_enough() -> None:
    terms = (NodeTerm((in_zone("moon"),)), NodeTerm((in_zone("b"),)))

    assert hosts(pod("web", "3", required_node_terms=terms)) == {("medium", "b"), ("large", "b")}
    assert why(pod("web", required_node_terms=terms[:1])) == (Rule.OPTION_TYPE,)


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({"node_selector": (one_of("rack", "r1"),)}, (Rule.NODE_AFFINITY,)),
        ({"node_selector": (one_of(ARCH, "arm64"),)}, (Rule.OPTION_TYPE,)),
        ({"node_selector": (one_of(INSTANCE_TYPE, "large"),)}, None),
        ({"node_selector": (require("rack", Operator.NOT_IN, ["r1"]),)}, None),
        (
            {"required_node_terms": (NodeTerm((in_zone("a"),), has_match_fields=True),)},
            (Rule.NODE_AFFINITY,),
        ),
        ({"claims_devices": True}, (Rule.DEVICES,)),
        ({"volumes": (PodVolume("disk", "gone"),)}, (Rule.VOLUME_READY,)),
    ],
)
def test_required_labels_must_be_offered(
    rules: RuleFields, expected: tuple[Rule, ...] | None
) -> None:
    assert why(pod("web", **rules)) == expected


def test_a_named_type_is_the_only_host() -> None:
    named = pod("web", node_selector=(one_of(INSTANCE_TYPE, "large"),))

    assert hosts(named, pools=ONLY_A) == {("large", "a")}


def test_ports_of_daemons_are_taken() -> None:
    monitor = daemon("monitor", ports=(HostPort(9100),))

    assert why(pod("web", ports=(HostPort(80),)), daemons=(monitor,)) is None
    assert why(pod("web", ports=(HostPort(9100),)), daemons=(monitor,)) == (Rule.HOST_PORT,)


def disks(*zones: str) -> Storage:
    claim = PersistentVolumeClaim("data", "shop", storage_class="late")
    terms = tuple(NodeTerm((in_zone(zone),)) for zone in zones)
    late = StorageClass("late", "ebs", WAIT_FOR_FIRST_CONSUMER, terms)
    return Storage({claim.key: claim}, {}, {"late": late})


DB: Final = pod("db", "3", volumes=(PodVolume("disk", "data"),))


def test_one_alternative_of_each_volume_is_enough() -> None:
    assert hosts(DB, storage=disks("moon", "b")) == {("medium", "b"), ("large", "b")}
    assert why(DB, storage=disks("b"), pools=ONLY_A) == (Rule.VOLUME_TOPOLOGY,)
    assert why(DB, storage=disks()) is None


def test_a_type_that_attaches_nothing_is_no_host_for_volumes() -> None:
    bare = instance_type("medium", 4, volume_limits={"ebs": 0})

    assert why(DB, storage=disks(), catalog=catalog(bare)) == (Rule.VOLUME_LIMIT,)


def test_the_pod_may_use_what_the_plan_leaves_of_limits() -> None:
    other = pod("other")
    beside = launch("l1", [other], options=[MEDIUM])
    roomy, tight = (pool(limits=amounts(cpu=cpu)) for cpu in ("6", "5"))
    crowded = pool(limits=amounts(nodes="1"))

    assert hosts(pod("web"), beside, pods=[other], pools=(roomy,)) == {
        ("small", "a"),
        ("small", "b"),
        ("small", "c"),
    }
    assert why(pod("web"), beside, pods=[other], pools=(tight,)) == (Rule.LIMIT,)
    assert why(pod("web"), beside, pods=[other], pools=(crowded,)) == (Rule.LIMIT,)


def test_min_values_apply_unless_best_effort() -> None:
    picky = (pool("web", require(INSTANCE_TYPE, Operator.EXISTS, min_values=2)),)
    five = pod("five", "5")
    best_effort = Settings(min_values_policy=MinValuesPolicy.BEST_EFFORT)

    assert why(five, pools=picky) == (Rule.MIN_VALUES, Rule.RESOURCES)
    assert why(pod("three", "3"), pools=picky) is None
    assert why(five, pools=picky, settings=best_effort) is None


def test_with_strict_reservations_a_pod_may_have_to_wait() -> None:
    booked = instance_type("medium", 4, [RESERVED_IN_A, offering("a", 400)])
    fallback = Settings(reserved_mode=ReservedMode.FALLBACK)
    shop = catalog(booked)
    pools = (pool(weight=2), pool("other"))

    assert why(pod("web"), catalog=shop, pools=pools) == (Rule.RESERVATION,)
    assert why(pod("web"), catalog=shop, settings=fallback) is None
    assert why(pod("web"), catalog=shop, settings=Settings(reserved_capacity=False)) is None


def test_a_reservation_of_another_zone_does_not_matter() -> None:
    booked = instance_type("medium", 4, [RESERVED_IN_A, offering("b", 400)])
    tied = pod("web", node_selector=(in_zone("b"),))

    assert why(tied, catalog=catalog(booked)) is None


def test_a_full_reservation_cannot_be_launched() -> None:
    full = replace(RESERVED_IN_A, reservation_capacity=0)
    booked = instance_type("medium", 4, [full])

    assert full.capacity_type == RESERVED
    assert why(pod("web"), catalog=catalog(booked)) == (Rule.OPTION_TYPE,)


# --- rules between pods --------------------------------------------------------------------------


class Plan(NamedTuple):
    """Launches and their pods."""

    launches: list[Launch]
    pods: list[Pod]


def beside(*zones: str, **rules: Unpack[RuleFields]) -> Plan:
    """Place a web pod in each zone or set of zones."""
    placed = {zone: pod(f"w-{zone}", "100m", labels=WEB, **rules) for zone in zones}
    launches = [
        launch(f"l-{zone}", [each], in_zone(*zone), options=[LARGE])
        for zone, each in placed.items()
    ]
    return Plan(launches, list(placed.values()))


def zones_for(refused_pod: Pod, plan: Plan, **snapshot: Unpack[SnapshotFields]) -> set[str]:
    found = hosts(refused_pod, *plan.launches, pods=plan.pods, **snapshot)
    return {zone for _, zone in found}


def why_beside(
    refused_pod: Pod, plan: Plan, **snapshot: Unpack[SnapshotFields]
) -> tuple[Rule, ...] | None:
    return why(refused_pod, *plan.launches, pods=plan.pods, **snapshot)


def test_a_spread_allows_the_emptier_zones() -> None:
    new = pod("new", labels=WEB, spreads=(even("web"),))

    assert zones_for(new, beside("a", "b")) == {"c"}
    assert zones_for(new, beside("a", "b", "c")) == {"a", "b", "c"}
    assert zones_for(new, beside("a", "bc")) == set()


def test_a_spread_may_allow_no_zone() -> None:
    new = pod("new", labels=WEB, spreads=(even("web"),))

    assert why_beside(new, beside("a"), pools=ONLY_A, nodes=(node("n1", "b"),)) == (Rule.SPREAD,)


def test_with_too_few_domains_the_least_count_is_zero() -> None:
    new = pod("new", labels=WEB, spreads=(even("web", min_domains=4),))

    assert why_beside(new, beside("a", "b", "c")) == (Rule.SPREAD,)


def test_a_spread_compares_only_domains_within_the_pods_reach() -> None:
    new = pod("new", labels=WEB, spreads=(even("web"),), node_selector=(in_zone("a", "b"),))

    assert zones_for(new, beside("a", "b")) == {"a", "b"}


def test_a_new_node_is_a_new_hostname() -> None:
    new = pod(
        "new",
        labels=WEB,
        spreads=(even("web", HOSTNAME),),
        anti_affinity=(near("web", HOSTNAME),),
    )

    assert why_beside(new, beside("a", anti_affinity=(near("web", HOSTNAME),))) is None


def test_affinity_allows_zones_that_surely_have_a_selected_pod() -> None:
    new = pod("new", affinity=(near("web"),))

    assert zones_for(new, beside("a", "bc")) == {"a"}
    assert why_beside(new, beside("bc")) == (Rule.AFFINITY,)


def test_a_pod_may_be_first_of_its_group_if_no_pod_of_it_has_a_place() -> None:
    starter = pod("new", labels=WEB, affinity=(near("web"),))
    tied = replace(starter, rules=replace(starter.rules, node_selector=(in_zone("c"),)))

    assert zones_for(starter, beside()) == {"a", "b", "c"}
    assert why_beside(tied, beside("a", "b")) == (Rule.AFFINITY,)
    assert why_beside(starter, beside("ab")) == (Rule.AFFINITY,)


def test_affinity_by_hostname_excludes_a_new_node() -> None:
    new = pod("new", labels=WEB, affinity=(near("web", HOSTNAME),))
    follower = pod("new", affinity=(near("web", HOSTNAME),))

    assert why(new) is None
    assert why_beside(new, beside("a")) == (Rule.AFFINITY,)
    assert why(follower) == (Rule.AFFINITY,)


def test_anti_affinity_allows_zones_without_any_possible_selected_pod() -> None:
    with_anti_affinity = pod("new", anti_affinity=(near("web"),))

    assert zones_for(with_anti_affinity, beside("a")) == {"b", "c"}
    assert zones_for(with_anti_affinity, beside("ab")) == {"c"}
    assert why_beside(with_anti_affinity, beside("ab", "c")) == (Rule.ANTI_AFFINITY,)


def test_anti_affinity_of_planned_and_bound_pods_excludes_their_zones() -> None:
    new = pod("new", labels=WEB)
    plan = beside("a", anti_affinity=(near("web"),))
    old = bound(pod("old", anti_affinity=(near("web"),)), "n1")
    plan.pods.append(old)

    assert zones_for(new, plan, nodes=(node("n1", "b"),)) == {"c"}


def test_a_domain_that_is_not_offered_does_not_exist() -> None:
    new = pod("new", labels=WEB, affinity=(AffinityTerm("rack", app("web")),))

    assert why(new) == (Rule.AFFINITY,)


def test_an_open_label_may_have_any_value() -> None:
    racks = require("rack", Operator.EXISTS)
    pools = (pool("web", racks),)
    nodes = (node("n1", labels={"rack": "r1"}),)
    old = pod("old", labels=WEB)
    planned = launch("l1", [old], racks)
    with_anti_affinity = pod("new", anti_affinity=(near("web", "rack"),))
    starter = pod("new", labels=WEB, affinity=(near("web", "rack"),))

    assert why(with_anti_affinity, pools=pools, nodes=nodes) is None
    assert why(with_anti_affinity, planned, pods=[old], pools=pools, nodes=nodes) == (
        Rule.ANTI_AFFINITY,
    )
    assert why(starter, planned, pods=[old], pools=pools, nodes=nodes) == (Rule.AFFINITY,)


def test_rules_on_one_key_must_agree() -> None:
    torn = pod("new", labels=WEB, spreads=(even("web"),), anti_affinity=(near("db"),))
    db = pod("db", labels={"app": "db"})
    plan = beside("a", "b")
    plan.launches.append(launch("l-db", [db], in_zone("c")))
    plan.pods.append(db)

    assert why_beside(torn, plan) == (Rule.SPREAD,)


def test_a_launch_into_a_reservation_counts_in_every_capacity_type() -> None:
    """The solver reads the requirements of the claim, which has `reserved` only at the launch."""
    both = instance_type("large", 8, [RESERVED_IN_A, offering("a", 800, SPOT)])
    with_anti_affinity = pod("alone", anti_affinity=(near("web", CAPACITY_TYPE),))
    web = pod("web", labels=WEB)

    def kinds_left(planned: Launch) -> set[str]:
        settings = Settings(reserved_mode=ReservedMode.FALLBACK)
        judged = world(
            planned,
            pods=[with_anti_affinity, web],
            refused=[web],
            catalog=catalog(both),
            settings=settings,
        )
        assert judged.rules() == set()
        return {host.capacity_type for host in find_hosts(*judged, web.key)}

    paid = (one_of(CAPACITY_TYPE, RESERVED), one_of(RESERVATION, "r-1"))
    cheap = [option(both, "a", RESERVED)]
    reserved = launch("l1", [with_anti_affinity], *paid, options=cheap, reservations=("r-1",))
    spot = launch(
        "l1", [with_anti_affinity], one_of(CAPACITY_TYPE, SPOT), options=[option(both, "a", SPOT)]
    )

    assert kinds_left(reserved) == set()
    assert kinds_left(spot) == {RESERVED}


def test_a_zone_allowed_by_another_term_is_compared_once_it_has_a_node() -> None:
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


def test_a_launch_counts_for_a_spread_unless_its_requirements_exclude_it() -> None:
    """Even if no available type passes the filter: the solver does not read types for this."""
    terms = (NodeTerm((one_of(CAPACITY_TYPE, SPOT),)), NodeTerm((one_of("rack", "r1"),)))
    web = pod("web", labels=WEB, required_node_terms=terms, spreads=(even("web"),))
    placed = pod("placed", labels=WEB)

    def zones_left(*kinds: str) -> set[str]:
        asked = [one_of(CAPACITY_TYPE, *kinds)] if kinds else []
        planned = launch("l1", [placed], in_zone("a"), *asked, options=[LARGE])
        pools = (pool(), pool("racked", one_of("rack", "r1")))
        judged = world(planned, pods=[web, placed], refused=[web], pools=pools)
        return {host.zone for host in find_hosts(*judged, web.key)}

    assert zones_left() == {"b", "c"}
    assert zones_left("on-demand") == {"a", "b", "c"}


def test_a_launch_counts_in_a_domain_by_its_requirements_not_by_its_types() -> None:
    """All types are on-demand; the solver counts the launch only if the claim requires that."""
    bought = NodeTerm((one_of(CAPACITY_TYPE, SPOT, ON_DEMAND),))
    web = pod("web", labels=WEB, required_node_terms=(bought,), spreads=(even("web"),))
    old, placed = bound(pod("old", labels=WEB), "n-a"), pod("placed", labels=WEB)

    def zones_left(*kinds: str) -> set[str]:
        asked = [one_of(CAPACITY_TYPE, *kinds)] if kinds else []
        planned = launch("l1", [placed], in_zone("b"), *asked, options=[option(LARGE_ONE, "b")])
        judged = world(
            planned,
            pods=[web, old, placed],
            refused=[web],
            pools=(pool("web", in_zone("a", "b")),),
            nodes=(node("n-a", "a", labels={CAPACITY_TYPE: ON_DEMAND}),),
            catalog=catalog(LARGE_ONE),
        )
        return {host.zone for host in find_hosts(*judged, web.key)}

    assert zones_left() == set()
    assert zones_left(ON_DEMAND) == {"a", "b"}


def test_a_key_with_only_a_negative_requirement_has_no_domains() -> None:
    racked = pool("racked", one_of("rack", "r1"), limits={"nodes": 0})
    web = pod("web", labels=WEB, node_selector=(SHY,), spreads=(even("web", "rack"),))

    judged = world(pods=[web], refused=[web], pools=(pool(), racked))

    assert {host.pool for host in find_hosts(*judged, web.key)} == set()


def test_a_negative_requirement_does_not_define_a_key_for_volumes() -> None:
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
