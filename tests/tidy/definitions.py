"""The files of deploy/crds, generated from the types."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from karpy.codec.schemas.definitions import CUSTOM_KINDS, CustomKind
from tests.tidy.repository import ROOT

FOLDER: Final = ROOT / "deploy" / "crds"
_NOTE: Final = "# Written by `make fix`; change src/karpy/codec/schemas instead.\n"


def definition_file(custom: CustomKind) -> str:
    """Write the definition of a kind as a file."""
    return _NOTE + custom.to_yaml()


DEFINITIONS: Final[dict[Path, Callable[[], str]]] = {
    FOLDER / f"{each.kind.group}_{each.kind.plural}.yaml": partial(definition_file, each)
    for each in CUSTOM_KINDS
}
