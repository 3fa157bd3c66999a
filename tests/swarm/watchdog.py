"""Checks the limits of NodePools after every event."""

from datetime import datetime, timedelta
from typing import Final

from karpy.codec.fields import JsonObject
from karpy.model.kinds import NODE_CLAIM, NODE_POOL
from karpy.model.labels import NODE_POOL as POOL_LABEL
from karpy.model.resources import NODES, Resources, parse_quantity
from karpy.ports.objects import EventType, WatchEvent
from karpy.sim.world import World
from tests.swarm.disruptions import reason_of
from tests.swarm.findings import Law
from tests.swarm.witnesses import Report

_LATE: Final = timedelta(seconds=20)
"""Time within which a decision may still use an earlier version of a NodePool."""


class Watchdog:
    """
    Compares the resources of NodePools with their limits.

    A limit is checked when a NodeClaim is added, since it may be lowered below the resources in
    use. Deleting NodeClaims do not count, nor do disrupted ones: their replacements are launched
    first, and stay for a while if the command fails.
    """

    def __init__(self, world: World, report: Report) -> None:
        self._world = world
        self._report = report
        self._said: dict[str, list[tuple[datetime, Resources]]] = {}
        self._allowed: dict[str, Resources] = {}
        self._replaced: set[str] = set()
        """Names of claims that are or were disrupted."""
        world.store.subscribe(NODE_POOL, self._on_pool)
        world.store.subscribe(NODE_CLAIM, self._on_claim)

    def _on_pool(self, event: WatchEvent, _: JsonObject | None) -> None:
        limits = _amounts(event.object["spec"].get("limits") or {})
        said = self._said.setdefault(event.object["metadata"]["name"], [])
        if not said or said[-1][1] != limits:
            said.append((self._world.clock.now(), limits))

    def _on_claim(self, event: WatchEvent, before: JsonObject | None) -> None:
        pool = (event.object["metadata"].get("labels") or {}).get(POOL_LABEL, "")
        if reason_of(event.object):
            self._replaced.add(event.object["metadata"]["name"])
        if event.type is EventType.ADDED:
            self._allowed[pool] = self._limits(pool)
        is_same = before is not None and before.get("status") == event.object.get("status")
        if event.type is EventType.DELETED or is_same:
            return
        used = self._used(pool)
        for resource, limit in self._allowed.get(pool, {}).items():
            if used.get(resource, 0) > limit:
                amounts = f"{used[resource]} of {limit}"
                self._report(Law.LIMIT, f"{pool} has {amounts} {resource}")

    def _limits(self, pool: str) -> Resources:
        """Return the highest limits that a NodePool had lately."""
        said = self._said.get(pool, [])
        since = self._world.clock.now() - _LATE
        ended = [moment for moment, _ in said[1:]] + [None]
        lately = [
            each for (_, each), end in zip(said, ended, strict=True) if not end or end > since
        ]
        shared = set.intersection(*(set(each) for each in lately)) if lately else set()
        return {resource: max(each[resource] for each in lately) for resource in shared}

    def _used(self, pool: str) -> Resources:
        claims = [
            each
            for each in self._world.store.list(NODE_CLAIM)
            if (each["metadata"].get("labels") or {}).get(POOL_LABEL) == pool
            and "deletionTimestamp" not in each["metadata"]
            and each["metadata"]["name"] not in self._replaced
        ]
        used: dict[str, int] = {NODES: len(claims)}
        for claim in claims:
            capacity = _amounts((claim.get("status") or {}).get("capacity") or {})
            for resource, amount in capacity.items():
                used[resource] = used.get(resource, 0) + amount
        return used


def _amounts(given: JsonObject) -> dict[str, int]:
    return {key: parse_quantity(str(text), key) for key, text in given.items()}
