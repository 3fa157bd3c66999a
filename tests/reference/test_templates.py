"""Sections 2 and 8: NodePools, their types, daemons and overlays."""

from karpy.model.constraints import PREFER_NO_SCHEDULE
from karpy.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, SPOT, ZONE
from karpy.model.records import NodeClassRef
from karpy.model.settings import MinValuesPolicy, Settings
from tests.builders import (
    FAMILY,
    ZONE_A,
    ZONE_B,
    amounts,
    catalog,
    daemon,
    exists,
    instance_type,
    is_in,
    min_values,
    offering,
    overlay,
    pod,
    pool,
    snapshot,
    taint,
    term,
    tolerate,
)
from tests.reference.answers import hosts, types_launched
from tests.reference.overlays import adjusted
from tests.reference.solver import solve
from tests.reference.templates import template_requirements


def test_pools_of_higher_weight_come_first_then_the_last_name() -> None:
    pools = [pool("a"), pool("b"), pool("c", weight=1, requirements=[is_in(FAMILY, "c")])]

    assert hosts(snapshot(pods=[pod("any")], pools=pools)) == {"any": "c#0"}
    assert hosts(snapshot(pods=[pod("m", selector={FAMILY: "m"})], pools=pools)) == {"m": "b#0"}


def test_static_unready_and_deleting_pools_take_no_part() -> None:
    pools = [pool("a", static=True), pool("b", ready=False), pool("c", deleting=True)]

    assert hosts(snapshot(pods=[pod("p")], pools=pools)) == {"p": "NO_POOL"}


def test_a_template_promises_its_pool_its_class_and_a_healthy_start() -> None:
    made = template_requirements(pool("p", labels={"team": "red"}))

    assert sorted(str(each) for each in made.values()) == [
        "example.com/testnodeclass In [default]",
        "karpenter.sh/initialized In [true]",
        "karpenter.sh/nodepool In [p]",
        "karpenter.sh/registered In [true]",
        "team In [red]",
    ]


def test_a_class_without_a_kind_gives_no_label() -> None:
    made = template_requirements(pool("p", node_class=NodeClassRef("example.com", "", "x")))

    assert not any(key.startswith("example.com/") for key in made)


def test_a_launch_omits_requirements_that_only_helped_to_decide() -> None:
    launch = solve(snapshot(pods=[pod("p", selector={ZONE: ZONE_A})])).launches[0]

    assert sorted(str(each) for each in launch.requirements.values()) == [
        "example.com/testnodeclass In [default]",
        "karpenter.sh/nodepool In [default]",
        "topology.kubernetes.io/zone In [zone-a]",
    ]


def test_a_type_needs_an_available_offering_that_the_pool_allows() -> None:
    types = [
        instance_type("sold-out", offerings=[offering(ZONE_A, SPOT, available=False)]),
        instance_type("on-demand", zones=[ZONE_A]),
        instance_type("spot", offerings=[offering(ZONE_B, SPOT)]),
    ]
    spot_only = pool(requirements=[is_in(CAPACITY_TYPE, SPOT)])
    cluster = snapshot(pods=[pod("p")], pools=[spot_only], catalog=catalog(types))

    assert types_launched(cluster) == [["spot"]]


def test_strict_min_values_empty_a_pool_and_best_effort_lowers_them() -> None:
    picky = pool(requirements=[min_values(exists(FAMILY), 4)])
    lenient = Settings(min_values_policy=MinValuesPolicy.BEST_EFFORT)

    assert hosts(snapshot(pods=[pod("p")], pools=[picky])) == {"p": "NO_HOST"}

    launch = solve(snapshot(pods=[pod("p")], pools=[picky], settings=lenient)).launches[0]
    assert (launch.requirements[FAMILY].min_values, launch.is_min_values_relaxed) == (3, True)


def test_overrides_replace_name_by_name() -> None:
    """Golden: 4 CPU, 16Gi, overhead 100m and 1Gi; override ext 12, overhead 3Gi."""
    kind = instance_type(
        "t",
        overhead={"cpu": "100m", "memory": "1Gi"},
        offerings=[
            offering(ZONE_A, dollars=1),
            offering(ZONE_B, dollars=2, capacity={"ext": "12"}, overhead={"memory": "3Gi"}),
        ],
    )
    fitting = pod("fits", cpu="3900m", memory="13Gi", more={"ext": "12"})
    too_big = pod("too-big", cpu="100m", memory="13313Mi", more={"ext": "1"})
    plain = pod("plain", memory="15Gi")
    cluster = snapshot(pods=[fitting, too_big, plain], catalog=catalog([kind]))

    assert hosts(cluster) == {"fits": "default#0", "too-big": "NO_HOST", "plain": "default#1"}


def test_daemons_take_their_room_where_they_will_run() -> None:
    small, large = instance_type("small", cpu="2"), instance_type("large", cpu="4", dollars=2)
    agent = daemon("agent", cpu="1", selector={INSTANCE_TYPE: "small"})
    both, batch = catalog([small, large]), [pod("p", cpu="1500m")]

    assert types_launched(snapshot(pods=batch, catalog=both)) == [["small", "large"]]
    assert types_launched(snapshot(pods=batch, catalog=both, daemons=[agent])) == [["large"]]


def test_daemons_tolerate_soft_taints_and_may_choose_among_terms() -> None:
    tainted = pool(taints=[taint("soft", effect=PREFER_NO_SCHEDULE), taint("hard")])
    agents = [
        daemon("tolerant", cpu="1", tolerations=[tolerate("hard")]),
        daemon(
            "either",
            cpu="1",
            terms=[term(is_in("x", "y")), term(is_in("kubernetes.io/os", "linux"))],
            tolerations=[tolerate()],
        ),
        daemon("elsewhere", cpu="1", tolerations=[tolerate("soft")]),
        daemon(
            "healthy",
            cpu="1",
            selector={"karpenter.sh/initialized": "true"},
            tolerations=[tolerate("hard")],
        ),
    ]
    cluster = snapshot(
        pods=[pod("p", cpu="1", memory="1Gi", tolerations=[tolerate()])],
        pools=[tainted],
        daemons=agents,
        catalog=catalog([instance_type("t", cpu="4")]),
    )

    launch = solve(cluster).launches[0]

    assert launch.resources == {**amounts(cpu="4", memory="1408Mi"), "pods": 4}


def test_prices_are_adjusted_as_written() -> None:
    ten = 10_000_000
    changes = ("-10%", "+5", "-15", "-100%", "3.2")

    made = [adjusted(ten, overlay("o", price_adjustment=change)) for change in changes]

    assert made == [9_000_000, 15_000_000, 0, 0, 3_200_000]
    assert adjusted(1_500_000, overlay("o", price_adjustment="-25%")) == 1_125_000
    assert adjusted(7, overlay("o", price="0.5")) == 500_000


def test_the_heavier_overlay_wins_and_equals_conflict() -> None:
    """Of two overlays with equal weight the later one (first by name) does not apply at all."""
    types = [instance_type("x", dollars=1), instance_type("y", dollars=2)]
    settings = Settings(node_overlay=True)
    cluster = snapshot(
        pods=[pod("p", more={"example.com/dongle": "1"})],
        catalog=catalog(types),
        settings=settings,
        overlays=[
            overlay("b", is_in(INSTANCE_TYPE, "x"), price="0.5", weight=1),
            overlay("a", price="0.1", capacity={"example.com/dongle": "1"}, weight=1),
            overlay("c", capacity={"example.com/dongle": "2"}),
        ],
    )

    launch = solve(cluster).launches[0]

    assert [(each.instance_type, each.price) for each in launch.options] == [
        ("x", 500_000),
        ("y", 2_000_000),
    ]


def test_an_overlay_needs_its_keys_defined_and_touches_only_its_offerings() -> None:
    kind = instance_type("t", zones=[ZONE_A, ZONE_B], dollars=1)
    cluster = snapshot(
        pods=[pod("p")],
        catalog=catalog([kind]),
        settings=Settings(node_overlay=True),
        overlays=[
            overlay("nowhere", is_in("team", "red"), price="0.01", weight=9),
            overlay("here", is_in(ZONE, ZONE_B), is_in(CAPACITY_TYPE, ON_DEMAND), price="0.9"),
        ],
    )

    option = solve(cluster).launches[0].options[0]

    assert (option.zone, option.price) == (ZONE_B, 900_000)
