"""The manifests that come with the package."""

from importlib.resources import files
from typing import Final

SHOP: Final = "shop"
"""A web shop with everything that makes placing pods hard; for plans."""
CLUSTER: Final = "cluster"
"""A NodePool, `inflate` and a small shop, as in `examples/`; for clusters that run."""
PENDING: Final = "cluster/pending"
"""A pod that no machine can hold."""

_ENDING: Final = ".yaml"


def example_documents(folder: str) -> list[tuple[str, str]]:
    """Read the manifests of one folder, as name and text."""
    place = files("karpy").joinpath("examples", *folder.split("/"))
    names = sorted(each.name for each in place.iterdir() if each.name.endswith(_ENDING))
    return [
        (f"{folder}/{name}", place.joinpath(name).read_text(encoding="utf-8")) for name in names
    ]
