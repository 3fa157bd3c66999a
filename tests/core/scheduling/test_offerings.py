"""Sections 2 and 9: what is on sale, and what a launch asks for."""

import pytest
from msgspec.structs import replace

from karpy.model.constraints import PREFER_NO_SCHEDULE
from karpy.model.instances import LAUNCH_OPTIONS_MAX, InstanceType
from karpy.model.labels import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, NODE_POOL, ON_DEMAND, SPOT, ZONE
from karpy.model.pods import DaemonSet, PodDisruption
from karpy.model.records import NodeClassRef
from karpy.model.verdicts import Launch, LaunchOption
from tests.builders import (
    FAMILY,
    NODE_CLASS_LABEL,
    ZONE_A,
    ZONE_B,
    ZONE_C,
    amounts,
    catalog,
    daemon,
    instance_type,
    is_in,
    offering,
    pod,
    pods,
    pool,
    snapshot,
    taint,
    term,
    tolerate,
)
from tests.core.scheduling.answers import (
    decide_checked,
    hosts,
    only_launch,
    pods_launched,
    types_launched,
)


def test_a_launch_says_everything_the_cloud_must_know() -> None:
    """The labels that only helped to decide are left out."""
    cluster = snapshot(
        pods=[
            pod("b", cpu="1", memory="1Gi"),
            pod("a", cpu="2", memory="1Gi", selector={ARCH: "amd64"}),
        ],
        pools=[pool("web", labels={"team": "red"}, requirements=[is_in(CAPACITY_TYPE, SPOT)])],
        catalog=catalog([instance_type("t", dollars=1, spot_dollars=0.3, zones=[ZONE_B])]),
    )

    verdict = decide_checked(cluster)

    assert verdict.launches == (
        Launch(
            name="web-0",
            pool="web",
            pods=("default/a", "default/b"),
            requirements={
                NODE_CLASS_LABEL: is_in(NODE_CLASS_LABEL, "default"),
                CAPACITY_TYPE: is_in(CAPACITY_TYPE, SPOT),
                NODE_POOL: is_in(NODE_POOL, "web"),
                ARCH: is_in(ARCH, "amd64"),
                "team": is_in("team", "red"),
            },
            resources=amounts(cpu="3", memory="2Gi", pods="2"),
            options=(LaunchOption("t", 300_000, ZONE_B, SPOT),),
        ),
    )
    assert verdict.price == 300_000


def test_an_incomplete_class_reference_gives_no_label() -> None:
    launch = only_launch(
        snapshot(pods=[pod("p")], pools=[pool(node_class=NodeClassRef("example.com", "", "x"))])
    )

    assert sorted(launch.requirements) == [NODE_POOL]


# --- options ---------------------------------------------------------------------------------


def test_options_are_ordered_by_price_then_by_name() -> None:
    types = [
        instance_type("b", dollars=1),
        instance_type("c", dollars=0.5),
        instance_type("a", dollars=1),
    ]

    assert types_launched(snapshot(pods=[pod("p")], catalog=catalog(types))) == [["c", "a", "b"]]


def test_an_option_is_the_cheapest_offering_then_by_zone_then_by_capacity_type() -> None:
    kind = instance_type(
        "t",
        offerings=[
            offering(ZONE_C, ON_DEMAND, 0.5),
            offering(ZONE_B, SPOT, 0.5),
            offering(ZONE_B, ON_DEMAND, 0.5),
            offering(ZONE_A, ON_DEMAND, 0.6),
            offering(ZONE_A, SPOT, 0.1, available=False),
        ],
    )

    launch = only_launch(snapshot(pods=[pod("p")], catalog=catalog([kind])))

    assert launch.options == (LaunchOption("t", 500_000, ZONE_B, ON_DEMAND),)


def test_only_offerings_the_claim_allows_are_options() -> None:
    kind = instance_type("t", offerings=[offering(ZONE_A, SPOT, 0.1), offering(ZONE_B, SPOT, 0.2)])
    cluster = snapshot(pods=[pod("p", selector={ZONE: ZONE_B})], catalog=catalog([kind]))

    assert only_launch(cluster).options == (LaunchOption("t", 200_000, ZONE_B, SPOT),)


def test_at_most_600_options_the_cheapest() -> None:
    types = [instance_type(f"t{i:03}", dollars=1000 - i) for i in range(LAUNCH_OPTIONS_MAX + 50)]

    launch = only_launch(snapshot(pods=[pod("p")], catalog=catalog(types)))

    assert len(launch.options) == LAUNCH_OPTIONS_MAX
    assert launch.options[0] == LaunchOption("t649", 351_000_000, ZONE_A, ON_DEMAND)
    assert launch.options[-1].instance_type == "t050"


@pytest.mark.parametrize(
    ("available", "left", "reserves"), [(True, 3, True), (True, 0, False), (False, 3, False)]
)
def test_the_golden_cases_of_what_can_be_launched(
    *, available: bool, left: int, reserves: bool
) -> None:
    kind = instance_type(
        "t",
        offerings=[
            offering(dollars=0.1, reservation="cr", left=left, available=available),
            offering(ZONE_A, ON_DEMAND, 1),
        ],
    )

    launch = only_launch(snapshot(pods=[pod("p")], catalog=catalog([kind])))

    assert launch.price == (100_000 if reserves else 1_000_000)


# --- what belongs to a pool ------------------------------------------------------------------


def test_a_type_needs_an_available_offering_that_the_pool_allows() -> None:
    types = [
        instance_type("sold-out", offerings=[offering(ZONE_A, SPOT, available=False)]),
        instance_type("on-demand", zones=[ZONE_A]),
        instance_type("spot", offerings=[offering(ZONE_B, SPOT)]),
    ]
    spot_only = pool(requirements=[is_in(CAPACITY_TYPE, SPOT)])

    assert types_launched(snapshot(pods=[pod("p")], pools=[spot_only], catalog=catalog(types))) == [
        ["spot"]
    ]


def test_an_offering_must_suit_zone_and_capacity_type_together() -> None:
    """The type is sold in both zones and both ways, but not spot in zone-b."""
    kind = instance_type("t", offerings=[offering(ZONE_A, SPOT), offering(ZONE_B, ON_DEMAND)])
    picky = pod("p", selector={ZONE: ZONE_B, CAPACITY_TYPE: SPOT})

    assert hosts(snapshot(pods=[picky], catalog=catalog([kind]))) == {"p": "NO_HOST"}


def test_a_pool_may_have_types_of_its_own() -> None:
    cluster = snapshot(
        pods=[pod("p")],
        pools=[pool("a", weight=1), pool("b")],
        catalog=catalog([instance_type("shared")], by_pool={"a": [instance_type("own")]}),
    )

    assert types_launched(cluster) == [["own"]]


def test_types_shrink_as_pods_come() -> None:
    types = [instance_type("small", cpu="2", dollars=1), instance_type("large", cpu="8", dollars=2)]
    batch = pods("p", 3, cpu="900m")

    assert types_launched(snapshot(pods=batch[:2], catalog=catalog(types))) == [["small", "large"]]
    assert types_launched(snapshot(pods=batch, catalog=catalog(types))) == [["large"]]


# --- overrides -------------------------------------------------------------------------------


def _overridden() -> InstanceType:
    return instance_type(
        "t",
        overhead={"cpu": "100m", "memory": "1Gi"},
        offerings=[
            offering(ZONE_A, dollars=1),
            offering(ZONE_B, dollars=2, capacity={"ext": "12"}, overhead={"memory": "3Gi"}),
        ],
    )


def test_the_golden_override_replaces_name_by_name() -> None:
    """4 CPU, 16Gi, overhead 100m and 1Gi; with the override 3900m, 13Gi, ext 12 are left."""
    exact = pod("exact", cpu="3900m", memory="13Gi", more={"ext": "12"})
    cpu, memory, ext = (
        pod("cpu", cpu="3901m", memory="1Gi", more={"ext": "1"}),
        pod("memory", cpu="1m", memory="13313Mi", more={"ext": "1"}),
        pod("ext", cpu="1m", memory="1Mi", more={"ext": "13"}),
    )
    plain = pod("plain", cpu="2m", memory="15Gi")

    cluster = snapshot(pods=[exact, cpu, memory, ext, plain], catalog=catalog([_overridden()]))

    assert hosts(cluster) == {
        "cpu": "NO_HOST",
        "exact": "default-0",
        "ext": "NO_HOST",
        "memory": "NO_HOST",
        "plain": "default-1",
    }


def test_pods_that_need_an_override_are_launched_where_it_is() -> None:
    cluster = snapshot(pods=[pod("p", more={"ext": "1"})], catalog=catalog([_overridden()]))

    assert only_launch(cluster).options == (LaunchOption("t", 2_000_000, ZONE_B, ON_DEMAND),)


def test_a_type_fits_if_one_of_its_forms_does_and_is_an_option_once() -> None:
    launch = only_launch(snapshot(pods=[pod("p")], catalog=catalog([_overridden()])))

    assert launch.options == (LaunchOption("t", 1_000_000, ZONE_A, ON_DEMAND),)


# --- daemons ---------------------------------------------------------------------------------


def test_daemons_take_their_room_where_they_will_run() -> None:
    small, large = instance_type("small", cpu="2"), instance_type("large", cpu="4", dollars=2)
    agent = daemon("agent", cpu="1", selector={INSTANCE_TYPE: "small"})
    both, batch = catalog([small, large]), [pod("p", cpu="1500m")]

    assert types_launched(snapshot(pods=batch, catalog=both)) == [["small", "large"]]
    assert types_launched(snapshot(pods=batch, catalog=both, daemons=[agent])) == [["large"]]


@pytest.mark.parametrize(
    ("agent", "counts"),
    [
        (daemon("d", cpu="1", tolerations=[tolerate("hard")]), True),
        (daemon("d", cpu="1", tolerations=[tolerate("soft")]), False),
        (
            daemon(
                "d",
                cpu="1",
                tolerations=[tolerate()],
                selector={"karpenter.sh/initialized": "true"},
            ),
            True,
        ),
        (daemon("d", cpu="1", tolerations=[tolerate()], selector={"team": "red"}), False),
        (daemon("d", cpu="1", tolerations=[tolerate()], selector={ZONE: ZONE_C}), True),
        (
            daemon(
                "d",
                cpu="1",
                tolerations=[tolerate()],
                terms=[term(is_in("x", "y")), term(is_in(ARCH, "amd64"))],
            ),
            True,
        ),
        (
            daemon("d", cpu="1", tolerations=[tolerate()], prefers=[(1, term(is_in("x", "y")))]),
            True,
        ),
    ],
)
def test_daemons_count_if_they_tolerate_the_taints_and_one_of_their_terms_can_match(
    agent: DaemonSet, *, counts: bool
) -> None:
    """Soft taints are always tolerated; startup taints do not count."""
    tainted = pool(
        taints=[taint("soft", effect=PREFER_NO_SCHEDULE), taint("hard")],
        startup_taints=[taint("booting")],
    )
    cluster = snapshot(
        pods=[pod("p", cpu="1", tolerations=[tolerate()])],
        pools=[tainted],
        daemons=[agent],
        catalog=catalog([instance_type("t", cpu="4")]),
    )

    assert only_launch(cluster).resources["cpu"] == (2000 if counts else 1000)


def test_a_launch_asks_for_the_least_that_daemons_take_on_the_types_left() -> None:
    agents = [
        daemon("everywhere", cpu="100m", memory="10Mi"),
        daemon("on-c", cpu="1", memory="1Gi", selector={FAMILY: "c"}),
    ]
    cluster = snapshot(pods=[pod("p", cpu="1", memory="1Gi")], daemons=agents)
    only_c = snapshot(
        pods=[pod("p", cpu="1", memory="1Gi", selector={FAMILY: "c"})], daemons=agents
    )

    assert only_launch(cluster).resources == amounts(cpu="1100m", memory="1034Mi", pods="2")
    assert only_launch(only_c).resources == amounts(cpu="2100m", memory="2058Mi", pods="3")


def test_daemons_take_their_room_once_not_with_every_pod() -> None:
    cluster = snapshot(
        pods=pods("p", 3, cpu="1"),
        daemons=[daemon("agent", cpu="1")],
        catalog=catalog([instance_type("t", cpu="4")]),
    )

    assert pods_launched(cluster) == [["p-0", "p-1", "p-2"]]


def test_daemons_that_leave_nothing_exclude_a_type() -> None:
    cluster = snapshot(
        pods=[pod("p", cpu="0")],
        daemons=[daemon("agent", cpu="3")],
        catalog=catalog([instance_type("small", cpu="2"), instance_type("large", cpu="4")]),
    )

    assert types_launched(cluster) == [["large"]]


@pytest.mark.parametrize(
    "agent",
    [daemon("agent", cpu="1000"), daemon("agent", more={"example.com/gpu": "1"})],
    ids=["too-large", "of-another-kind"],
)
def test_a_daemon_that_no_type_has_room_for_keeps_no_pod_from_a_node(agent: DaemonSet) -> None:
    cluster = snapshot(pods=[pod("p", cpu="1")], daemons=[agent])

    assert pods_launched(cluster) == [["p"]]


def test_of_daemons_that_have_no_room_together_the_critical_ones_count() -> None:
    critical = daemon("network", cpu="3")
    critical = replace(
        critical,
        pod=replace(critical.pod, disruption=PodDisruption(priority_class="system-node-critical")),
    )
    cluster = snapshot(
        pods=pods("p", 2, cpu="1"),
        daemons=[daemon("a-small", cpu="2"), critical],
        catalog=catalog([instance_type("t", cpu="4")]),
    )

    assert pods_launched(cluster) == [["p-0"], ["p-1"]]
