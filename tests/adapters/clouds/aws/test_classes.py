"""What watches tell of EC2NodeClasses and NodePools, and what follows for instance types."""

import asyncio
from datetime import timedelta

from msgspec.structs import replace

from karpy.adapters.clouds.aws.classes import FOLLOWED, NodeClassBook
from karpy.adapters.clouds.aws.classstatus import ClassStatus
from karpy.adapters.clouds.aws.reports import Reports
from karpy.adapters.clouds.aws.reservations import CapacityReservations
from karpy.codec.fields import JsonObject
from karpy.model.ec2 import AmiFamily, CapacityReservation, PlacementGroup
from karpy.model.ec2nodeclass import FoundReservation
from karpy.model.kinds import EC2_NODE_CLASS, NODE_POOL
from karpy.ports.objects import Patch, PatchType
from karpy.sim.loop import run
from karpy.sim.world import World
from tests.adapters.clouds.aws.accounts import Account, account
from tests.aws.manifests import ec2_node_class, ec2_pool, one_of
from tests.builders.ec2classes import STATUS, node_class

BLOCK = CapacityReservation("cr-1", "m5.large", "eu-west-1a", left=2)
FOUND = FoundReservation("cr-1", "m5.large", "eu-west-1a", state="expiring")


def whole(kind: str, version: str, obj: JsonObject) -> JsonObject:
    return {"apiVersion": version, "kind": kind, **obj}


def a_class(name: str = "default", **spec: object) -> JsonObject:
    return whole("EC2NodeClass", "karpenter.k8s.aws/v1", ec2_node_class(name, **spec))


def a_pool(name: str, node_class: str = "default") -> JsonObject:
    made = ec2_pool(name, one_of("team", name), node_class=node_class)
    return whole("NodePool", "karpenter.sh/v1", made)


def test_the_settings_of_a_class_are_those_of_its_nodepools() -> None:
    async def story() -> list[object]:
        world = World()
        world.store.create(EC2_NODE_CLASS, a_class())
        rocket = [{"alias": "bottlerocket@latest"}]
        world.store.create(EC2_NODE_CLASS, a_class("rocket", amiSelectorTerms=rocket))
        for name, used in (("a", "default"), ("b", "rocket"), ("c", "missing")):
            world.store.create(NODE_POOL, a_pool(name, used))
        book = NodeClassBook(world.objects)
        tasks = [asyncio.create_task(book.follow(kind)) for kind in FOLLOWED]
        await book.wait_until_synced()
        families = {name: each.family for name, each in book.settings().items()}
        asked = book.requirements_of("default")[0]["team"].values
        world.store.delete(NODE_POOL, "a")
        world.store.delete(EC2_NODE_CLASS, "rocket")
        await asyncio.sleep(1)
        left = [dict(book.settings()), book.pools_of("default"), book.find("rocket")]
        for task in tasks:
            task.cancel()
        return [families, asked, *left]

    families = {"a": AmiFamily.AL2023, "b": AmiFamily.BOTTLEROCKET}
    assert run(story()) == [families, frozenset({"a"}), {}, [], None]


def test_a_change_between_two_rounds_is_not_missed() -> None:
    async def story() -> list[float]:
        world, waits = World(), []
        book = NodeClassBook(world.objects)
        loop = asyncio.get_running_loop()
        task = asyncio.create_task(book.follow(EC2_NODE_CLASS))
        await asyncio.sleep(1)
        seen = book.changes
        world.store.create(EC2_NODE_CLASS, a_class())
        await asyncio.sleep(1)
        for _ in range(2):
            begin = loop.time()
            await book.wait_for_change(seen, timedelta(minutes=1))
            waits.append(loop.time() - begin)
            seen = book.changes
        loop.call_later(5, book.note_claim_gone)
        begin = loop.time()
        await book.wait_for_change(seen, timedelta(minutes=1))
        task.cancel()
        return [*waits, loop.time() - begin]

    assert run(story()) == [0.0, 60.0, 5.0]


def test_a_class_is_what_its_object_says() -> None:
    async def story() -> str:
        world = World()
        world.store.create(EC2_NODE_CLASS, a_class())
        book = NodeClassBook(world.objects)
        task = asyncio.create_task(book.follow(EC2_NODE_CLASS))
        await asyncio.sleep(1)
        body = Patch(PatchType.MERGE, {"spec": {"role": "other"}})
        world.store.patch(EC2_NODE_CLASS, "default", body)
        await asyncio.sleep(1)
        task.cancel()
        found = book.find("default")
        assert found is not None
        return found.spec.role

    assert run(story()) == "other"


def test_what_was_found_for_a_class_is_part_of_its_settings() -> None:
    book = NodeClassBook(World().objects)
    book.reservations.sync([BLOCK])
    book.groups["default"] = PlacementGroup("pg-1", strategy="cluster")
    book.full_zones["default"] = frozenset({"eu-west-1b"})
    book.note_memory("default", ("ami-1",), {"m5.large": 70})

    found = book.settings_of(node_class(status=replace(STATUS, reservations=(FOUND,))))

    assert found.zones == {"eu-west-1a": "euw1-az1", "eu-west-1b": "euw1-az2"}
    assert found.reservations == (replace(BLOCK, state="expiring"),)
    assert found.placement == book.groups["default"]
    assert found.full_zones == frozenset({"eu-west-1b"})
    assert found.memory_discovered == {"m5.large": 70}


def test_the_least_memory_counts_until_the_images_change() -> None:
    book = NodeClassBook(World().objects)

    def known() -> dict[str, int]:
        return dict(book.settings_of(node_class()).memory_discovered)

    book.note_memory("default", ("ami-1",), {"a": 70, "b": 10})
    book.note_memory("default", ("ami-1",), {"a": 90, "b": 5})
    book.note_memory("default", ("ami-1",), {})
    assert known() == {"a": 70, "b": 5}
    book.note_memory("default", ("ami-2",), {"a": 90})
    assert known() == {"a": 90}
    book.note_memory("default", ("ami-3",), {})
    assert known() == {}


def test_machines_of_a_reservation_are_counted_until_ec2_says_how_many_are_left() -> None:
    stock = CapacityReservations()
    stock.sync([BLOCK])

    def left() -> int:
        found = stock.find("cr-1")
        assert found is not None
        return found.left

    stock.take("cr-1")
    assert left() == 1
    stock.note_empty("cr-1")
    stock.take("cr-1")
    assert left() == 0
    stock.give_back("cr-1")
    assert left() == 1
    stock.sync([BLOCK])
    stock.take("cr-none")
    assert (left(), stock.find("cr-none")) == (2, None)


def test_changes_of_conditions_are_counted_exported_and_cause_events() -> None:
    async def story(some: Account) -> dict[str, int]:
        world = World()
        book = NodeClassBook(world.objects)
        status = ClassStatus(
            book, some.clock, Reports(count=some.counts.append, emit=some.notices.append)
        )
        status.begin()
        task = asyncio.create_task(book.follow(EC2_NODE_CLASS))
        world.store.create(EC2_NODE_CLASS, a_class())
        await asyncio.sleep(1)
        for state in ("False", "True"):
            said = {
                "type": "SubnetsReady",
                "status": state,
                "reason": "SubnetsReady" if state == "True" else "SubnetsNotFound",
                "message": "",
                "lastTransitionTime": "2026-01-05T00:00:00Z",
            }
            body = Patch(PatchType.MERGE, {"status": {"conditions": [said]}})
            world.store.patch(EC2_NODE_CLASS, "default", body, subresource="status")
            await asyncio.sleep(1)
        gauges = status.gauges()()
        world.store.delete(EC2_NODE_CLASS, "default")
        await asyncio.sleep(1)
        task.cancel()
        return {name: len(series) for name, series in gauges.items()}

    with account() as some:
        gauges = run(story(some))
        changes = some.counted("operator_ec2nodeclass_status_condition_transitions_total")
        told = [(each.subject.kind.name, each.reason) for each in some.notices]

    assert gauges["operator_ec2nodeclass_status_condition_count"] == 1
    assert [labels["status"] for labels, _ in changes] == ["False", "True"]
    assert told == [("EC2NodeClass", "SubnetsReady")]
