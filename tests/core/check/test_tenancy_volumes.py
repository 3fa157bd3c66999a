from typing import Final

import pytest
from msgspec.structs import replace

from karpy.core.check.breaches import Breach, Rule
from karpy.model.constraints import NodeTerm
from karpy.model.labels import HOSTNAME, NODE_POOL
from karpy.model.pods import Pod, PodVolume
from karpy.model.requirements import one_of
from karpy.model.storage import (
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolume,
    PersistentVolumeClaim,
    Storage,
    StorageClass,
)
from tests.core.check.builders import (
    World,
    bound,
    catalog,
    in_zone,
    instance_type,
    launch,
    node,
    pod,
    world,
)

EBS: Final = "ebs.csi.aws.com"
IN_A: Final = NodeTerm((in_zone("a"),))
IN_B: Final = NodeTerm((in_zone("b"),))
CLAIM: Final = PersistentVolumeClaim("data", "shop", "pv-1", is_bind_completed=True)
VOLUME: Final = PersistentVolume("pv-1", EBS, (IN_A,))
LATE: Final = StorageClass("late", EBS, WAIT_FOR_FIRST_CONSUMER, (IN_A, IN_B))
UNBOUND: Final = PersistentVolumeClaim("data", "shop", storage_class="late")
DB: Final = pod("db", volumes=(PodVolume("disk", "data"),))


def storage(
    *claims: PersistentVolumeClaim,
    volume: PersistentVolume | None = VOLUME,
    its_class: StorageClass | None = LATE,
) -> Storage:
    return Storage(
        {claim.key: claim for claim in claims or (CLAIM,)},
        {volume.name: volume} if volume else {},
        {its_class.name: its_class} if its_class else {},
    )


def on_launch(disks: Storage, *zones: str, of_pod: Pod = DB) -> World:
    return world(launch("l1", [of_pod], in_zone(*zones)), pods=[of_pod], storage=disks)


def test_a_volume_must_be_attachable_in_every_allowed_zone() -> None:
    assert on_launch(storage(), "a").rules() == set()
    assert on_launch(storage(), "a", "b").breaches() == (
        Breach(Rule.VOLUME_TOPOLOGY, "l1", "shop/db", "shop/data"),
    )


def test_alternatives_together_may_cover_all_zones() -> None:
    either = replace(VOLUME, terms=(IN_A, IN_B))

    assert on_launch(storage(volume=either), "a", "b").rules() == set()
    assert on_launch(storage(volume=either), "b", "c").rules() == {Rule.VOLUME_TOPOLOGY}


def test_an_unbound_volume_is_limited_to_the_topologies_of_its_class() -> None:
    anywhere = replace(LATE, topologies=())

    assert on_launch(storage(UNBOUND), "b").rules() == set()
    assert on_launch(storage(UNBOUND), "c").rules() == {Rule.VOLUME_TOPOLOGY}
    assert on_launch(storage(UNBOUND, its_class=anywhere), "c").rules() == set()


def test_a_volume_without_affinity_is_attachable_everywhere() -> None:
    assert on_launch(storage(volume=replace(VOLUME, terms=())), "c").rules() == set()


def test_a_volume_of_one_node_is_not_attachable_to_another() -> None:
    pinned = replace(VOLUME, terms=(NodeTerm((one_of(HOSTNAME, "n1"),)),))
    plan = world(
        pods=[DB], nodes=(node("n1"),), nominations={"n1": [DB]}, storage=storage(volume=pinned)
    )

    assert plan.rules() == set()
    assert on_launch(storage(volume=pinned), "a").rules() == {Rule.VOLUME_TOPOLOGY}


def test_a_local_volume_is_provisioned_again_on_another_node() -> None:
    local = replace(VOLUME, is_local=True, terms=(NodeTerm((one_of(HOSTNAME, "gone"),)),))
    zonal = replace(local, terms=(NodeTerm((one_of(HOSTNAME, "gone"), in_zone("a"))),))

    assert on_launch(storage(volume=local), "b").rules() == set()
    assert on_launch(storage(volume=zonal), "a").rules() == set()
    assert on_launch(storage(volume=zonal), "b").rules() == {Rule.VOLUME_TOPOLOGY}


@pytest.mark.parametrize(
    "broken",
    [
        Storage(),
        storage(replace(CLAIM, is_deleting=True)),
        storage(replace(CLAIM, phase="Lost")),
        storage(replace(CLAIM, is_bind_completed=False)),
        storage(volume=None),
        storage(volume=replace(VOLUME, is_deleting=True)),
        storage(UNBOUND, its_class=None),
        storage(replace(UNBOUND, storage_class=None)),
        storage(UNBOUND, its_class=replace(LATE, binding_mode="Immediate")),
    ],
)
def test_a_pod_waits_for_its_volumes(broken: Storage) -> None:
    assert on_launch(broken, "a").rules() == {Rule.VOLUME_READY}


def test_an_ephemeral_volume_is_named_after_its_pod() -> None:
    brief = pod("db", volumes=(PodVolume("scratch"),))
    claim = replace(UNBOUND, name="db-scratch")

    assert on_launch(storage(claim), "a", of_pod=brief).rules() == set()
    assert on_launch(storage(UNBOUND), "a", of_pod=brief).rules() == {Rule.VOLUME_READY}


# --- attach limits -------------------------------------------------------------------------------

FREE: Final = storage(
    *(PersistentVolumeClaim(name, "shop", storage_class="late") for name in ("d1", "d2")),
    its_class=replace(LATE, topologies=()),
)
ONE: Final = pod("one", volumes=(PodVolume("disk", "d1"),))
TWO: Final = pod("two", volumes=(PodVolume("disk", "d2"),))
SAME: Final = pod("same", volumes=(PodVolume("disk", "d1"),))
LIMITED: Final = instance_type("large", 8, volume_limits={EBS: 1})


def test_every_option_must_attach_all_volumes() -> None:
    roomy = instance_type("medium", 4)
    shop = catalog(roomy, LIMITED)

    def plan(*pods: Pod) -> World:
        planned = launch("l1", pods, options=[roomy, LIMITED])
        return world(planned, pods=pods, storage=FREE, catalog=shop)

    assert plan(ONE).rules() == set()
    assert plan(ONE, SAME).rules() == set()
    assert plan(ONE, TWO).breaches() == (Breach(Rule.VOLUME_LIMIT, "l1", detail="large"),)


def on_node(*new: Pod, there: Pod, pool: str = "web", **limits: int | None) -> World:
    published = {EBS: limits["published"]} if "published" in limits else {}
    return world(
        pods=[*new, bound(there, "n1")],
        nodes=(node("n1", labels={NODE_POOL: pool}, volume_limits=published),),
        nominations={"n1": new},
        storage=FREE,
        catalog=catalog(LIMITED),
    )


def test_a_node_attaches_as_many_volumes_as_it_publishes() -> None:
    assert on_node(TWO, there=ONE, published=2).rules() == set()
    assert on_node(TWO, there=ONE, published=1).breaches() == (
        Breach(Rule.VOLUME_LIMIT, "n1", detail=f"2 volumes of {EBS}, at most 1"),
    )


def test_a_node_that_publishes_no_limit_has_none() -> None:
    assert on_node(TWO, there=ONE, published=None).rules() == set()


def test_a_node_that_publishes_nothing_has_the_limit_of_its_type() -> None:
    assert on_node(TWO, there=ONE).rules() == {Rule.VOLUME_LIMIT}


@pytest.mark.parametrize(("pool", "expected"), [("gone", {Rule.VOLUME_LIMIT}), ("", set())])
def test_the_type_of_a_node_is_known_if_any_pool_made_it(pool: str, expected: set[Rule]) -> None:
    assert on_node(TWO, there=ONE, pool=pool).rules() == expected


def test_volumes_of_running_pods_count_as_attached_in_any_state() -> None:
    going = replace(FREE.claims["shop/d1"], is_deleting=True)
    disks = replace(FREE, claims={**FREE.claims, "shop/d1": going})
    plan = on_node(TWO, there=ONE, published=1)

    assert World(replace(plan.snapshot, storage=disks), plan.verdict).rules() == {Rule.VOLUME_LIMIT}


def test_a_shared_volume_is_attached_once() -> None:
    assert on_node(SAME, there=ONE, published=1).rules() == set()


def test_a_driver_that_does_not_count_has_no_limit() -> None:
    disks = storage(volume=replace(VOLUME, driver=None, terms=()))
    planned = launch("l1", [DB], options=[LIMITED])

    assert world(planned, pods=[DB], storage=disks, catalog=catalog(LIMITED)).rules() == set()
