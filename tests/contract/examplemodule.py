"""The module of the example provider in docs/guides/writing-a-provider.md."""

from typing import Final

from karpy.adapters.telemetry.eventspecs import EventSpec
from karpy.adapters.telemetry.specs import MetricSpec
from karpy.codec.catalogs import kwok_catalog
from karpy.model.kinds import KWOK_NODE_CLASS, Kind
from karpy.model.labels import WELL_KNOWN
from karpy.model.settings import Options
from karpy.wiring.clouds.registry import Cloud, ProviderInputs
from karpy.wiring.flags import Flag
from tests.contract.examplecloud import ExampleProvider

NODE_CLASSES: Final[tuple[Kind, ...]] = (KWOK_NODE_CLASS,)
FLAGS: Final[tuple[Flag, ...]] = ()
METRICS: Final[tuple[MetricSpec, ...]] = ()
EVENTS: Final[tuple[EventSpec, ...]] = ()


def well_known(options: Options) -> frozenset[str]:
    """Return the labels that pods may ask for although their NodePool does not define them."""
    del options
    return WELL_KNOWN


async def open_cloud(site: ProviderInputs) -> Cloud:
    """Check that the provider can work; raise KarpyError if it cannot."""
    provider = ExampleProvider(site.objects, site.clock, kwok_catalog())
    return Cloud(provider, NODE_CLASSES)
