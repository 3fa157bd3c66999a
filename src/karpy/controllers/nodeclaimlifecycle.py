"""The controller `nodeclaim.lifecycle`: launch, registration, initialization, termination."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from msgspec.structs import replace

from karpy.controllers.context import AFTER_CONFLICT, ControllerContext, only, seconds
from karpy.controllers.nominations import PodNominator
from karpy.controllers.queue import WorkQueue
from karpy.core.lifecycle.changes import Changes, joined
from karpy.core.lifecycle.launch import (
    LaunchedMachine,
    add_finalizer,
    is_to_launch,
    launch_failed,
    launch_succeeded,
    launch_without_capacity,
    launch_without_class,
)
from karpy.core.lifecycle.registration import ClaimInputs, GatePolicy, advance, is_ready_but_gated
from karpy.core.lifecycle.termination import after_claim_machine_deletion, terminate_claim
from karpy.errors import (
    CloudError,
    MachineNotFound,
    NoCapacity,
    NodeClassNotReady,
)
from karpy.model.instances import Catalog, InstanceType
from karpy.model.labels import INSTANCE_TYPE
from karpy.model.pods import Pod
from karpy.model.recent import Recent
from karpy.model.records import ClaimRecord, NodeRecord
from karpy.model.requirements import Requirement, Requirements, collect, why_incompatible
from karpy.model.resources import Resources, fits
from karpy.model.verdicts import LaunchOption
from karpy.ports.cloud import LaunchSpec, Machine, RegistrationHook
from karpy.ports.records import Kept

WORKERS: Final = 100
_Question: TypeAlias = tuple[
    tuple[InstanceType, ...], frozenset[str], tuple[Requirement, ...], Resources
]
"""What the offerings for a claim depend on."""
_DELETED: Final = Changes(deletes_node=True)
PodsOf = Callable[[str], Iterable[Pod]]
"""Returns the pods that a NodeClaim was created for."""
OnAttempt = Callable[[ClaimRecord, Changes], None]
"""Called with a claim whose node has registered or failed to, as the changes say."""


class LifecycleController:
    """Observe, decide, apply. core.lifecycle decides."""

    def __init__(
        self,
        context: ControllerContext,
        *,
        pods_of: PodsOf = lambda _: (),
        on_attempt: OnAttempt = lambda *_: None,
        nominator: PodNominator | None = None,
        hooks: Sequence[RegistrationHook] = (),
    ) -> None:
        self._context = context
        self._nominator = nominator
        self._hooks = hooks
        self._pods_of = pods_of
        self._on_attempt = on_attempt
        self._queue = WorkQueue(context.observer)
        self._options: Recent[_Question, tuple[LaunchOption, ...]] = Recent()
        self._machines: dict[str, Machine] = {}
        """Machines by UID of their claim, until the claim has their provider ID."""
        if nominator is not None:
            nominator.listen(self._queue.add)
        context.records.claims.listen(self._on_claim)
        context.records.nodes.listen(self._on_node)
        for kept in context.records.claims.all():
            self._queue.add(kept.record.name)

    async def run(self, workers: int = WORKERS) -> None:
        """Reconcile claims, until cancelled."""
        await self._queue.run(self.reconcile, workers=workers, on_failure=self._context.on_failure)

    async def reconcile(self, name: str) -> float | None:
        """Take the next step of one claim; return after how long to reconcile again."""
        kept = self._context.claim(name)
        if kept is None:
            return None
        if kept.record.meta.is_deleting:
            return await self._end(kept)
        held = add_finalizer(kept.record)
        if held.claim != kept.record:
            # The next step needs the claim with its finalizer, which the watch delivers soon.
            is_held = await self._context.writer.carry_out(held, claim=kept)
            return None if is_held else AFTER_CONFLICT
        return await self._advance(kept)

    async def _advance(self, kept: Kept[ClaimRecord]) -> float | None:
        changes, failure = Changes(kept.record), None
        name, nominator = kept.record.name, self._nominator
        gate_policy = nominator.gate_policy(name) if nominator else GatePolicy.FREE
        if is_to_launch(kept.record):
            changes, failure = await self._launch(kept.record)
        nodes = self._context.nodes_of(changes.claim or kept.record)
        if not changes.deletes_claim:
            claim = changes.claim or kept.record
            pending = tuple(each.name for each in self._hooks if each.is_pending(claim))
            inputs = ClaimInputs(
                tuple(each.record for each in nodes), pending, gate_policy=gate_policy
            )
            then = advance(claim, inputs, self._context.clock.now())
            changes = joined(changes, then)
        node = only(nodes)
        if gate_policy is not GatePolicy.FREE and node is not None:
            # Nominated pods wait for the node: write it before its claim.
            if not await self._context.writer.carry_out(Changes(node=changes.node), node=node):
                return AFTER_CONFLICT
            self._report_node(
                changes.claim or kept.record, changes.node or node.record, gate_policy
            )
            changes = replace(changes, node=None)
        is_written = await self._context.writer.carry_out(changes, claim=kept, node=node)
        if failure is not None:
            raise failure
        if not is_written:
            return AFTER_CONFLICT
        if changes.has_registered is not None:
            self._on_attempt(changes.claim or kept.record, changes)
        return seconds(changes.requeue_after)

    def _report_node(self, claim: ClaimRecord, node: NodeRecord, gate_policy: GatePolicy) -> None:
        """Report to the nominator that a node is ready, or that it needs no nomination."""
        is_ready = is_ready_but_gated(claim, node)
        if self._nominator is None or is_ready is None:
            return
        if not is_ready:
            self._nominator.forget(claim.name)
        elif gate_policy is GatePolicy.HELD:
            self._nominator.note_ready(claim.name, node.name)

    async def _launch(self, claim: ClaimRecord) -> tuple[Changes, CloudError | None]:
        """Launch the machine of a claim; also return the error if the launch is to be retried."""
        machine = self._machines.get(claim.meta.uid)
        try:
            if machine is None:
                catalog = self._context.cloud.catalog()
                machine = await self._context.cloud.launch(self._spec(claim, catalog))
                self._machines[claim.meta.uid] = machine
        except NoCapacity as error:
            return launch_without_capacity(claim, error.message, self._pods_of(claim.name)), None
        except NodeClassNotReady as error:
            return launch_without_class(claim, error.message), None
        except CloudError as error:
            now = self._context.clock.now()
            return launch_failed(claim, error.message, now, error.reason), error
        return launch_succeeded(claim, launched(machine), self._context.clock.now()), None

    def _spec(self, claim: ClaimRecord, catalog: Catalog) -> LaunchSpec:
        """Return the launch of a claim's machine; equal claims share the search for offerings."""
        types = catalog.types_for(claim.pool)
        question = types, catalog.well_known, claim.requirements, claim.requests
        options = self._options.answer(question, lambda: launch_options(claim, catalog))
        return launch_spec(claim, catalog, options)

    async def _end(self, kept: Kept[ClaimRecord]) -> float | None:
        claim, machine = kept.record, self._machines.get(kept.record.meta.uid)
        if machine is not None and not claim.provider_id:
            claim = replace(claim, provider_id=machine.provider_id)
        nodes = self._context.nodes_of(claim)
        step = terminate_claim(
            claim,
            [each.record for each in nodes],
            self._context.clock.now(),
            is_blind=claim.node_name in self._context.records.nodes.unreadable,
        )
        # The provider ID is written before the claim waits for its node, which is found by it.
        changes = joined(Changes(claim), step.changes)
        if step.ends_machine:
            is_gone = await self._terminate(claim)
            now = self._context.clock.now()
            then = after_claim_machine_deletion(changes.claim or claim, now, is_gone=is_gone)
            changes = joined(changes, then)
        if not await self._context.writer.carry_out(changes, claim=kept):
            return AFTER_CONFLICT
        nodes_to_delete = [each for each in nodes if each.record.name in step.nodes_to_delete]
        ended = [
            await self._context.writer.carry_out(_DELETED, node=each) for each in nodes_to_delete
        ]
        return seconds(changes.requeue_after) if all(ended) else AFTER_CONFLICT

    async def _terminate(self, claim: ClaimRecord) -> bool:
        """Terminate a claim's machine; say whether it is gone."""
        try:
            await self._context.cloud.terminate(claim.provider_id)
        except MachineNotFound:
            return True
        return False

    def _on_claim(
        self, key: str, before: Kept[ClaimRecord] | None, after: Kept[ClaimRecord] | None
    ) -> None:
        if before is not None and (after is None or after.record.provider_id):
            self._machines.pop(before.record.meta.uid, None)
        if after is not None:
            self._queue.add(key)
        elif self._nominator is not None:
            self._nominator.forget(key)

    def _on_node(
        self, _: str, before: Kept[NodeRecord] | None, after: Kept[NodeRecord] | None
    ) -> None:
        for kept in (before, after):
            if kept is not None:
                for claim in self._context.claims_of(kept.record):
                    self._queue.add(claim.record.name)


def launch_options(claim: ClaimRecord, catalog: Catalog) -> tuple[LaunchOption, ...]:
    """Return the offerings that fit a claim and meet its requirements, cheapest first."""
    options = sorted(
        set(_options(claim, collect(claim.requirements), catalog)),
        key=lambda each: (each.price, each.instance_type, each.zone, each.capacity_type),
    )
    return tuple(options)


def launch_spec(
    claim: ClaimRecord, catalog: Catalog, options: tuple[LaunchOption, ...]
) -> LaunchSpec:
    """Return the launch of a machine for a claim by any of these options."""
    requirements = collect(claim.requirements)
    reserved = requirements.get(catalog.reservation_label)
    is_listed = reserved is not None and not reserved.complement
    return LaunchSpec(
        claim=claim.name,
        token=claim.meta.uid,
        pool=claim.pool,
        node_class=claim.node_class.name,
        options=options,
        labels=claim.meta.labels,
        reservations=tuple(sorted(reserved.values)) if reserved and is_listed else (),
        requirements=requirements,
        requests=claim.requests,
        annotations=claim.meta.annotations,
        taints=claim.taints,
        startup_taints=claim.startup_taints,
    )


def launched(machine: Machine) -> LaunchedMachine:
    """Return the properties of a machine that its claim records."""
    return LaunchedMachine(
        machine.provider_id,
        machine.labels,
        machine.annotations,
        machine.capacity,
        machine.allocatable,
        machine.image,
    )


def _options(
    claim: ClaimRecord, requirements: Requirements, catalog: Catalog
) -> Iterator[LaunchOption]:
    may_lack = catalog.well_known | {catalog.reservation_label}
    named = requirements.get(INSTANCE_TYPE)
    is_allowed: dict[int, bool] = {}
    """By the identity of an offering's requirements, which many instance types share."""
    for type_ in catalog.types_for(claim.pool):
        if named is not None and type_.name not in named:
            continue
        if why_incompatible(requirements, type_.requirements, may_lack) is not None:
            continue
        if not fits(claim.requests, type_.allocatable):
            continue
        for offering in type_.offerings:
            key = id(offering.requirements)
            if key not in is_allowed:
                clash = why_incompatible(requirements, offering.requirements, may_lack)
                is_allowed[key] = clash is None
            if is_allowed[key] and offering.is_launchable:
                yield LaunchOption(
                    type_.name, offering.price, offering.zone, offering.capacity_type
                )
