"""
The clouds that `karpy run --provider NAME` works with.

A cloud is a module with `FLAGS` and `open_cloud`, which returns a `Cloud` for the operator. To add
one, add its folder in adapters/clouds, its module here, and a line of `PROVIDERS`.
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
from karpy.wiring.surface import OperatorTask, Parts, Surface, no_parts

KWOK: Final = "kwok"
PROVIDERS: Final[Mapping[str, str]] = {
    "aws": "karpy.wiring.clouds.aws",
    KWOK: "karpy.wiring.clouds.kwok",
}
"""The module of each provider, by name; imported only when the provider is used."""

IMPLYING: Final[Mapping[str, str]] = {"cluster-name": "aws"}
"""Flags that imply a provider where `--provider` is not given."""

OnTrouble = Callable[[str, KarpyError], None]
"""Called with a failed action and the error; the action is retried."""
OnCount = Callable[[Count], None]
"""Called with a count for metrics."""
CheckWrite = Callable[[str], None]
"""Raises LeadershipUncertain unless a call that changes the cloud may be made now."""


async def _unknown_version() -> str:
    return ""


class ProviderInputs(Struct, frozen=True):
    """The ports and settings that a provider is opened with."""

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
    """The CA bundle of the API server, as base64; empty if the kubeconfig has none."""
    server_version: Callable[[], Awaitable[str]] = _unknown_version
    """Returns the version of the API server, such as `v1.36.3`; raises ClusterError."""
    on_remark: Callable[[Remark], None] = lambda _: None
    """Called with a line for the log."""
    add_source: Callable[[Source], None] = lambda _: None
    """Adds a source of gauges, which is called at each scrape."""


async def _nothing_to_close() -> None:
    """Do nothing."""


class Cloud(Struct, frozen=True):
    """What a provider brings to the operator."""

    provider: CloudProvider
    node_classes: tuple[Kind, ...]
    """The kinds of node class that it serves."""
    parts: Parts = no_parts
    machine_events: EventfulCloud | None = None
    """Announces events of machines; None if the cloud has none."""
    follows: tuple[OperatorTask, ...] = ()
    """Watches of the cloud, which run whether this replica leads or not."""
    registration_hooks: tuple[RegistrationHook, ...] = ()
    """What the cloud has to complete before a Node counts as registered."""
    close: Callable[[], Awaitable[None]] = _nothing_to_close
    """Closes connections; called after everything else has ended."""


def surface_of(site: ProviderInputs, cloud: Cloud, nominations: Objects | None = None) -> Surface:
    """Return the ports of an operator; nominations of pods have their own connection."""
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
    """Flags of `karpy run` for this provider, in addition to the flags of every provider."""
    METRICS: tuple[MetricSpec, ...]
    EVENTS: tuple[EventSpec, ...]

    def well_known(self, options: Options) -> frozenset[str]:
        """Return the labels that pods may ask for although their NodePool does not define them."""

    async def open_cloud(self, site: ProviderInputs) -> Cloud:
        """Check and prepare the provider; raise KarpyError if it cannot work."""


def find_cloud(name: str) -> CloudModule:
    """Return the module of a provider; raise OptionInvalid if it or its extra is missing."""
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
            # Not a missing extra: the module of the provider imports a module that does not exist.
            raise
        raise OptionInvalid(
            name="--provider",
            problem=f"`{name}` needs the package `{error.name}`",
            hint=f"install it: pip install 'karpy[{name}]'",
        ) from error
    return found
