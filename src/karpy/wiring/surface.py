"""The world that an operator runs in, what runs in it, and where it reports."""

from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Protocol

from msgspec import Struct, field

from karpy.adapters.telemetry.health import ProgressCheck
from karpy.adapters.telemetry.metrics import Metrics
from karpy.controllers.context import ControllerContext
from karpy.controllers.writer import Telling
from karpy.model.kinds import KWOK_NODE_CLASS, Kind
from karpy.ports.clock import Clock
from karpy.ports.cloud import CloudProvider, EventfulCloud, RegistrationHook
from karpy.ports.journal import Journal
from karpy.ports.notices import Notices
from karpy.ports.objects import Feed, Objects


class Part(Struct, frozen=True):
    """Something that runs for as long as the operator does."""

    name: str
    run: Callable[[], Coroutine[Any, Any, None]]


ContextOf = Callable[[str], ControllerContext]
"""Returns what a controller works with, by the controller's name."""
Parts = Callable[[ContextOf], Iterator[Part]]
"""Builds controllers; they run while the operator leads."""


def no_parts(context_of: ContextOf) -> Iterator[Part]:
    """Build none."""
    del context_of
    yield from ()


class Surface(Struct, frozen=True):
    """The world that an operator runs in."""

    objects: Objects
    feed: Feed
    clock: Clock
    cloud: CloudProvider
    nominations: Objects | None = None
    """Where nominations of pods are written, thousands at once: launches do not wait for that."""
    node_classes: tuple[Kind, ...] = (KWOK_NODE_CLASS,)
    """The kinds of node class that the cloud serves."""
    parts: Parts = no_parts
    """Builds the controllers that the cloud brings."""
    machine_events: EventfulCloud | None = None
    """Announces what becomes of machines; None if the cloud never does."""
    follows: tuple[Part, ...] = ()
    """What the cloud watches, whether this replica leads or not."""
    registration_hooks: tuple[RegistrationHook, ...] = ()
    """What the cloud has to do before a Node registers."""


class Voice(Telling, Protocol):
    """Reports what happened to metrics and logs."""

    def fail(self, controller: str, key: str, error: BaseException) -> None:
        """Report that a controller could not work on an object; it tries again."""


class Speech(Struct, frozen=True):
    """Where an operator reports: log, events, journal, metrics, health."""

    voice: Voice
    notices: Notices
    journal: Journal | None = None
    metrics: Metrics | None = None
    progress: ProgressCheck = field(default_factory=ProgressCheck)
