"""Files that the Python package contains as copies."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from tests.tidy.repository import PRODUCT, ROOT

EXAMPLES: Final = ROOT / "examples"
FOLDER: Final = PRODUCT / "examples" / "cluster"


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


COPIES: Final[dict[Path, Callable[[], str]]] = {
    FOLDER / path.relative_to(EXAMPLES): partial(_read, path)
    for path in sorted(EXAMPLES.rglob("*.yaml"))
}
