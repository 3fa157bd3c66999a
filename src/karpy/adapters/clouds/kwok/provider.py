"""The port CloudProvider on a cluster with KWOK."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

from karpy.adapters.clouds.kwok.access import asking, every, find, find_class
from karpy.adapters.clouds.kwok.arrivals import Arrivals, OnTrouble
from karpy.adapters.clouds.kwok.naming import name_of, node_name
from karpy.adapters.clouds.kwok.nodeclasses import KwokNodeClass
from karpy.adapters.clouds.kwok.nodes import (
    claimed_machine,
    is_machine,
    new_machine,
    read_machine,
)
from karpy.adapters.clouds.kwok.offers import Shelf, choose, stock
from karpy.adapters.clouds.kwok.repairs import REPAIR_POLICIES
from karpy.codec.fields import FieldInvalid, Fields
from karpy.codec.records import read_claim_record
from karpy.core.lifecycle.conditions import LAUNCHED, REGISTERED
from karpy.errors import (
    CloudUnavailable,
    MachineNotFound,
    NoCapacity,
    NodeClassNotReady,
    NotFound,
)
from karpy.model.backoff import Backoff
from karpy.model.instances import Catalog
from karpy.model.kinds import KWOK_NODE_CLASS, NODE, NODE_CLAIM
from karpy.model.nodes import RepairPolicy
from karpy.model.records import ClaimRecord
from karpy.ports.clock import Clock
from karpy.ports.cloud import LaunchSpec, Machine
from karpy.ports.objects import Objects, Patch, PatchType

_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 30.0
_CLASS_FRESH: Final = timedelta(seconds=1)


class KwokProvider:
    """
    A CloudProvider whose machines are Nodes that KWOK, or the embedded kubelets, simulate.

    A launch returns at once, and creates the Node in the background after the registration delay of
    the node class. The name of the Node, and the choice among equal offerings, follow from the
    NodeClaim, so that another process makes the same choice. `start` creates the Nodes that an
    earlier process had still to create; `close` leaves them to the next process.

    A machine is gone as soon as its Node is being deleted: there is nothing else to terminate.
    """

    name: Final = "kwok"

    def __init__(
        self,
        objects: Objects,
        clock: Clock,
        catalog: Catalog,
        *,
        on_trouble: OnTrouble = lambda *_: None,
    ) -> None:
        self._objects = objects
        self._clock = clock
        self._catalog = catalog
        self._may_lack = catalog.well_known | {catalog.reservation_label}
        self._on_trouble = on_trouble
        self._shelves: dict[str, Shelf] = {}
        self._classes: dict[str, tuple[datetime, KwokNodeClass]] = {}
        """Node classes by name, and when each was read."""
        self._asking = asyncio.Lock()
        """Held while a node class is read, so that concurrent launches share the answer."""
        self._arrivals = Arrivals(objects, on_trouble)
        self._recovery: asyncio.Task[None] | None = None
        self._inherited: frozenset[str] | None = None
        """Nodes that existed when this process started; None until they are listed."""

    def start(self) -> None:
        """Create the Nodes that NodeClaims still wait for, in the background."""
        assert self._recovery is None, "it has started already"
        self._recovery = asyncio.get_running_loop().create_task(
            self._recover(), name="kwok recovery"
        )

    async def close(self) -> None:
        """Stop creating Nodes, after all launches have stopped; `start` may follow again."""
        recovery, self._recovery = self._recovery, None
        self._inherited = None
        if recovery is not None:
            recovery.cancel()
            await asyncio.gather(recovery, return_exceptions=True)
        await self._arrivals.close()

    def catalog(self) -> Catalog:
        """Return all instance types; KWOK's never sell out."""
        return self._catalog

    async def launch(self, spec: LaunchSpec) -> Machine:
        """
        Launch a machine, whose Node is created later.

        Raise NoCapacity if no offering satisfies the launch, NodeClassNotReady if the node class is
        not ready or does not exist.
        """
        name = node_name(spec.claim, spec.token)
        known = self._arrivals.find(name) or await self._find_inherited(name)
        if known is not None:
            return known
        node_class = await self._class(spec.node_class)
        if node_class.problem:
            # Differs: a launch with a node class that does not exist: Karpenter reports a lack of
            # capacity; Karpy reports NodeClassNotReady, which is the cause.
            what = f"{KWOK_NODE_CLASS.name.lower()}/{spec.node_class}"
            raise NodeClassNotReady(name=what, problem=node_class.problem)
        offer = choose(spec, self._shelf(spec.pool), self._may_lack)
        if offer is None:
            raise NoCapacity(claim=spec.claim, options=len(spec.options))
        machine = new_machine(spec, offer, self._clock.now())
        return self._arrivals.expect(name, machine, node_class.delay.total_seconds())

    async def terminate(self, provider_id: str) -> None:
        """
        Terminate a machine; always raise MachineNotFound, because it is gone at once.

        A Node that is being deleted is left to its drain. Any other Node is deleted: without a
        finalizer it is then gone, with the finalizer it is drained first.
        """
        # Differs: a NodeClaim that is deleted before its Node is registered: Karpenter leaves the
        # Node behind; Karpy deletes it, because no other controller would.
        name = name_of(provider_id)
        if name is not None:
            await self._arrivals.call_off(name)
            known = await self._find(name)
            if known is not None and not known.is_terminating:
                with asking(f"delete node `{name}`"), suppress(NotFound):
                    await self._objects.delete(NODE, name)
        raise MachineNotFound(provider_id=provider_id)

    async def machine(self, provider_id: str) -> Machine:
        """Return one machine, with or without a Node yet; raise MachineNotFound if it is gone."""
        name = name_of(provider_id)
        if name is not None:
            machine = self._arrivals.find(name) or await self._find(name)
            if machine is not None and not machine.is_terminating:
                return machine
        raise MachineNotFound(provider_id=provider_id)

    async def machines(self) -> Sequence[Machine]:
        """List the machines with a Node, then those without a Node yet."""
        # Read before the Nodes are listed: a Node created meanwhile is in one of them, or both.
        pending = self._arrivals.machines()
        existing = [each async for each in self._machines()]
        known = {each.provider_id for each in existing}
        return [
            *(each for each in existing if not each.is_terminating),
            *(each for each in pending.values() if each.provider_id not in known),
        ]

    async def drift(self, claim: ClaimRecord) -> str:
        """Return an empty reason: a KWOKNodeClass has nothing that a machine could drift from."""
        del claim
        return ""

    @property
    def repair_policies(self) -> tuple[RepairPolicy, ...]:
        """The conditions that call for repair; constant."""
        return REPAIR_POLICIES

    async def reboot(self, provider_id: str, operation: str) -> None:
        """Give a Node another boot ID, which is the visible effect of a reboot."""
        machine = await self.machine(provider_id)
        name = name_of(machine.provider_id) or ""
        body = {"status": {"nodeInfo": {"bootID": f"kwok-{operation}"}}}
        with asking(f"patch node `{name}`"):
            try:
                await self._objects.patch(
                    NODE, name, Patch(PatchType.MERGE, body), subresource="status"
                )
            except NotFound as error:
                raise MachineNotFound(provider_id=provider_id) from error

    async def recover(self, claims: Iterable[ClaimRecord]) -> tuple[Machine, ...]:
        """
        Create the Nodes that these NodeClaims still wait for; return their machines.

        A Node is missing if the process that launched it ended within the registration delay.
        """
        waiting = {
            name: claim
            for claim in claims
            if (name := _awaited(claim)) is not None and self._arrivals.find(name) is None
        }
        if not waiting:
            return ()
        existing = {each.provider_id async for each in self._machines()}
        names = {each.node_class.name for each in waiting.values()}
        classes = {each: await find_class(self._objects, each) for each in sorted(names)}
        recovered: list[Machine] = []
        for name, claim in sorted(waiting.items()):
            if claim.provider_id not in existing and self._arrivals.find(name) is None:
                machine = claimed_machine(claim, self._clock.now())
                delay = classes[claim.node_class.name].delay
                self._arrivals.expect(name, machine, self._seconds_left(claim, delay))
                recovered.append(machine)
        return tuple(recovered)

    async def _recover(self) -> None:
        backoff = Backoff(_FIRST_PAUSE, _LONGEST_PAUSE)
        while True:
            try:
                await self.recover([each async for each in self._claims()])
                names = [each["metadata"]["name"] async for each in every(self._objects, NODE)]
                self._inherited = frozenset(names)
            except CloudUnavailable as error:
                self._on_trouble("make the Nodes that NodeClaims wait for", error)
                await asyncio.sleep(backoff.next_pause())
            else:
                return

    async def _claims(self) -> AsyncIterator[ClaimRecord]:
        async for obj in every(self._objects, NODE_CLAIM):
            with suppress(FieldInvalid):
                yield read_claim_record(Fields(obj))

    async def _machines(self) -> AsyncIterator[Machine]:
        """Yield every machine that has a Node, including terminating ones."""
        async for obj in every(self._objects, NODE):
            if is_machine(obj):
                yield read_machine(obj, self._clock.now())

    async def _find(self, name: str) -> Machine | None:
        obj = await find(self._objects, NODE, name)
        if obj is None or not is_machine(obj):
            return None
        return read_machine(obj, self._clock.now())

    async def _class(self, name: str) -> KwokNodeClass:
        """Return a node class, cached for a second, because many launches read the same one."""
        async with self._asking:
            now, known = self._clock.now(), self._classes.get(name)
            if known is None or now - known[0] > _CLASS_FRESH:
                known = self._classes[name] = now, await find_class(self._objects, name)
        return known[1]

    async def _find_inherited(self, name: str) -> Machine | None:
        """Return a machine that an earlier process may have launched."""
        if self._inherited is not None and name not in self._inherited:
            return None
        return await self._find(name)

    def _seconds_left(self, claim: ClaimRecord, delay: timedelta) -> float:
        """Return the rest of the registration delay of a claim."""
        now, launched = self._clock.now(), claim.conditions.get(LAUNCHED)
        since = now if launched is None else launched.changed
        return max(since + delay - now, timedelta()).total_seconds()

    def _shelf(self, pool: str) -> Shelf:
        key = pool if pool in self._catalog.by_pool else ""
        shelf = self._shelves.get(key)
        if shelf is None:
            shelf = self._shelves[key] = stock(self._catalog, pool)
        return shelf


def _awaited(claim: ClaimRecord) -> str | None:
    """Return the name of the Node that a claim waits for, or None if it waits for no Node."""
    if claim.meta.is_deleting or claim.conditions.is_true(REGISTERED):
        return None
    return name_of(claim.provider_id)
