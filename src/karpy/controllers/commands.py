"""The disruption commands that are under way."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct, field

from karpy.model.backoff import Backoff
from karpy.model.commands import Command, Stage

_FIRST_PAUSE: Final = 20.0
_LONGEST_PAUSE: Final = 600.0
_FORGOTTEN: Final = timedelta(hours=1)
"""A failure so long ago makes the next pause no longer."""


class _Pause(Struct):
    """How long a NodeClaim is left alone after commands about it failed."""

    until: datetime
    backoff: Backoff = field(default_factory=lambda: Backoff(_FIRST_PAUSE, _LONGEST_PAUSE))


class Commands:
    """
    Holds each command that is not over; its claims are in no other.

    Commands are kept in memory alone. A leader that takes over finds their taints on the nodes,
    removes them and decides anew.
    """

    def __init__(self) -> None:
        self._commands: dict[str, Command] = {}
        self._pauses: dict[str, _Pause] = {}

    def __len__(self) -> int:
        return len(self._commands)

    def keep(self, command: Command) -> None:
        """Take in what a command has become, or drop it when it is over."""
        if command.is_over:
            self._commands.pop(command.id, None)
        else:
            self._commands[command.id] = command

    def back_off(self, now: datetime, claims: Iterable[str]) -> None:
        """Leave NodeClaims alone for a while, and longer each time a command about them fails."""
        for claim in claims:
            pause = self._pauses.setdefault(claim, _Pause(now))
            pause.until = now + timedelta(seconds=pause.backoff.next_pause())

    def backoffs(self, now: datetime) -> Mapping[str, datetime]:
        """Return until when NodeClaims are left alone after commands about them failed."""
        self._pauses = {
            claim: each for claim, each in self._pauses.items() if now < each.until + _FORGOTTEN
        }
        return {claim: each.until for claim, each in self._pauses.items() if now < each.until}

    def proposed(self) -> list[Command]:
        """Return the commands that wait for their validation."""
        return [each for each in self._commands.values() if each.stage is Stage.PROPOSED]

    def begun(self) -> list[Command]:
        """Return the commands that are carried out."""
        return [each for each in self._commands.values() if each.stage is not Stage.PROPOSED]

    @property
    def is_forming(self) -> bool:
        """Whether nothing else may be proposed yet."""
        return any(each.is_forming for each in self._commands.values())

    @property
    def claims(self) -> frozenset[str]:
        """The NodeClaims that commands are about."""
        return _united(each.claims for each in self._commands.values())

    @property
    def disrupting(self) -> frozenset[str]:
        """The NodeClaims of commands that are carried out."""
        return _united(each.claims for each in self.begun())

    @property
    def deleting(self) -> frozenset[str]:
        """The NodeClaims whose pods need another node, though they are not deleted yet."""
        return _united(each.deleting for each in self._commands.values())

    @property
    def replacements(self) -> frozenset[str]:
        """The NodeClaims that replace others."""
        return frozenset(
            replacement.claim
            for each in self._commands.values()
            for replacement in each.replacements
            if replacement.claim
        )


def _united(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset(name for each in sets for name in each)
