"""KWOK: nodes without machines."""

from pathlib import Path
from typing import Final

from karpy.adapters.clouds.kwok.provider import KwokProvider
from karpy.adapters.telemetry.eventspecs import EventSpec
from karpy.adapters.telemetry.specs import MetricSpec
from karpy.codec.catalogs import kwok_catalog, read_catalog
from karpy.codec.jsontext import parse_json
from karpy.errors import FileUnreadable
from karpy.model.instances import Catalog
from karpy.model.kinds import KWOK_NODE_CLASS, Kind
from karpy.model.settings import Options
from karpy.wiring.clouds.registry import Cloud, ProviderInputs
from karpy.wiring.flags import Flag

NODE_CLASSES: Final[tuple[Kind, ...]] = (KWOK_NODE_CLASS,)
FLAGS: Final[tuple[Flag, ...]] = ()
METRICS: Final[tuple[MetricSpec, ...]] = ()
EVENTS: Final[tuple[EventSpec, ...]] = ()


def well_known(options: Options) -> frozenset[str]:
    """Return the labels that pods may ask for although their NodePool does not define them."""
    return _catalog(options).well_known


async def open_cloud(site: ProviderInputs) -> Cloud:
    """Open KWOK with the instance types of `--instance-types-file-path`."""
    catalog = _catalog(site.options)
    provider = KwokProvider(site.objects, site.clock, catalog, on_trouble=site.on_trouble)
    return Cloud(provider, NODE_CLASSES)


def _catalog(options: Options) -> Catalog:
    if not options.instance_types_file:
        return kwok_catalog()
    path = options.instance_types_file
    try:
        value = parse_json(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FileUnreadable(path=path, problem=str(error)) from error
    return read_catalog(value, path)
