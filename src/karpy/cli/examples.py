"""The manifests that come with the package."""

from importlib.resources import files
from typing import Final

SHOP: Final = "shop"
"""A web shop with everything that makes placing pods hard; for plans."""
CLUSTER: Final = "cluster"
"""A NodePool, `inflate` and a small shop, as in `examples/`; for clusters that run."""
ON_AWS: Final = "aws"
"""An EC2NodeClass and a NodePool, in place of the NodePool of `CLUSTER`."""
PENDING: Final = "cluster/pending"
"""A pod that no machine can hold."""

_ENDING: Final = ".yaml"


def aws_documents() -> list[tuple[str, str]]:
    """Read the manifests of `CLUSTER` with the NodePool of AWS."""
    return [*example_documents(ON_AWS), *example_documents(CLUSTER)[1:]]


def example_documents(folder: str) -> list[tuple[str, str]]:
    """Read the manifests of one folder, as name and text."""
    place = files("karpy").joinpath("examples", *folder.split("/"))
    names = sorted(each.name for each in place.iterdir() if each.name.endswith(_ENDING))
    return [
        (f"{folder}/{name}", place.joinpath(name).read_text(encoding="utf-8")) for name in names
    ]
