"""The snapshot that every decision is made on: watched objects, commands and nominations."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from karpy.controllers.nominations import ClaimNominations, NodeNominations
from karpy.core.nominations import with_nominated, with_stand_ins
from karpy.model.backoff import Backoff
from karpy.model.census import with_more
from karpy.model.commands import Command, Stage
from karpy.model.nodes import Node, RepairPolicy, RepairRules
from karpy.model.pods import Pod
from karpy.model.records import ClaimRecord
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Launch
from karpy.ports.cluster import Cluster

_FIRST_PAUSE: Final = 20.0
_LONGEST_PAUSE: Final = 600.0
_FORGOTTEN: Final = timedelta(hours=1)
"""Time after which a failure no longer lengthens the next pause."""

BufferPods = Callable[[str], int]
"""Returns the number of CapacityBuffer pods placed on a node, by the name of the node."""


class _Pause(Struct):
    """Until when a NodeClaim is in no new command, after commands with it failed."""

    until: datetime
    backoff: Backoff = field(default_factory=lambda: Backoff(_FIRST_PAUSE, _LONGEST_PAUSE))


class Commands:
    """
    Holds each unfinished command; a NodeClaim is in at most one of them.

    Commands are kept in memory alone. A new leader removes the taints that commands of the previous
    leader have left on nodes, and decides anew.
    """

    def __init__(self) -> None:
        self._commands: dict[str, Command] = {}
        self._pauses: dict[str, _Pause] = {}

    def __len__(self) -> int:
        return len(self._commands)

    def keep(self, command: Command) -> None:
        """Replace a command by its present state; drop it when it is over."""
        if command.is_over:
            self._commands.pop(command.id, None)
        else:
            self._commands[command.id] = command

    def back_off(self, now: datetime, claims: Iterable[str]) -> None:
        """Keep NodeClaims out of commands for a while, longer with each failed command."""
        for claim in claims:
            pause = self._pauses.setdefault(claim, _Pause(now))
            pause.until = now + timedelta(seconds=pause.backoff.next_pause())

    def backoffs(self, now: datetime) -> Mapping[str, datetime]:
        """Return until when NodeClaims are kept out of commands, by name."""
        self._pauses = {
            claim: each for claim, each in self._pauses.items() if now < each.until + _FORGOTTEN
        }
        return {claim: each.until for claim, each in self._pauses.items() if now < each.until}

    def proposed(self) -> list[Command]:
        """Return the commands that wait for their validation."""
        return [each for each in self._commands.values() if each.stage is Stage.PROPOSED]

    def begun(self) -> list[Command]:
        """Return the commands that are being carried out."""
        return [each for each in self._commands.values() if each.stage is not Stage.PROPOSED]

    @property
    def is_forming(self) -> bool:
        """Whether a command is forming, which excludes new proposals."""
        return any(each.is_forming for each in self._commands.values())

    @property
    def claims(self) -> frozenset[str]:
        """The NodeClaims that commands disrupt."""
        return _united(each.claims for each in self._commands.values())

    @property
    def disrupting(self) -> frozenset[str]:
        """The NodeClaims of commands that are being carried out."""
        return _united(each.claims for each in self.begun())

    @property
    def deleting(self) -> frozenset[str]:
        """The NodeClaims that commands are going to delete: their pods need another node."""
        return _united(each.deleting for each in self._commands.values())

    @property
    def replacements(self) -> frozenset[str]:
        """The NodeClaims that commands have created as replacements."""
        return frozenset(
            replacement.claim
            for each in self._commands.values()
            for replacement in each.replacements
            if replacement.claim
        )


def _united(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset(name for each in sets for name in each)


class Promises(Struct, frozen=True):
    """What earlier decisions hold on to: unfinished commands and nominations."""

    commands: Commands
    nominations: NodeNominations
    claim_nominations: ClaimNominations


class ClusterState:
    """
    The port Cluster, with commands, nominations, buffers and reboots in its snapshots.

    Of these only the reboots are stored here.
    """

    def __init__(
        self,
        cluster: Cluster,
        promises: Promises,
        *,
        is_ours: Callable[[ClaimRecord], bool] = lambda _: True,
        virtual_pods: Callable[[], tuple[Pod, ...]] = tuple,
        buffer_pods: BufferPods = lambda _: 0,
        repair_policies: tuple[RepairPolicy, ...] = (),
    ) -> None:
        """Take also the virtual pods of CapacityBuffers, and the policies of node repair."""
        self._cluster = cluster
        self._promises = promises
        self._is_ours = is_ours
        self._virtual_pods = virtual_pods
        self._buffer_pods = buffer_pods
        self._policies = repair_policies
        self._reboots: Mapping[str, tuple[datetime, ...]] = {}

    @property
    def is_synced(self) -> bool:
        """Whether the snapshot is complete enough for decisions."""
        return self._cluster.is_synced

    async def wait_until_synced(self) -> None:
        """Return as soon as the snapshot is complete enough for decisions."""
        await self._cluster.wait_until_synced()

    async def apply(self, launch: Launch) -> str:
        """Create the NodeClaim of a launch; return its name."""
        return await self._cluster.apply(launch)

    def snapshot(self) -> Snapshot:
        """Return the cluster as of now, for one decision."""
        snapshot, commands = self._cluster.snapshot(), self._promises.commands
        deleting = commands.deleting
        if virtual := self._virtual_pods():
            snapshot = replace(snapshot, pods=with_more(snapshot.pods, virtual))
        snapshot = replace(
            snapshot,
            nodes=tuple([self._promised(each, deleting) for each in snapshot.nodes]),
            in_command=commands.claims,
            command_backoffs=commands.backoffs(snapshot.now),
            repair=RepairRules(self._policies, self._reboots),
        )
        claim_nominations = self._promises.claim_nominations
        snapshot = with_nominated(
            snapshot, claim_nominations.places(), claim_nominations.settling()
        )
        return with_stand_ins(snapshot, claim_nominations.predecessors())

    def note_replacement(self, claim: str, launch: Launch) -> None:
        """Keep places on the replacement of a command for pods of StatefulSets."""
        self._promises.claim_nominations.note_replacement(claim, launch)

    def note_reboot(self, uid: str, now: datetime, since: datetime) -> None:
        """Record the reboot of a claim's node, by UID; drop all reboots before `since`."""
        reboots = {**self._reboots, uid: (*self._reboots.get(uid, ()), now)}
        self._reboots = {
            key: recent
            for key, times in reboots.items()
            if (recent := tuple(each for each in times if each >= since))
        }

    def _promised(self, node: Node, deleting: frozenset[str]) -> Node:
        until = self._promises.nominations.until(node.claim, node.name)
        pods = self._buffer_pods(node.name)
        is_deleting = node.is_deleting or node.claim in deleting
        claim = node.claim_record
        is_foreign = claim is not None and not self._is_ours(claim)
        if until is None and not pods and not is_foreign and is_deleting == node.is_deleting:
            return node
        return replace(
            node,
            nominated_until=until,
            buffer_pods=pods,
            is_deleting=is_deleting,
            is_foreign=is_foreign,
        )
