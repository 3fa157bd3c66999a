"""The ports that an operator runs on, the parts it runs, and where it reports."""

from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Protocol

from msgspec import Struct, field

from karpy.adapters.telemetry.health import ProgressCheck
from karpy.adapters.telemetry.metrics import Metrics
from karpy.controllers.context import ControllerContext
from karpy.controllers.writer import Telemetry
from karpy.model.kinds import KWOK_NODE_CLASS, Kind
from karpy.ports.clock import Clock
from karpy.ports.cloud import CloudProvider, EventfulCloud, RegistrationHook
from karpy.ports.journal import Journal
from karpy.ports.notices import Notices
from karpy.ports.objects import Feed, Objects


class OperatorTask(Struct, frozen=True):
    """A named task that runs as long as the operator does."""

    name: str
    run: Callable[[], Coroutine[Any, Any, None]]


ContextOf = Callable[[str], ControllerContext]
"""Returns the controller context, by the controller's name."""
Parts = Callable[[ContextOf], Iterator[OperatorTask]]
"""Builds controllers; they run while the operator leads."""


def no_parts(context_of: ContextOf) -> Iterator[OperatorTask]:
    """Build no controllers."""
    del context_of
    yield from ()


class Surface(Struct, frozen=True):
    """The ports that an operator runs on, and what its cloud brings."""

    objects: Objects
    feed: Feed
    clock: Clock
    cloud: CloudProvider
    nominations: Objects | None = None
    """Where nominations of pods are written, on a rate limit of their own: thousands at once."""
    node_classes: tuple[Kind, ...] = (KWOK_NODE_CLASS,)
    """The kinds of node class that the cloud serves."""
    parts: Parts = no_parts
    """Builds the controllers of the cloud."""
    machine_events: EventfulCloud | None = None
    """Announces events of machines; None if the cloud has none."""
    follows: tuple[OperatorTask, ...] = ()
    """Watches of the cloud, which run whether this replica leads or not."""
    registration_hooks: tuple[RegistrationHook, ...] = ()
    """What the cloud has to complete before a Node counts as registered."""


class Voice(Telemetry, Protocol):
    """Reports counts, remarks and failures to metrics and logs."""

    def fail(self, controller: str, key: str, error: BaseException) -> None:
        """Report the failed reconcile of an object, which is retried."""


class Reporting(Struct, frozen=True):
    """Where an operator reports: logs, events, journal, metrics and health."""

    voice: Voice
    notices: Notices
    journal: Journal | None = None
    metrics: Metrics | None = None
    progress: ProgressCheck = field(default_factory=ProgressCheck)
