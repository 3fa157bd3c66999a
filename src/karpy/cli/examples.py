"""The manifests in this package."""

from importlib.resources import files
from typing import Final

SHOP: Final = "shop"
"""A web shop whose pods have every kind of constraint; for plans."""
CLUSTER: Final = "cluster"
"""A NodePool, `inflate` and a small shop, as in `examples/`; for running clusters."""
ON_AWS: Final = "aws"
"""An EC2NodeClass and a NodePool that replace the NodePool of `CLUSTER`."""
PENDING: Final = "cluster/pending"
"""A pod that fits no instance type."""

_ENDING: Final = ".yaml"


def aws_documents() -> list[tuple[str, str]]:
    """Read the manifests of `CLUSTER` with the NodePool for AWS."""
    return [*example_documents(ON_AWS), *example_documents(CLUSTER)[1:]]


def example_documents(folder: str) -> list[tuple[str, str]]:
    """Return the manifests of a folder, as names and texts."""
    place = files("karpy").joinpath("examples", *folder.split("/"))
    names = sorted(each.name for each in place.iterdir() if each.name.endswith(_ENDING))
    return [
        (f"{folder}/{name}", place.joinpath(name).read_text(encoding="utf-8")) for name in names
    ]
