"""Pods on nodes with all that is written on them, asked for where it matters."""

import asyncio
from collections.abc import Collection, Sequence
from typing import Final

from msgspec import Struct

from karpy.codec.unreadable import pod_budget, tenant
from karpy.controllers.context import ControllerContext
from karpy.core.disruption.tenancies import (
    Tenancy,
    assume,
    choose_lookups,
    doubted,
    is_reliable,
    remember,
)
from karpy.model.kinds import DISRUPTION_BUDGET, POD
from karpy.model.tenants import PodBudget, Tenant
from karpy.ports.objects import Query

_PAGE: Final = 500
_PODS_PER_REQUEST: Final = 50
"""To list so many pods that nobody asks for is less work than one more request."""
_REQUESTS_AT_ONCE: Final = 20


class Census(Struct, frozen=True):
    """Who lives where, and which budgets protect them."""

    tenants: dict[str, tuple[Tenant, ...]]
    """By node."""
    budgets: tuple[PodBudget, ...] = ()


class Tenants:
    """Knows the pods of nodes, and asks only for what it does not know yet."""

    def __init__(self, context: ControllerContext, *, reads_deletion_cost: bool = True) -> None:
        self._context = context
        self._reads_deletion_cost = reads_deletion_cost
        self._known: dict[str, Tenancy] = {}
        """By node."""
        self._room = asyncio.Semaphore(_REQUESTS_AT_ONCE)

    async def count(self, nodes: Sequence[str], fresh: Collection[str] = ()) -> Census:
        """Say who lives on nodes, on the `fresh` ones as of this moment; forget all others."""
        now, pods = self._context.clock.now(), self._context.records.pods
        known = {
            node: tenancy
            for node in nodes
            if (tenancy := self._known.get(node)) is not None
            and node not in fresh
            and is_reliable(tenancy, pods.under(node), now)
        }
        assumed = {node: assume(pods.under(node)) for node in nodes if node not in known}
        chosen = choose_lookups(
            {node: None if node in fresh else each for node, each in assumed.items()}, self._known
        )
        found = {
            node: doubted(tenants, pods.under(node))
            for node, tenants in (await self._find(sorted(chosen))).items()
        }
        told = {
            node: remember(
                tenants, pods.under(node), now, reads_deletion_cost=self._reads_deletion_cost
            )
            for node, tenants in found.items()
        }
        waiting = {
            node: each for node, each in assumed.items() if each is not None and node not in chosen
        }
        self._known = known | told
        # Where one pod already keeps the node, budgets decide nothing any more.
        is_guarded = any(found.values()) or any(
            each.tenants and not each.is_partial for each in known.values()
        )
        tenants = {node: each.tenants for node, each in (known | waiting).items()} | found
        return Census(tenants, await self._budgets() if is_guarded else ())

    async def _find(self, nodes: Sequence[str]) -> dict[str, tuple[Tenant, ...]]:
        """Ask for the pods of nodes; one without any, as watches tell, needs no asking."""
        pods = self._context.records.pods
        inhabited = [node for node in nodes if pods.under(node)]
        found: dict[str, tuple[Tenant, ...]] = dict.fromkeys(nodes, ())
        if len(inhabited) * _PODS_PER_REQUEST > len(pods.all()) > _PAGE:
            return found | await self._ask_for_all(inhabited)
        answers = await asyncio.gather(*(self._ask(node) for node in inhabited))
        return found | dict(zip(inhabited, answers, strict=True))

    async def _ask(self, node: str) -> tuple[Tenant, ...]:
        async with self._room:
            page = await self._context.objects.list(POD, Query(fields=f"spec.nodeName={node}"))
        return tuple(tenant(each) for each in page.items)

    async def _ask_for_all(self, nodes: Sequence[str]) -> dict[str, tuple[Tenant, ...]]:
        found: dict[str, list[Tenant]] = {node: [] for node in nodes}
        token = ""
        while True:
            page = await self._context.objects.list(POD, limit=_PAGE, token=token)
            for obj in page.items:
                node = obj.get("spec", {}).get("nodeName", "")
                if node in found:
                    found[node].append(tenant(obj))
            token = page.token
            if not token:
                return {node: tuple(tenants) for node, tenants in found.items()}

    async def _budgets(self) -> tuple[PodBudget, ...]:
        page = await self._context.objects.list(DISRUPTION_BUDGET)
        return tuple(pod_budget(each) for each in page.items)
