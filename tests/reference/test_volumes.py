"""Section 6: volumes and host ports."""

from karpy.model.labels import HOSTNAME, INSTANCE_TYPE, ZONE
from karpy.model.storage import IMMEDIATE, PersistentVolume
from tests.builders import (
    DRIVER,
    ZONE_A,
    ZONE_B,
    ZONE_C,
    catalog,
    instance_type,
    is_in,
    node,
    not_in,
    pod,
    snapshot,
    storage,
    storage_class,
    taint,
    term,
    volume,
    volume_claim,
)
from tests.reference.answers import hosts, types_launched, values_launched
from tests.reference.solver import solve
from tests.reference.volumes import volume_alternatives

LARGE = instance_type("large", cpu="100", memory="1000Gi", pods=500, volume_limits={DRIVER: 10})


def test_each_reason_that_a_volume_gives_has_its_name() -> None:
    closet = storage(
        volume_claim("deleting", is_deleting=True),
        volume_claim("lost", phase="Lost"),
        volume_claim("dangling", bound_to="nothing"),
        volume_claim("dying", bound_to="dying"),
        volume_claim("binding", bound_to="fine", is_bind_completed=False),
        volume_claim("classless", storage_class=None),
        volume_claim("unknown-class", storage_class="unknown"),
        volume_claim("eager", storage_class="eager"),
        volume_claim("fine"),
        PersistentVolume("dying", is_deleting=True),
        volume("fine"),
        storage_class("eager", binding_mode=IMMEDIATE),
    )
    names = [each.partition("/")[2] for each in closet.claims]
    batch = [pod(name, claims=[name]) for name in [*names, "missing"]]

    assert hosts(snapshot(pods=batch, storage=closet)) == {
        "binding": "VOLUME_CLAIM_BINDING",
        "classless": "STORAGE_CLASS_MISSING",
        "dangling": "VOLUME_MISSING",
        "deleting": "VOLUME_CLAIM_DELETING",
        "dying": "VOLUME_DELETING",
        "eager": "VOLUME_CLAIM_IMMEDIATE",
        "fine": "default#0",
        "lost": "VOLUME_CLAIM_LOST",
        "missing": "VOLUME_CLAIM_MISSING",
        "unknown-class": "STORAGE_CLASS_MISSING",
    }


def test_the_first_volume_with_a_problem_gives_the_reason() -> None:
    closet = storage(volume_claim("fine"), volume_claim("lost", phase="Lost"))
    batch = [pod("p", claims=["fine", "lost", "missing"])]

    assert hosts(snapshot(pods=batch, storage=closet)) == {"p": "VOLUME_CLAIM_LOST"}


def test_an_ephemeral_volume_is_claimed_under_the_name_of_its_pod() -> None:
    closet = storage(volume_claim("a-scratch"))
    batch = [pod("a", ephemeral=["scratch"]), pod("b", ephemeral=["scratch"])]

    assert hosts(snapshot(pods=batch, storage=closet)) == {
        "a": "default#0",
        "b": "VOLUME_CLAIM_MISSING",
    }


def test_pods_go_where_their_volumes_are() -> None:
    closet = storage(volume_claim("there", bound_to="v"), volume("v", term(is_in(ZONE, ZONE_B))))

    assert values_launched(snapshot(pods=[pod("p", claims=["there"])], storage=closet), ZONE) == [
        [ZONE_B]
    ]


def test_alternatives_of_several_volumes_are_combined_if_they_agree() -> None:
    either = [term(is_in(ZONE, ZONE_A)), term(is_in(ZONE, ZONE_B))]
    closet = storage(
        volume_claim("x", storage_class="either"),
        volume_claim("y", bound_to="y"),
        volume_claim("z", bound_to="z"),
        storage_class("either", *either),
        volume("y", *reversed(either), term()),
        volume("z", term(is_in(ZONE, ZONE_C))),
    )

    def zones(*claims: str) -> list[list[str]]:
        found = volume_alternatives(pod("p", claims=claims), closet)
        return [sorted(each[ZONE].values) if ZONE in each else ["any"] for each in found]

    assert zones() == [["any"]]
    assert zones("x") == [[ZONE_A], [ZONE_B]]
    assert zones("x", "y") == [[ZONE_A], [ZONE_A], [ZONE_B], [ZONE_B]]
    assert zones("x", "z") == []


def test_a_local_volume_does_not_pin_its_old_host() -> None:
    pinned = term(is_in(HOSTNAME, "old"), is_in(ZONE, ZONE_B))
    closet = storage(
        volume_claim("local", bound_to="local"),
        volume_claim("remote", bound_to="remote"),
        volume("local", pinned, is_local=True),
        volume("remote", pinned),
    )
    batch = [pod("local", claims=["local"]), pod("remote", claims=["remote"])]

    assert hosts(snapshot(pods=batch, storage=closet)) == {
        "local": "default#0",
        "remote": "NO_HOST",
    }


def test_the_next_alternative_is_tried_when_a_pod_cannot_follow_the_first() -> None:
    closet = storage(
        volume_claim("c", bound_to="v"),
        volume("v", term(is_in(ZONE, ZONE_A)), term(is_in(ZONE, ZONE_B))),
    )
    batch = [pod("p", claims=["c"], selector={ZONE: ZONE_B})]
    nodes = [node("n", zone=ZONE_B)]

    assert values_launched(snapshot(pods=batch, storage=closet), ZONE) == [[ZONE_B]]
    assert hosts(snapshot(pods=batch, storage=closet, nodes=nodes)) == {"p": "n"}


# --- attach limits, with the golden values of the specification --------------------------------


def _with_claims(pods: int, claims_each: int) -> dict[str, list[str]]:
    return {
        f"p{number:03}": [f"c{number}-{i}" for i in range(claims_each)] for number in range(pods)
    }


def _launches(wanted: dict[str, list[str]]) -> int:
    closet = storage(*(volume_claim(name) for names in wanted.values() for name in names))
    batch = [pod(name, cpu="10m", memory="1Mi", claims=names) for name, names in wanted.items()]
    return len(solve(snapshot(pods=batch, storage=closet, catalog=catalog([LARGE]))).launches)


def test_a_label_that_a_pod_excludes_is_not_defined_for_its_volumes() -> None:
    """The volume is where nodes have the label already, not where one is put on a new node."""
    closet = storage(
        volume_claim("c", bound_to="v"),
        volume("v", term(is_in("team", "red")), term(is_in(ZONE, ZONE_B))),
    )
    shy = pod("p", claims=["c"], selector=[not_in("team", "blue")])

    assert values_launched(snapshot(pods=[shy], storage=closet), ZONE) == [[ZONE_B]]


def test_a_hundred_pods_with_a_volume_each_take_ten_nodes_of_limit_ten() -> None:
    assert _launches(_with_claims(100, 1)) == 10


def test_six_pods_with_two_volumes_each_take_two_nodes_of_limit_ten() -> None:
    assert _launches(_with_claims(6, 2)) == 2


def test_a_hundred_pods_that_share_a_volume_take_one_node() -> None:
    assert _launches({f"p{number:03}": ["shared"] for number in range(100)}) == 1


def test_a_pod_with_more_volumes_than_any_node_attaches_is_left_alone() -> None:
    assert _launches(_with_claims(1, 11)) == 0


def test_types_with_too_few_attachments_are_out() -> None:
    few = instance_type("few", dollars=0.1, volume_limits={DRIVER: 1})
    closet = storage(volume_claim("a"), volume_claim("b"))
    batch = [pod("p", claims=["a", "b"])]

    assert types_launched(snapshot(pods=batch, storage=closet, catalog=catalog([few, LARGE]))) == [
        ["large"]
    ]


def test_a_node_attaches_what_it_publishes_else_what_its_type_does_else_anything() -> None:
    closet = storage(*(volume_claim(name) for name in ("old", "a", "b", "c", "d")))
    nodes = [
        node("a-limited", type="few", volume_limits={DRIVER: 1}),
        node("b-by-type", type="few"),
        node("c-unlimited", type="few", volume_limits={DRIVER: None}, taints=[taint("later")]),
        node("d-by-type-too", type="few", pool="unknown"),
        node("e-unknown", type="unknown"),
    ]
    few = instance_type("few", volume_limits={DRIVER: 1})
    batch = [
        pod("old", on="a-limited", claims=["old"]),
        *(pod(name, claims=[name]) for name in ("a", "b", "c", "d")),
        pod("again", claims=["old"]),
    ]
    cluster = snapshot(pods=batch, nodes=nodes, storage=closet, catalog=catalog([few]))

    assert hosts(cluster) == {
        "a": "b-by-type",
        "again": "a-limited",
        "b": "d-by-type-too",
        "c": "e-unknown",
        "d": "e-unknown",
    }


def test_volumes_that_no_driver_attaches_are_not_counted() -> None:
    closet = storage(
        volume_claim("a", bound_to="a"),
        volume_claim("b", bound_to="b"),
        volume("a", driver=None),
        volume("b", driver=None),
    )
    nodes = [node("n", volume_limits={DRIVER: 0}, labels={INSTANCE_TYPE: "m.xlarge"})]

    assert hosts(snapshot(pods=[pod("p", claims=["a", "b"])], nodes=nodes, storage=closet)) == {
        "p": "n"
    }


def test_a_node_with_too_many_volumes_still_takes_pods_without() -> None:
    closet = storage(volume_claim("old"), volume_claim("new"))
    nodes = [node("n", volume_limits={DRIVER: 0})]
    batch = [pod("old", on="n", claims=["old"]), pod("plain"), pod("new", claims=["new"])]

    assert hosts(snapshot(pods=batch, nodes=nodes, storage=closet)) == {
        "new": "default#0",
        "plain": "n",
    }
