"""Section 6: how many volumes a node attaches, with the golden values of the specification."""

import pytest

from karpy.model.labels import INSTANCE_TYPE
from karpy.model.storage import IMMEDIATE, PersistentVolume, PersistentVolumeClaim
from tests.builders import (
    DRIVER,
    catalog,
    instance_type,
    node,
    offering,
    pod,
    pods,
    pool,
    snapshot,
    storage,
    storage_class,
    volume,
    volume_claim,
)
from tests.core.scheduling.answers import (
    hosts,
    launches,
    types_launched,
)

LARGE = instance_type("large", cpu="100", memory="1000Gi", pods=500, volume_limits={DRIVER: 10})


def _nodes_for(pod_count: int, claims_each: int) -> int:
    claims = [[f"c{i}-{j}" for j in range(claims_each)] for i in range(pod_count)]
    batch = [
        pod(f"p{i:03}", cpu="10m", memory="1Mi", claims=names) for i, names in enumerate(claims)
    ]
    stored = storage(*(volume_claim(name) for names in claims for name in names))
    return len(launches(snapshot(pods=batch, storage=stored, catalog=catalog([LARGE]))))


@pytest.mark.parametrize(
    ("pod_count", "claims_each", "nodes"), [(100, 1, 10), (6, 2, 2), (1, 10, 1), (1, 11, 0)]
)
def test_a_node_attaches_no_more_volumes_than_its_limit(
    pod_count: int, claims_each: int, nodes: int
) -> None:
    assert _nodes_for(pod_count, claims_each) == nodes


def test_a_volume_that_pods_share_counts_once() -> None:
    batch = pods("p", 100, cpu="10m", memory="1Mi", claims=["shared"])
    stored = storage(volume_claim("shared"))

    assert len(launches(snapshot(pods=batch, storage=stored, catalog=catalog([LARGE])))) == 1


def test_types_with_too_few_attachments_are_out() -> None:
    few = instance_type("few", dollars=0.1, volume_limits={DRIVER: 1})
    other = instance_type("other", dollars=0.2, volume_limits={"other-driver": 0})
    stored = storage(volume_claim("a"), volume_claim("b"))
    cluster = snapshot(
        pods=[pod("p", claims=["a", "b"])], storage=stored, catalog=catalog([few, other, LARGE])
    )

    assert types_launched(cluster) == [["other", "large"]]


def test_a_node_attaches_what_it_publishes_else_what_its_type_does_else_anything() -> None:
    few = instance_type("few", volume_limits={DRIVER: 1})
    stored = storage(*(volume_claim(name) for name in ("old", "a", "b", "c")))
    nodes = [
        node("a-limited", type="few", volume_limits={DRIVER: 1}),
        node("b-by-type", type="few"),
        node("c-unlimited", type="few", volume_limits={DRIVER: None}, cpu="200m"),
        node("d-unmanaged", type="few", pool="", cpu="10m"),
        node("e-forgotten", type="forgotten"),
    ]
    batch = [
        pod("old", on="a-limited", claims=["old"]),
        *(pod(name, claims=[name]) for name in ("a", "b", "c")),
        pod("again", claims=["old"]),
        pod("both", cpu="10m", claims=["a", "b"]),
        pod("more", cpu="9m", claims=["a", "b"]),
    ]
    cluster = snapshot(pods=batch, nodes=nodes, storage=stored, catalog=catalog([few]))

    assert hosts(cluster) == {
        "a": "b-by-type",
        "again": "a-limited",
        "b": "c-unlimited",
        "both": "d-unmanaged",
        "c": "c-unlimited",
        "more": "e-forgotten",
    }


def test_the_limit_of_a_type_holds_though_it_is_sold_out() -> None:
    """The limit holds whether the pool takes part in the decision or not."""
    sold_out = instance_type(
        "few", offerings=[offering(available=False)], volume_limits={DRIVER: 1}
    )
    cluster = snapshot(
        nodes=[node("n", type="few"), node("o", type="few", pool="other", cpu="0")],
        pods=[pod("a", claims=["a"]), pod("b", claims=["b"])],
        storage=storage(volume_claim("a"), volume_claim("b")),
        catalog=catalog([sold_out]),
        pools=[pool(), pool("other", static=True)],
    )

    assert hosts(cluster) == {"a": "n", "b": "NO_HOST"}


@pytest.mark.parametrize(
    "old",
    [
        volume_claim("old"),
        volume_claim("old", is_deleting=True),
        volume_claim("old", storage_class="eager"),
        volume_claim("old", bound_to="dying"),
    ],
)
def test_the_volumes_of_a_running_pod_are_attached_whatever_becomes_of_them(
    old: PersistentVolumeClaim,
) -> None:
    """A deleting PersistentVolumeClaim stays attached until its pod is gone."""
    stored = storage(
        old,
        volume_claim("new"),
        storage_class("eager", binding_mode=IMMEDIATE),
        PersistentVolume("dying", DRIVER, is_deleting=True),
    )
    cluster = snapshot(
        nodes=[node("n", volume_limits={DRIVER: 1})],
        pods=[pod("old", on="n", claims=["old"]), pod("p", claims=["new"])],
        storage=stored,
    )

    assert hosts(cluster) == {"p": "default-0"}


@pytest.mark.parametrize(
    "old",
    [
        volume_claim("another"),
        volume_claim("old", bound_to="gone"),
        volume_claim("old", storage_class="gone"),
    ],
)
def test_volumes_of_a_running_pod_without_storage_objects_are_not_counted(
    old: PersistentVolumeClaim,
) -> None:
    cluster = snapshot(
        nodes=[node("n", volume_limits={DRIVER: 1})],
        pods=[pod("old", on="n", claims=["old"]), pod("p", claims=["new"])],
        storage=storage(old, volume_claim("new")),
    )

    assert hosts(cluster) == {"p": "n"}


def test_volumes_that_no_driver_attaches_are_not_counted() -> None:
    stored = storage(
        volume_claim("a", bound_to="a"),
        volume_claim("b", bound_to="b"),
        volume("a", driver=None),
        volume("b", driver=None),
    )
    nodes = [node("n", volume_limits={DRIVER: 0}, labels={INSTANCE_TYPE: "m.xlarge"})]

    assert hosts(snapshot(pods=[pod("p", claims=["a", "b"])], nodes=nodes, storage=stored)) == {
        "p": "n"
    }


def test_a_node_with_too_many_volumes_still_takes_pods_without() -> None:
    cluster = snapshot(
        nodes=[node("n", volume_limits={DRIVER: 0})],
        pods=[pod("old", on="n", claims=["old"]), pod("plain"), pod("new", claims=["new"])],
        storage=storage(volume_claim("old"), volume_claim("new")),
    )

    assert hosts(cluster) == {"new": "default-0", "plain": "n"}
