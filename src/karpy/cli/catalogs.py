"""The catalogs that `--catalog` knows by name, and which of them the NodePools of an input mean."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from msgspec import Struct

from karpy.codec.catalogs import kwok_catalog, read_catalog
from karpy.codec.jsontext import check_keys, parse_json
from karpy.codec.limits import Unparsable
from karpy.codec.narrowing import Supply
from karpy.errors import CatalogInvalid, ObjectNotFound
from karpy.model.instances import Catalog
from karpy.model.pools import NodePool


class NamedCatalog(Struct, frozen=True):
    """A catalog that comes with Karpy."""

    name: str
    classes: frozenset[tuple[str, str]]
    """Group and kind of the node classes whose NodePools buy from it."""
    load: Callable[[str], Catalog]
    """Makes it, from what follows the colon in `NAME:REGION`."""


CATALOGS: Final = (
    NamedCatalog(
        "kwok", frozenset({("karpenter.kwok.sh", "KWOKNodeClass")}), lambda _: kwok_catalog()
    ),
)
"""The first one is for NodePools whose node class none of them knows."""


def find_catalog(asked: str, read_text: Callable[[Path], str]) -> Supply:
    """Return the catalog of a name, or of a file."""
    name, _, place = asked.partition(":")
    for each in CATALOGS:
        if each.name == name:
            return Supply(asked, each.load(place))
    path = Path(asked)
    is_name = ":" in asked or (not path.suffix and path.name == asked)
    if is_name and not path.exists():
        known = ", ".join(each.name for each in CATALOGS)
        raise ObjectNotFound(kind="catalog", name=asked, known=f"{known}, or a file")
    return Supply(asked, _from_text(path, read_text(path)))


def usual_catalog(pools: Iterable[NodePool]) -> Supply:
    """Return what the NodePools of an input buy from by their node classes."""
    sources = {pool.name: _source_of(pool) for pool in pools}
    names = sorted({each.name for each in sources.values()})
    only = next(iter(sources.values()), CATALOGS[0])
    if not names[1:]:
        return Supply(only.name, only.load(""), is_asked_for=False)
    loaded = {each.name: each.load("") for each in sources.values()}
    first = loaded[names[0]]
    merged = Catalog(
        types=first.types,
        by_pool={pool: loaded[each.name].types for pool, each in sources.items()},
        well_known=first.well_known.union(*(each.well_known for each in loaded.values())),
        reservation_label=max(each.reservation_label for each in loaded.values()),
    )
    return Supply(", ".join(names), merged, is_asked_for=False)


def _source_of(pool: NodePool) -> NamedCatalog:
    ref = (pool.node_class.group, pool.node_class.kind)
    return next((each for each in CATALOGS if ref in each.classes), CATALOGS[0])


def _from_text(path: Path, text: str) -> Catalog:
    try:
        value = parse_json(text)
        check_keys(text, value)
    except Unparsable as error:
        raise CatalogInvalid(path=str(path), problem=f"it is not JSON ({error})") from error
    return read_catalog(value, str(path))
