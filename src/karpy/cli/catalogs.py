"""The catalogs that `--catalog` accepts by name, and the default for the NodePools of an input."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from karpy.cli.ec2supply import EC2, EC2_CLASSES, Needs, ec2_supply
from karpy.codec.catalogs import kwok_catalog, read_catalog
from karpy.codec.jsontext import check_keys, parse_json
from karpy.codec.limits import Unparsable
from karpy.codec.narrowing import Supply
from karpy.errors import CatalogInvalid, ObjectNotFound
from karpy.model.instances import Catalog
from karpy.model.pools import NodePool

Source: TypeAlias = Callable[[Needs], Supply]
"""Returns the catalog for an input."""


class NamedCatalog(Struct, frozen=True):
    """A catalog that comes with Karpy."""

    name: str
    classes: frozenset[tuple[str, str]]
    """Group and kind of the node classes whose NodePools use this catalog by default."""
    supply: Callable[[str, Needs, Sequence[NodePool]], Supply]
    """Returns the catalog for NodePools of an input; the text is the region of `NAME:REGION`."""


def _kwok_supply(_place: str, _needs: Needs, _pools: Sequence[NodePool]) -> Supply:
    return Supply("kwok", kwok_catalog())


CATALOGS: Final = (
    NamedCatalog("kwok", frozenset({("karpenter.kwok.sh", "KWOKNodeClass")}), _kwok_supply),
    NamedCatalog(EC2, EC2_CLASSES, ec2_supply),
)
"""All named catalogs; the first is the default for NodePools with an unknown node class."""


def find_catalog(choice: str, read_text: Callable[[Path], str]) -> Source:
    """Return the source of a catalog, by name or from a file."""
    name, _, place = choice.partition(":")
    for each in CATALOGS:
        if each.name == name:
            return _named(each, place)
    path = Path(choice)
    is_name = ":" in choice or (not path.suffix and path.name == choice)
    if is_name and not path.exists():
        known = ", ".join(each.name for each in CATALOGS)
        raise ObjectNotFound(kind="catalog", name=choice, known=f"{known}, or a file")
    supply = Supply(choice, _from_text(path, read_text(path)))
    return lambda _: supply


def usual_catalog(needs: Needs) -> Supply:
    """Return the catalogs for the NodePools of an input, chosen by their node classes."""
    buyers: dict[str, list[NodePool]] = {}
    for pool in needs.pools:
        ref = (pool.node_class.group, pool.node_class.kind)
        buyers.setdefault(_source_of(ref).name, []).append(pool)
    if not buyers:
        buyers = {_source_of((each.group, each.kind)).name: [] for each in needs.node_classes}
    sources = [each for each in CATALOGS if each.name in buyers] or [CATALOGS[0]]
    supplies = [each.supply("", needs, buyers.get(each.name, ())) for each in sources]
    first = supplies[0]
    if len(supplies) == 1:
        return replace(first, is_asked_for=False)
    by_pool = {
        pool.name: supply.catalog.types_for(pool.name)
        for source, supply in zip(sources, supplies, strict=True)
        for pool in buyers[source.name]
    }
    catalogs = [each.catalog for each in supplies]
    return Supply(
        ", ".join(each.name for each in supplies),
        Catalog(
            types=first.catalog.types,
            by_pool=by_pool,
            well_known=frozenset().union(*(each.well_known for each in catalogs)),
            reservation_label=max(each.reservation_label for each in catalogs),
        ),
        is_asked_for=False,
        is_estimate=any(each.is_estimate for each in supplies),
        node_classes=frozenset().union(*(each.node_classes for each in supplies)),
        findings=tuple(finding for each in supplies for finding in each.findings),
    )


def _named(catalog: NamedCatalog, place: str) -> Source:
    return lambda needs: catalog.supply(place, needs, needs.pools)


def _source_of(ref: tuple[str, str]) -> NamedCatalog:
    """Return the catalog for node classes of a group and kind."""
    return next((each for each in CATALOGS if ref in each.classes), CATALOGS[0])


def _from_text(path: Path, text: str) -> Catalog:
    try:
        value = parse_json(text)
        check_keys(text, value)
    except Unparsable as error:
        raise CatalogInvalid(path=str(path), problem=f"it is not JSON ({error})") from error
    return read_catalog(value, str(path))
