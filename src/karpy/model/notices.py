"""Notices: what events say to people about objects."""

from typing import Final

from msgspec import Struct

from karpy.model.kinds import Kind

WINDOW_SECONDS: Final = 120.0
"""For so long the same thing is not said again, unless the notice says otherwise."""


class Subject(Struct, frozen=True):
    """The object that an event is about."""

    kind: Kind
    name: str
    namespace: str = ""
    uid: str = ""


class Notice(Struct, frozen=True):
    """Something to tell about an object."""

    subject: Subject
    reason: str
    """A word in CamelCase that tools look for."""
    note: str
    is_warning: bool = False
    same_as: tuple[str, ...] = ()
    """Two notices of one reason that share these say the same; empty means that each is new."""
    window_seconds: float = WINDOW_SECONDS
    action: str = ""
    """What we did or will do; the reason, if it says that already."""
    can_wait: bool = False
    """Whether others go first where there is much to tell."""
