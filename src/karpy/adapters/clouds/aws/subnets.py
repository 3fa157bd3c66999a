"""The choice of subnets, with the addresses that launches under way will take."""

import asyncio
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from karpy.adapters.clouds.aws.calls import AwsCalls
from karpy.adapters.clouds.aws.soldout import SoldOut
from karpy.codec.aws.answers import read_subnet
from karpy.errors import CloudError
from karpy.model.ec2 import Subnet
from karpy.model.ec2nodeclass import Ec2NodeClass
from karpy.ports.clock import Clock

FRESH: Final = timedelta(minutes=1)


class Subnets:
    """Chooses the subnet with most free addresses in each zone."""

    def __init__(self, calls: AwsCalls, clock: Clock, sold_out: SoldOut) -> None:
        self._calls = calls
        self._clock = clock
        self._sold_out = sold_out
        self._known: dict[str, Subnet] = {}
        self._asked: dict[str, datetime] = {}
        self._taken: dict[str, int] = {}
        """Addresses that launches since the last answer of EC2 will take, by subnet."""
        self._turn = asyncio.Lock()

    async def by_zone(self, node_class: Ec2NodeClass) -> dict[str, str]:
        """Return the subnet to launch in, by zone of a node class."""
        ids = [each.id for each in node_class.status.subnets]
        await self._refresh(ids)
        best: dict[str, Subnet] = {}
        for each in sorted(ids):
            subnet = self._known.get(each)
            if subnet is None or each in self._sold_out.subnets:
                continue
            known = best.get(subnet.zone)
            if known is None or self._free(subnet) > self._free(known):
                best[subnet.zone] = subnet
        return {zone: each.id for zone, each in best.items()}

    def take(self, subnets: Iterable[str], addresses: int) -> None:
        """Count addresses of subnets as taken, before EC2 reports them as taken."""
        for each in subnets:
            self._taken[each] = self._taken.get(each, 0) + addresses

    def give_back(self, subnets: Iterable[str], addresses: int) -> None:
        """Count addresses as free again in subnets that a launch did not use."""
        for each in subnets:
            self._taken[each] = max(0, self._taken.get(each, 0) - addresses)

    def note_full(self, subnet: str) -> None:
        """Launch nothing in a subnet for a while."""
        self._sold_out.subnets.add(subnet)

    def full_zones(self, node_class: Ec2NodeClass) -> frozenset[str]:
        """Return the zones all of whose subnets are full."""
        zones: dict[str, bool] = {}
        for each in node_class.status.subnets:
            is_full = each.id in self._sold_out.subnets
            zones[each.zone] = zones.get(each.zone, True) and is_full
        return frozenset(zone for zone, is_full in zones.items() if is_full)

    def known(self) -> Mapping[str, Subnet]:
        """Return the subnets as EC2 described them last."""
        return self._known

    async def _refresh(self, ids: list[str]) -> None:
        async with self._turn:
            now = self._clock.now()
            stale = [each for each in ids if now - self._asked.get(each, now - FRESH) >= FRESH]
            if not stale:
                return
            # A filter, unlike SubnetIds, does not fail for a subnet that was just deleted.
            filters = [{"Name": "subnet-id", "Values": stale}]
            try:
                answers = await self._calls.describe_subnets(Filters=filters)
            except CloudError:
                # The last answer is good enough: EC2 refuses a launch into a full subnet.
                if not self._known.keys() >= {*stale}:
                    raise
                return
            found = {each.id: each for each in map(read_subnet, answers)}
            for id_ in stale:
                self._known.pop(id_, None)
                self._taken.pop(id_, None)
                self._asked[id_] = now
            self._known |= found

    def _free(self, subnet: Subnet) -> int:
        return subnet.free_addresses - self._taken.get(subnet.id, 0)
