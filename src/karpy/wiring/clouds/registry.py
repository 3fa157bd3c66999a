"""
The clouds that `karpy run --provider NAME` works with.

A cloud is a module with `FLAGS` and `open_cloud`; what it brings to the operator is a `Cloud`. A
further one takes its own folder in adapters/clouds, its module here, and one line of `PROVIDERS`.
"""

from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from typing import Final, Protocol

from msgspec import Struct

from karpy.adapters.telemetry.eventspecs import EventSpec
from karpy.adapters.telemetry.metrics import Source
from karpy.adapters.telemetry.specs import MetricSpec
from karpy.core.lifecycle.changes import Count, Remark
from karpy.errors import KarpyError, OptionInvalid
from karpy.model.kinds import Kind
from karpy.model.settings import Options
from karpy.ports.clock import Clock
from karpy.ports.cloud import CloudProvider, EventfulCloud, RegistrationHook
from karpy.ports.notices import Notices
from karpy.ports.objects import Feed, Objects
from karpy.wiring.flags import Flag
from karpy.wiring.surface import Part, Parts, Surface, no_parts

KWOK: Final = "kwok"
PROVIDERS: Final[Mapping[str, str]] = {
    "aws": "karpy.wiring.clouds.aws",
    KWOK: "karpy.wiring.clouds.kwok",
}
"""The module of each provider by its name; it is imported only when it is asked for."""

TELLING: Final[Mapping[str, str]] = {"cluster-name": "aws"}
"""Flags that a provider is known by where `--provider` is not given."""

OnTrouble = Callable[[str, KarpyError], None]
"""Called with what could not be done, and why; it is tried again."""
OnCount = Callable[[Count], None]
"""Called with what metrics count."""
CheckWrite = Callable[[str], None]
"""Raises LeadershipUncertain unless a call to the cloud that changes something may be made now."""


async def _unknown_version() -> str:
    return ""


class Site(Struct, frozen=True):
    """What a provider is opened with."""

    objects: Objects
    feed: Feed
    clock: Clock
    notices: Notices
    options: Options
    environ: Mapping[str, str] = {}
    on_trouble: OnTrouble = lambda *_: None
    on_count: OnCount = lambda _: None
    check_write: CheckWrite = lambda _: None
    authority: str = ""
    """The certificates by which the API server is known, as base64; empty if any will do."""
    server_version: Callable[[], Awaitable[str]] = _unknown_version
    """Returns the version of the API server, such as `v1.36.3`; raises ClusterError."""
    on_remark: Callable[[Remark], None] = lambda _: None
    """Called with what is worth a line of the log."""
    add_source: Callable[[Source], None] = lambda _: None
    """Takes what collects gauges whenever metrics are asked for."""


async def _nothing_to_close() -> None:
    """Do nothing."""


class Cloud(Struct, frozen=True):
    """What a provider brings to the operator."""

    provider: CloudProvider
    node_classes: tuple[Kind, ...]
    """The kinds of node class that it serves."""
    parts: Parts = no_parts
    machine_events: EventfulCloud | None = None
    """Announces what becomes of machines; None if the cloud never does."""
    follows: tuple[Part, ...] = ()
    """What it watches, whether this replica leads or not."""
    registration_hooks: tuple[RegistrationHook, ...] = ()
    """What it has to do before a Node registers."""
    close: Callable[[], Awaitable[None]] = _nothing_to_close
    """Closes connections; it is called once all else has ended."""


def surface_of(site: Site, cloud: Cloud, nominations: Objects | None = None) -> Surface:
    """Return all that an operator touches; nominations of pods have their own connection."""
    return Surface(
        site.objects,
        site.feed,
        site.clock,
        cloud.provider,
        nominations,
        cloud.node_classes,
        cloud.parts,
        cloud.machine_events,
        cloud.follows,
        cloud.registration_hooks,
    )


class CloudModule(Protocol):
    """The module of a provider."""

    NODE_CLASSES: tuple[Kind, ...]
    """The kinds of node class that it serves."""
    FLAGS: tuple[Flag, ...]
    """What `karpy run` takes for this provider, beside the flags of every provider."""
    METRICS: tuple[MetricSpec, ...]
    EVENTS: tuple[EventSpec, ...]

    def well_known(self, options: Options) -> frozenset[str]:
        """Return the labels that pods may ask for although their NodePool does not define them."""

    async def open_cloud(self, site: Site) -> Cloud:
        """Check that the provider can work, and make it ready; raise KarpyError if it cannot."""


def find_cloud(name: str) -> CloudModule:
    """Return the module of a provider; raise OptionInvalid if there is none, or an extra lacks."""
    module = PROVIDERS.get(name)
    if module is None:
        raise OptionInvalid(
            name="--provider",
            problem=f"`{name}` is no provider",
            hint=f"write one of {', '.join(sorted(PROVIDERS))}",
        )
    try:
        found: CloudModule = import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("karpy."):
            # No extra brings it: the module of the provider names what does not exist.
            raise
        raise OptionInvalid(
            name="--provider",
            problem=f"`{name}` needs the package `{error.name}`",
            hint=f"install it: pip install 'karpy[{name}]'",
        ) from error
    return found
