"""`karpy aws catalog`; needs the extra `aws`."""

import asyncio
import json
from pathlib import Path

from karpy.adapters.clock import WallClock
from karpy.adapters.clouds.aws.builtin import known_prices
from karpy.adapters.clouds.aws.client import connect_aws
from karpy.adapters.clouds.aws.marketplace import Marketplace
from karpy.adapters.clouds.aws.soldout import SoldOut
from karpy.cli.terminal import Terminal, line
from karpy.codec.catalogs import write_catalog
from karpy.core.aws.catalog import CatalogMaker
from karpy.errors import FileUnwritable, KarpyError
from karpy.model.ec2 import InstanceSettings, Region


def write(terminal: Terminal, region: str, output: Path | None) -> None:
    """Ask AWS and write the catalog to a file, or print it; raise KarpyError."""
    troubles: list[tuple[str, KarpyError]] = []
    found = asyncio.run(_ask(region, troubles))
    for what, error in troubles:
        terminal.report(line(f"warning: cannot {what}, prices are estimates: {error.message}"))
    catalog = CatalogMaker().make(found, {}, usual=InstanceSettings())
    text = json.dumps(write_catalog(catalog), separators=(",", ":")) + "\n"
    if output is None:
        terminal.answer_text(text)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise FileUnwritable(path=str(output), problem=error.strerror or str(error)) from error
    terminal.report(line(f"wrote {len(catalog.types)} instance types of {found.name} to {output}"))


async def _ask(region: str, troubles: list[tuple[str, KarpyError]]) -> Region:
    calls = await connect_aws(region)
    try:
        clock = WallClock()
        marketplace = Marketplace(
            calls,
            clock,
            SoldOut(clock),
            known_prices(calls.region),
            on_trouble=lambda what, error: troubles.append((what, error)),
        )
        await asyncio.gather(marketplace.refresh_types(), marketplace.refresh_prices())
        return marketplace.region()
    finally:
        await calls.close()
