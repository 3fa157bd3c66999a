"""The queue of disruption commands: validate each, carry it out, and keep its state."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.barriers import Barrier
from karpy.codec.uids import derived_uid
from karpy.codec.unreadable import bound_pod, pod_budget
from karpy.controllers.clusterstate import ClusterState, Commands
from karpy.controllers.context import ControllerContext, decide_in_time
from karpy.controllers.nominations import NodeNominations
from karpy.core.announcements import created_count, created_remark
from karpy.core.disruption.confirmation import Occupancy, confirmation_question, nodes_to_confirm
from karpy.core.disruption.decide import (
    Pass,
    decide_nodes,
    method_of,
    validate,
    verdict_of_validation,
)
from karpy.core.disruption.evaluation import Evaluation
from karpy.core.disruption.progress import (
    PACE,
    NodeChange,
    Progress,
    advance,
    fail_launch,
    leave_out_refused,
    start,
    start_validated,
    validation_due,
    with_claim_names,
)
from karpy.core.lifecycle.changes import Changes
from karpy.core.nominations import with_all_untried
from karpy.errors import Bug, ClusterError, KarpyError, NotFound
from karpy.model.commands import Command, DisruptionVerdict, Stage
from karpy.model.kinds import DISRUPTION_BUDGET, NODE_CLAIM, POD
from karpy.model.pods import Pod
from karpy.model.records import ClaimRecord, NodeRecord
from karpy.model.snapshot import NodeQuestion, Snapshot, ValidationQuestion
from karpy.ports.objects import Query
from karpy.ports.records import Kept

REMEMBERED: Final = timedelta(hours=24)
"""How long a reboot counts against further reboots of the node."""

OnVerdict = Callable[[NodeQuestion, DisruptionVerdict], None]
"""Called with each decision about nodes, and its question."""

_REQUESTS_AT_ONCE: Final = 10


class Observation(Struct, frozen=True):
    """A snapshot, and the claims and nodes that it was made of."""

    snapshot: Snapshot
    claims: Mapping[str, Kept[ClaimRecord]]
    """By name."""
    nodes: Mapping[str, Kept[NodeRecord]]
    """By name."""


class DisruptionQueue:
    """Advances each command by the present snapshot, writes its changes and keeps its state."""

    def __init__(
        self,
        context: ControllerContext,
        state: ClusterState,
        commands: Commands,
        nominations: NodeNominations,
        on_verdict: OnVerdict = lambda *_: None,
    ) -> None:
        self._context = context
        self._state = state
        self._commands = commands
        self._nominations = nominations
        self._on_verdict = on_verdict
        self._occupants = Occupants(context)
        self._started = 0
        self._deleted: set[str] = set()
        """UIDs of claims that commands have deleted, delivered by a watch or not."""
        self._undelivered: set[str] = set()
        """Names of replacements that no watch has delivered yet."""

    def observe(self) -> Observation:
        """Return the cluster as of now."""
        records = self._context.records
        return Observation(
            with_all_untried(self._state.snapshot()),
            {each.record.name: each for each in records.claims.all()},
            {each.record.name: each for each in records.nodes.all()},
        )

    async def add(self, command: Command, seen: Observation) -> None:
        """Queue a command for its validation, or start it if its method needs none."""
        self._started += 1
        id_ = derived_uid("Command", command.method, str(command.proposed), str(self._started))
        named = replace(command, id=id_)
        for node in command.nominated:
            self._nominations.note(node)
        if method_of(command).is_validated:
            self._commands.keep(named)
        else:
            await self._start(named, seen)

    async def go_on(self) -> timedelta | None:
        """Advance the commands that have begun; return after how long to do so again."""
        begun = self._commands.begun()
        if not begun:
            return None
        undelivered = await asyncio.gather(*map(self._is_undelivered, begun))
        # One observation serves all commands: no two have a node in common.
        seen = self.observe()
        pauses = await asyncio.gather(
            *(
                self._go_on(each, seen)
                for each, is_undelivered in zip(begun, undelivered, strict=True)
                if not is_undelivered
            )
        )
        known = [each for each in pauses if each is not None]
        return PACE if any(undelivered) else min(known, default=None)

    async def validate(self, previous: Pass | None) -> timedelta | None:
        """Validate the commands that are due; return after how long the next is due."""
        pauses = []
        for command in self._commands.proposed():
            left = validation_due(command) - self._context.clock.now()
            if left > timedelta():
                pauses.append(left)
            else:
                pauses.append(await self._validate(command, previous) or PACE)
        return min(pauses, default=None)

    async def carry_out(self, changes: Iterable[NodeChange], seen: Observation) -> bool:
        """Write changes of observed nodes, report failures, and say whether all succeeded."""
        return all(await asyncio.gather(*(self._change(each, seen) for each in changes)))

    async def _validate(self, command: Command, previous: Pass | None) -> timedelta | None:
        with self._barrier(command):
            return await self._decide_again(command, previous)
        return PACE

    async def _decide_again(self, command: Command, previous: Pass | None) -> timedelta | None:
        seen = self.observe()
        others = seen.snapshot.in_command - command.claims
        question = ValidationQuestion(replace(seen.snapshot, in_command=others), command)
        timeout = self._context.decision_timeout.total_seconds()
        validation = await decide_in_time(
            partial(validate, question, previous), timeout, can_wait=True
        )
        self._on_verdict(question, verdict_of_validation(question, validation))
        kept = validation.command
        for node in () if kept is None else kept.nominated:
            self._nominations.note(node)
        progress = start_validated(command, validation, seen.snapshot)
        return await self._take(progress, seen)

    async def _start(self, command: Command, seen: Observation) -> timedelta | None:
        with self._barrier(command):
            return await self._take(start(command, seen.snapshot), seen)
        return PACE

    async def _go_on(self, command: Command, seen: Observation) -> timedelta | None:
        with self._barrier(command):
            return await self._take(advance(command, seen.snapshot), seen)
        return PACE

    def _barrier(self, command: Command) -> Barrier:
        """Return the barrier that ends one command at an error: other commands go on."""
        return Barrier(partial(self._give_up, command))

    def _give_up(self, command: Command, error: KarpyError) -> None:
        """Report an error; a bug ends its command, whose taints the next pass removes."""
        self._context.on_failure(command.id, error)
        if isinstance(error, Bug):
            self._keep(replace(command, stage=Stage.FAILED))

    def _keep(self, command: Command) -> None:
        """Keep the state of a command; after a failure, its nodes back off."""
        self._commands.keep(command)
        if command.stage is Stage.FAILED:
            self._back_off(command)
        for each in command.replacements:
            if each.claim and not command.is_over:
                # A replacement is empty until the nodes are drained, and must not count as empty.
                self._nominations.note(each.claim)

    def _back_off(self, command: Command) -> None:
        self._commands.back_off(self._context.clock.now(), (each.claim for each in command.nodes))

    async def _take(self, planned: Progress, seen: Observation) -> timedelta | None:
        progress = await self._confirmed(planned, seen)
        if progress is None:
            return PACE
        command = progress.command
        # Keep the command before its changes: the next decision must know the deleting nodes.
        self._keep(command)
        is_done = await self.carry_out(progress.changes, seen)
        is_rebooted = command.is_reboot and command.stage is not Stage.FAILED
        if is_rebooted and not self._note_reboot(command, seen, is_done=is_done):
            return PACE
        await self._context.writer.carry_out(progress.outcome)
        if progress.launches and not await self._launch(progress):
            return await self._take(fail_launch(command, seen.snapshot), seen)
        if not len(self._commands):
            self._deleted.clear()
        return progress.outcome.requeue_after

    def _note_reboot(self, command: Command, seen: Observation, *, is_done: bool) -> bool:
        """Record the reboots of a command; say whether they were requested, else back off."""
        if not is_done:
            self._back_off(command)
            return False
        now = self._context.clock.now()
        for each in command.nodes:
            uid = seen.claims[each.claim].record.meta.uid
            self._state.note_reboot(uid, now, now - REMEMBERED)
        return True

    async def _confirmed(self, progress: Progress, seen: Observation) -> Progress | None:
        """Drop nodes whose listed pods forbid the step; return None if they cannot be listed."""
        nodes = [
            each
            for each in nodes_to_confirm(progress, seen.snapshot)
            if seen.claims[each.claim].record.meta.uid not in self._deleted
        ]
        if not nodes:
            return progress
        try:
            occupancy = await self._occupants.list([each.node for each in nodes])
        except KarpyError as error:
            self._context.on_failure(progress.command.id, error)
            return None
        question = confirmation_question(progress.command, nodes, seen.snapshot, occupancy)
        verdict = decide_nodes(question)
        if not verdict.refusals:
            return progress
        self._on_verdict(question, verdict)
        return leave_out_refused(progress, verdict.refusals, Evaluation(seen.snapshot))

    async def _change(self, change: NodeChange, seen: Observation) -> bool:
        """Write the changes of one observed node; say whether that succeeded."""
        claim = seen.claims[change.claim]
        uid = claim.record.meta.uid
        if change.changes.deletes_claim and uid in self._deleted:
            return True
        try:
            is_done = await self._context.writer.carry_out(
                change.changes, claim=claim, node=seen.nodes.get(change.node)
            )
        except KarpyError as error:
            # Reported, not raised: the other nodes of the command go on.
            self._context.on_failure(change.claim, error)
            return False
        if is_done and change.changes.deletes_claim:
            self._deleted.add(uid)
        return is_done

    async def _is_undelivered(self, command: Command) -> bool:
        """Say whether a claim of a command exists that no watch has delivered yet."""
        names = {each.claim for each in command.nodes}
        names |= {each.claim for each in command.replacements}
        for name in sorted(names & self._undelivered):
            if self._context.claim(name) is None:
                try:
                    await self._context.objects.get(NODE_CLAIM, name)
                except NotFound:
                    pass
                except KarpyError as error:
                    self._context.on_failure(command.id, error)
                    return True
                else:
                    return True
            self._undelivered.discard(name)
        return False

    async def _launch(self, progress: Progress) -> bool:
        """Create the claims of all replacements, or of none; say whether they were created."""
        answers = await asyncio.gather(
            *(self._state.apply(each) for each in progress.launches), return_exceptions=True
        )
        made = [each for each in answers if isinstance(each, str)]
        failures = [each for each in answers if isinstance(each, BaseException)]
        if not failures:
            self._undelivered |= set(made)
            self._commands.keep(with_claim_names(progress.command, made))
            reason = progress.command.reason.value.lower()
            counts = tuple(created_count(each, reason) for each in progress.launches)
            remarks = tuple(map(created_remark, progress.launches, made))
            for name, launch in zip(made, progress.launches, strict=True):
                self._nominations.note(name)
                self._state.note_replacement(name, launch)
            await self._context.writer.carry_out(Changes(counts=counts, remarks=remarks))
            return True
        for name in made:
            # If this deletion fails, too, emptiness deletes the node later.
            with suppress(ClusterError):
                await self._context.objects.delete(NODE_CLAIM, name)
        for failure in failures:
            if not isinstance(failure, KarpyError):
                raise failure
            self._context.on_failure(progress.command.id, failure)
        return False


class Occupants:
    """Lists the pods of nodes from the API server, not from the cache."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._slots = asyncio.Semaphore(_REQUESTS_AT_ONCE)

    async def list(self, nodes: Sequence[str]) -> Occupancy:
        """Return all pods of nodes, and the PodDisruptionBudgets if there are any pods."""
        listed = await asyncio.gather(*(self._list(node) for node in nodes))
        budgets = []
        if any(listed):
            page = await self._context.objects.list(DISRUPTION_BUDGET)
            budgets = [pod_budget(each) for each in page.items]
        return Occupancy(dict(zip(nodes, listed, strict=True)), tuple(budgets))

    async def _list(self, node: str) -> tuple[Pod, ...]:
        async with self._slots:
            page = await self._context.objects.list(POD, Query(fields=f"spec.nodeName={node}"))
        watched = self._context.records.pods.by_index(node)
        return _with_unreadable([bound_pod(each) for each in page.items], watched)


def _with_unreadable(pods: Sequence[Pod], watched: Collection[Pod]) -> tuple[Pod, ...]:
    """Mark the listed pods whose watched object is unreadable."""
    problems = {pod.uid: pod.unreadable for pod in watched if pod.unreadable}
    return tuple(
        replace(each, rules=replace(each.rules, unreadable=problems[each.uid]))
        if each.uid in problems
        else each
        for each in pods
    )
