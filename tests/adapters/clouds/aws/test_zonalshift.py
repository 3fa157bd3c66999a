from datetime import timedelta

import pytest
from msgspec.structs import replace

from karpy.adapters.clouds.aws.classes import NodeClassBook
from karpy.adapters.clouds.aws.machines import Machines
from karpy.adapters.clouds.aws.reports import Reports
from karpy.adapters.clouds.aws.zonalshift import ZonalShiftController
from karpy.errors import CloudUnavailable
from karpy.model.ec2nodeclass import FoundSubnet
from karpy.model.requirements import Requirements, collect, one_of
from karpy.sim.loop import run
from karpy.sim.world import World
from tests.adapters.clouds.aws.accounts import Account, account
from tests.builders.ec2classes import STATUS, node_class


class Book(NodeClassBook):
    """A node class in two zones, and a NodePool for each of them."""

    def __init__(self) -> None:
        """Know what watches would tell."""
        super().__init__(World().objects)
        subnets = (FoundSubnet("s-a", "us-west-2a", "z1"), FoundSubnet("s-b", "us-west-2b", "z2"))
        self.classes["default"] = node_class(status=replace(STATUS, subnets=subnets))

    def pools(self) -> dict[str, Requirements]:
        """Return what NodePools ask of their nodes."""
        zone = "topology.kubernetes.io/zone"
        return {name: collect([one_of(zone, f"us-west-2{name}")]) for name in ("a", "b")}


def test_nodepools_get_one_event_for_a_shift_and_one_for_its_end() -> None:
    async def story(some: Account) -> list[frozenset[str]]:
        controller = ZonalShiftController(
            some.calls,
            some.clock,
            Book(),
            "arn:aws:eks:us-west-2:1:cluster/demo",
            Reports(emit=some.notices.append),
        )
        shifted = []
        some.tables.shift("z1", some.clock.now() + timedelta(minutes=10))
        for _ in range(2):
            await controller.refresh()
            shifted.append(controller.zones())
        some.tables.shifts.clear()
        await controller.refresh()
        return [*shifted, controller.zones()]

    with account() as some:
        a = frozenset({"us-west-2a"})
        assert run(story(some)) == [a, a, frozenset()]
        told = [(each.subject.name, each.reason, each.is_warning) for each in some.notices]

    assert told == [("a", "ZonalShiftActive", True), ("a", "ZonalShiftCleared", False)]


def test_machines_in_a_shifted_zone_stay_known_and_are_neither_tagged_nor_ended() -> None:
    """What EC2 says of an impaired zone may be old."""

    async def story(some: Account) -> list[object]:
        machines = Machines(some.calls, "demo")
        id_ = str(some.run_instance()["InstanceId"])
        await machines.list()
        machines.find_shifted = lambda: frozenset({"us-west-2a"})
        some.cloud.instances.clear()
        told: list[object] = [len(await machines.list()), (await machines.find(id_)).id == id_]
        with pytest.raises(CloudUnavailable, match="shifted away from zone `us-west-2a`"):
            await machines.tag(id_, {"a": "b"})
        with pytest.raises(CloudUnavailable, match="TerminateInstances"):
            machines.check_zone(id_, "ec2:TerminateInstances")
        machines.find_shifted = frozenset
        await machines.list()
        return [*told, machines.known(id_)]

    with account() as some:
        assert run(story(some)) == [0, True, None]
