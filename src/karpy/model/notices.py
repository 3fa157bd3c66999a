"""Notices: Kubernetes events that Karpy is to emit."""

from typing import Final

from msgspec import Struct

from karpy.model.kinds import Kind

WINDOW_SECONDS: Final = 120.0
"""The default time in which an equal notice is not emitted again."""


class Subject(Struct, frozen=True):
    """The object that an event is about."""

    kind: Kind
    name: str
    namespace: str = ""
    uid: str = ""


class Notice(Struct, frozen=True):
    """An event to emit about an object."""

    subject: Subject
    reason: str
    """The event's reason, a word in CamelCase."""
    note: str
    is_warning: bool = False
    same_as: tuple[str, ...] = ()
    """Notices with equal reason and `same_as` are duplicates; empty if no notice is one."""
    window_seconds: float = WINDOW_SECONDS
    action: str = ""
    """The event's action; empty takes the reason."""
    can_wait: bool = False
    """Whether notices without this flag are emitted first when many are queued."""
