"""Ports that record the writes of operators, and report forbidden ones."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from karpy.codec.fields import JsonObject
from karpy.errors import BadRequest, Invalid
from karpy.model.instances import Catalog
from karpy.model.kinds import EVENTS_EVENT, LEASE, NODE, NODE_CLAIM, POD, Kind
from karpy.model.labels import TERMINATION_TIME
from karpy.model.nodes import RepairPolicy
from karpy.model.records import ClaimRecord
from karpy.model.times import span
from karpy.ports.cloud import CloudProvider, LaunchSpec, Machine
from karpy.ports.objects import (
    EVERYTHING,
    GRACEFULLY,
    Page,
    Patch,
    Query,
    Removal,
    WatchEvent,
)
from karpy.sim.objects import EmbeddedObjects
from karpy.sim.store.conditions import condition_of
from karpy.sim.world import World
from tests.swarm.findings import Law
from tests.swarm.troubles import Outage

Report = Callable[[Law, str], None]

_UNCOUNTED: Final = frozenset({EVENTS_EVENT, LEASE})
_SLACK: Final = timedelta(seconds=2)


class Deadlines:
    """Remembers the termination deadline of each machine, also after its claim is gone."""

    def __init__(self, world: World) -> None:
        self._times: dict[str, datetime] = {}
        world.store.subscribe(NODE_CLAIM, self._on_claim)

    def of(self, node: JsonObject) -> datetime | None:
        """Return the termination deadline of a node's machine, None if it has none."""
        return self._times.get((node.get("spec") or {}).get("providerID", ""))

    def _on_claim(self, event: WatchEvent, before: JsonObject | None) -> None:
        del before
        machine = (event.object.get("status") or {}).get("providerID")
        text = (event.object["metadata"].get("annotations") or {}).get(TERMINATION_TIME)
        if machine and text:
            self._times[machine] = datetime.fromisoformat(text)


class WitnessedObjects(EmbeddedObjects):
    """The API server with recorded writes."""

    def __init__(self, world: World, report: Report, outage: Outage, deadlines: Deadlines) -> None:
        super().__init__(world.store)
        self._world = world
        self._report = report
        self._outage = outage
        self._deadlines = deadlines
        self.writes: list[str] = []
        """Writes that changed something or may have."""
        self.on_disruption: list[Callable[[JsonObject], None]] = []
        """Called with each NodeClaim that is about to be deleted for a disruption."""

    async def get(self, kind: Kind, name: str, namespace: str = "") -> JsonObject:
        """Return one object as it is now."""
        self._outage.check()
        return await super().get(kind, name, namespace)

    async def list(
        self, kind: Kind, query: Query = EVERYTHING, *, limit: int = 0, token: str = ""
    ) -> Page:
        """Return objects in the order of namespace and name, all of them or page by page."""
        self._outage.check()
        return await super().list(kind, query, limit=limit, token=token)

    async def create(
        self, kind: Kind, obj: JsonObject, *, subresource: str = "", dry_run: bool = False
    ) -> JsonObject:
        """Add an object; evict a pod or bind one with a subresource."""
        name = _name(obj)
        with _Attempt(self, f"create {kind} {name} {subresource}".rstrip(), kind):
            return await super().create(kind, obj, subresource=subresource, dry_run=dry_run)

    async def replace(
        self, kind: Kind, obj: JsonObject, *, subresource: str = "", dry_run: bool = False
    ) -> JsonObject:
        """Write an object anew; with a `resourceVersion` only if that is still the current one."""
        with _Attempt(self, f"replace {kind} {_name(obj)}", kind):
            return await super().replace(kind, obj, subresource=subresource, dry_run=dry_run)

    async def patch(
        self,
        kind: Kind,
        name: str,
        patch: Patch,
        *,
        namespace: str = "",
        subresource: str = "",
        dry_run: bool = False,
    ) -> JsonObject:
        """Change an object; APPLY adds it if it is not there."""
        with _Attempt(self, f"patch {kind} {name} {patch.body}", kind):
            return await super().patch(
                kind, name, patch, namespace=namespace, subresource=subresource, dry_run=dry_run
            )

    async def delete(
        self, kind: Kind, name: str, *, namespace: str = "", removal: Removal = GRACEFULLY
    ) -> None:
        """Delete an object, or mark it so while finalizers or its grace period hold it."""
        if kind == POD:
            self._check_deletion(name, namespace)
        with _Attempt(self, f"delete {kind} {name}", kind):
            if kind == NODE_CLAIM:
                self._notify_disruption(name)
            await super().delete(kind, name, namespace=namespace, removal=removal)

    def begin(self) -> None:
        """Raise Unreachable if the server is out of reach."""
        self._outage.check()

    def note(self, what: str, kind: Kind, error: BaseException | None) -> None:
        """Record a write and its answer."""
        if isinstance(error, Invalid | BadRequest):
            self._report(Law.INVALID, f"{what}: {error}")
        elif error is None and kind not in _UNCOUNTED:
            self.writes.append(what)

    def _notify_disruption(self, name: str) -> None:
        claim = self._world.store.find(NODE_CLAIM, name)
        if claim is not None and "deletionTimestamp" not in claim["metadata"]:
            for callback in self.on_disruption:
                callback(claim)

    def _check_deletion(self, name: str, namespace: str) -> None:
        """Report the deletion of a pod that should be evicted: its node has no expired deadline."""
        pod = self._world.store.find(POD, name, namespace)
        if pod is None:
            return
        node = self._world.store.find(NODE, pod["spec"].get("nodeName", ""))
        own = span(pod["spec"].get("terminationGracePeriodSeconds", 30))
        deadline = None if node is None else self._deadlines.of(node)
        if deadline is None or deadline - self._world.clock.now() > own + _SLACK:
            self._report(Law.BUDGET, f"pod {name} is deleted; the node ends by {deadline}")


class _Attempt:
    """A context manager that records a write with its answer."""

    def __init__(self, witness: WitnessedObjects, what: str, kind: Kind) -> None:
        self._witness = witness
        self._what = what
        self._kind = kind

    def __enter__(self) -> None:
        self._witness.begin()

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        self._witness.note(self._what, self._kind, error)


class WitnessedCloud:
    """The cloud with recorded launches and terminations."""

    def __init__(
        self, cloud: CloudProvider, world: World, report: Report, deadlines: Deadlines
    ) -> None:
        self._cloud = cloud
        self._world = world
        self._report = report
        self._deadlines = deadlines
        self.orders: list[str] = []
        """Launches and terminations."""

    @property
    def name(self) -> str:
        return self._cloud.name

    @property
    def repair_policies(self) -> tuple[RepairPolicy, ...]:
        return self._cloud.repair_policies

    def start(self) -> None:
        self._cloud.start()

    async def close(self) -> None:
        await self._cloud.close()

    def catalog(self) -> Catalog:
        return self._cloud.catalog()

    async def reboot(self, provider_id: str, operation: str) -> None:
        await self._cloud.reboot(provider_id, operation)

    async def launch(self, spec: LaunchSpec) -> Machine:
        machine = await self._cloud.launch(spec)
        self.orders.append(f"launch {spec.claim}")
        there = [each for each in await self._cloud.machines() if each.claim == spec.claim]
        if len(there) > 1:
            self._report(Law.ONE_MACHINE, f"{spec.claim} has {len(there)} machines")
        return machine

    async def terminate(self, provider_id: str) -> None:
        self._check_end(provider_id)
        self.orders.append(f"terminate {provider_id}")
        await self._cloud.terminate(provider_id)

    async def machine(self, provider_id: str) -> Machine:
        return await self._cloud.machine(provider_id)

    async def machines(self) -> Sequence[Machine]:
        return await self._cloud.machines()

    async def drift(self, claim: ClaimRecord) -> str:
        return await self._cloud.drift(claim)

    def _check_end(self, provider_id: str) -> None:
        """Report a termination of a machine with pods, with a claim, and before its deadline."""
        if claim_with(self._world, provider_id) is None:
            return
        for node in _with_machine(self._world.store.list(NODE), provider_id):
            ready = condition_of(node, "Ready")
            if ready is None or ready["status"] != "True":
                continue
            deadline = self._deadlines.of(node)
            if deadline is not None and self._world.clock.now() >= deadline - _SLACK:
                continue
            name = node["metadata"]["name"]
            left = [_name(each) for each in self._world.store.pods_on(name) if _has_to_leave(each)]
            if left:
                self._report(Law.DRAIN, f"{name} ends under {', '.join(left)}")


def claim_with(world: World, provider_id: str) -> JsonObject | None:
    """Return the NodeClaim of a machine, if there is one."""
    claims = world.store.list(NODE_CLAIM)
    ours = (each for each in claims if (each.get("status") or {}).get("providerID") == provider_id)
    return next(ours, None) if provider_id else None


def _with_machine(nodes: Iterable[JsonObject], provider_id: str) -> list[JsonObject]:
    return [each for each in nodes if (each.get("spec") or {}).get("providerID") == provider_id]


def _has_to_leave(pod: JsonObject) -> bool:
    owners = pod["metadata"].get("ownerReferences") or ()
    return (
        "deletionTimestamp" not in pod["metadata"]
        and pod["status"].get("phase") in {"Pending", "Running"}
        and not any(each["kind"] == "DaemonSet" for each in owners)
    )


def _name(obj: JsonObject) -> str:
    meta = obj.get("metadata") or {}
    return str(meta.get("name") or meta.get("generateName") or "")
