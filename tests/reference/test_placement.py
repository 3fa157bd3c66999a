"""Section 3: existing nodes, claims, new claims, limits."""

from karpy.model.constraints import PREFER_NO_SCHEDULE
from karpy.model.labels import CAPACITY_TYPE, HOSTNAME, SPOT, ZONE
from karpy.model.pods import HostPort
from karpy.model.settings import MinValuesPolicy, Settings
from tests.builders import (
    CPUS,
    FAMILY,
    ZONE_B,
    above,
    absent,
    affinity,
    anti_affinity,
    below,
    catalog,
    daemon,
    daemon_pod,
    exists,
    instance_type,
    is_in,
    min_values,
    node,
    not_in,
    pod,
    pods,
    pool,
    snapshot,
    taint,
    tolerate,
)
from tests.reference.answers import hosts, types_launched
from tests.reference.solver import solve


def test_existing_nodes_come_before_claims_initialized_ones_first_then_by_name() -> None:
    cluster = snapshot(
        nodes=[
            node("a-boots", initialized=False, cpu="1"),
            node("b", cpu="1"),
            node("c", cpu="1"),
            node("d-leaves", deleting=True),
        ],
        pods=pods("p", 4, cpu="1"),
    )

    assert hosts(cluster) == {"p-0": "b", "p-1": "c", "p-2": "a-boots", "p-3": "default#0"}


def test_what_is_left_of_a_node_counts_bound_pods_and_daemons_to_come() -> None:
    cluster = snapshot(
        nodes=[node("n", cpu="4")],
        daemons=[daemon("seen", cpu="1"), daemon("coming", cpu="500m")],
        pods=[
            daemon_pod("seen-n", cpu="1", on="n"),
            pod("runs", cpu="1", on="n"),
            pod("leaves", cpu="500m", on="n", deleting=True),
            pod("done", cpu="4", on="n", phase="Succeeded"),
            pod("fits", cpu="1"),
            pod("does-not", cpu="1001m"),
        ],
    )

    assert hosts(cluster) == {"fits": "n", "does-not": "default#0"}


def test_a_node_must_carry_what_a_pod_asks_for_unless_it_asks_for_absence() -> None:
    cluster = snapshot(
        nodes=[node("n", labels={"tier": "3"}, pool="")],
        pools=[],
        pods=[
            pod("defined", selector=[above("tier", 2), below("tier", 4)]),
            pod("undefined", selector={FAMILY: "m"}),
            pod("absent", selector=[absent(FAMILY), not_in("team", "red")]),
            pod("exists", selector=[exists("team")]),
        ],
    )

    assert hosts(cluster) == {
        "absent": "n",
        "defined": "n",
        "exists": "NO_POOL",
        "undefined": "NO_POOL",
    }


def test_soft_taints_of_nodes_count_like_hard_ones() -> None:
    """They are only tolerated at the end of the ladder, and only if some pool has one."""
    soft = taint("please", effect=PREFER_NO_SCHEDULE)
    nodes = [node("n", taints=[soft])]

    assert hosts(snapshot(nodes=nodes, pods=[pod("p")], pools=[])) == {"p": "NO_POOL"}
    assert hosts(
        snapshot(nodes=nodes, pods=[pod("p")], pools=[pool(taints=[soft, taint("hard")])])
    ) == {"p": "n"}


def test_claims_are_filled_fewest_pods_first() -> None:
    """Of claims with as many pods, the oldest comes first."""
    cluster = snapshot(
        catalog=catalog([instance_type("t", cpu="4")]),
        pods=[
            *pods("large", 2, cpu="3"),
            pod("middle", cpu="400m"),
            pod("small", cpu="300m"),
            pod("tiny", cpu="200m"),
        ],
    )

    assert [launch.pods for launch in solve(cluster).launches] == [
        ("default/large-0", "default/middle", "default/tiny"),
        ("default/large-1", "default/small"),
    ]


def test_custom_labels_must_be_defined_well_known_ones_need_not() -> None:
    cluster = snapshot(
        pools=[pool(labels={"team": "red"})],
        pods=[
            pod("team", selector={"team": "red"}),
            pod("other-team", selector={"team": "blue"}),
            pod("unknown", selector={"ghost": "boo"}),
            pod("not-ghost", selector=[absent("ghost")]),
            pod("well-known", selector=[above(CPUS, 8)]),
        ],
    )

    assert hosts(cluster) == {
        "not-ghost": "default#0",
        "other-team": "NO_HOST",
        "team": "default#0",
        "unknown": "NO_HOST",
        "well-known": "default#0",
    }


def test_a_claim_leaves_all_domains_with_a_pod_that_excludes_the_label() -> None:
    """Then it does not carry the label, and nothing can be broken there."""
    pools = [pool("z", requirements=[not_in("team", "blue")]), pool("a", labels={"team": "red"})]
    away = [anti_affinity("team", {"app": "db"})]
    shy = pod("shy", cpu="1", selector=[not_in("team", "red")], anti_affinity=away)

    assert hosts(snapshot(pods=[pod("first", cpu="2"), shy], pools=pools)) == {
        "first": "z#0",
        "shy": "z#0",
    }


def test_template_taints_must_be_tolerated_startup_taints_need_not() -> None:
    cluster = snapshot(
        pools=[pool(taints=[taint("gpu", "yes")], startup_taints=[taint("booting")])],
        pods=[
            pod("stranger"),
            pod("guest", tolerations=[tolerate("gpu", "yes")]),
            pod("other", tolerations=[tolerate("gpu", "no")]),
        ],
    )

    assert hosts(cluster) == {"guest": "default#0", "other": "NO_HOST", "stranger": "NO_HOST"}


def test_host_ports_clash_on_nodes_claims_and_with_daemons() -> None:
    web, local, other = HostPort(80), HostPort(80, address="10.0.0.1"), HostPort(80, "UDP")
    cluster = snapshot(
        nodes=[node("n")],
        daemons=[daemon("proxy", ports=[HostPort(53)], selector={FAMILY: "c"})],
        pods=[
            pod("runs", on="n", ports=[web]),
            pod("a", cpu="900m", ports=[local]),
            pod("b", cpu="800m", ports=[HostPort(80, address="10.0.0.2")]),
            pod("c", cpu="700m", ports=[web]),
            pod("d", cpu="600m", ports=[other]),
            pod("dns", cpu="500m", ports=[HostPort(53)], selector=[is_in(FAMILY, "c", "r")]),
        ],
    )

    assert hosts(cluster) == {
        "a": "default#0",
        "b": "default#0",
        "c": "default#1",
        "d": "n",
        "dns": "default#1",
    }
    assert {each.partition(".")[0] for each in types_launched(cluster)[1]} == {"r"}


def test_a_limit_counts_the_nodes_that_stay() -> None:
    types = [instance_type("s", cpu="2", dollars=1), instance_type("l", cpu="8", dollars=2)]
    cluster = snapshot(
        nodes=[
            node("n", cpu="4", taints=[taint("full")]),
            node("gone", cpu="99", deleting=True),
            node("other", cpu="99", pool="x", taints=[taint("full")]),
        ],
        pools=[pool(limits={"cpu": "11"})],
        catalog=catalog(types),
        pods=[pod("p")],
    )

    assert types_launched(cluster) == [["s"]]


def test_a_limit_counts_the_largest_type_a_claim_had_when_it_was_made() -> None:
    types = [instance_type("s", cpu="2", dollars=1), instance_type("l", cpu="8", dollars=2)]
    cluster = snapshot(
        pools=[pool(limits={"cpu": "10"})],
        catalog=catalog(types),
        pods=[pod("p", cpu="7"), *pods("q", 2, cpu="1500m")],
    )

    assert types_launched(cluster) == [["l"], ["s"]]
    assert hosts(cluster) == {"p": "default#0", "q-0": "default#1", "q-1": "NO_HOST"}


def test_claims_of_this_decision_count_against_the_node_limit_at_once() -> None:
    cluster = snapshot(
        nodes=[node("n", taints=[taint("full")])],
        pools=[pool(limits={"nodes": "2"})],
        catalog=catalog([instance_type("t", cpu="4")]),
        pods=pods("p", 2, cpu="3"),
    )

    assert hosts(cluster) == {"p-0": "default#0", "p-1": "NO_HOST"}


def test_a_pool_over_its_limit_makes_way_for_the_next() -> None:
    cluster = snapshot(
        pools=[pool("first", weight=1, limits={"nodes": "0"}), pool("second")],
        pods=[pod("p")],
    )

    assert hosts(cluster) == {"p": "second#0"}


def test_min_values_keep_a_claim_from_narrowing_too_far() -> None:
    picky = pool(requirements=[min_values(exists(FAMILY), 2)])
    batch = [pod("any", cpu="200m"), pod("m", selector={FAMILY: "m"})]

    assert hosts(snapshot(pods=batch, pools=[picky])) == {"any": "default#0", "m": "NO_HOST"}


def test_best_effort_lowers_min_values_of_new_claims_only() -> None:
    picky = pool(requirements=[min_values(exists(FAMILY), 2)])
    lenient = Settings(min_values_policy=MinValuesPolicy.BEST_EFFORT)
    batch = [pod("any", cpu="200m"), pod("m", selector={FAMILY: "m"})]
    cluster = snapshot(pods=batch, pools=[picky], settings=lenient)

    launches = solve(cluster).launches

    assert [launch.pods for launch in launches] == [("default/any",), ("default/m",)]
    assert [launch.requirements[FAMILY].min_values for launch in launches] == [2, 1]
    assert [launch.is_min_values_relaxed for launch in launches] == [False, True]


def test_a_value_that_the_requirement_no_longer_allows_does_not_count() -> None:
    """Golden: a zone narrowed to one value leaves one, though the type is sold in three."""
    picky = pool(requirements=[min_values(exists(ZONE), 3)])

    assert hosts(snapshot(pods=[pod("p", selector={ZONE: ZONE_B})], pools=[picky])) == {
        "p": "NO_HOST"
    }


def test_a_pod_is_tried_again_when_a_later_one_made_room_for_it() -> None:
    """The first pod needs the spot node that only the second one opens."""
    spot = pool("spot", requirements=[is_in(CAPACITY_TYPE, SPOT)])
    near = pod("near", cpu="2", affinity=[affinity(HOSTNAME, {"app": "base"})])
    base = pod("base", cpu="1", labels={"app": "base"})

    assert hosts(snapshot(pods=[near, base], pools=[spot])) == {"near": "spot#0", "base": "spot#0"}
