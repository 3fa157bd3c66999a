"""The files that the tidiness tests look at."""

import ast
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
PRODUCT: Final = ROOT / "src" / "karpy"
_MADE_BY_TOOLS: Final = frozenset({"build", "dist"})


class Comment(NamedTuple):
    """One comment, without its hash sign."""

    path: Path
    line: int
    text: str
    stands_alone: bool


def shown(path: Path) -> str:
    """Return a path relative to the repository."""
    return path.relative_to(ROOT).as_posix()


def files(ending: str) -> list[Path]:
    """List the files of the repository with an ending, without hidden folders."""
    folders = [
        each
        for each in ROOT.iterdir()
        if each.is_dir() and not each.name.startswith(".") and each.name not in _MADE_BY_TOOLS
    ]
    nested = [path for folder in folders for path in folder.rglob(f"*{ending}")]
    return sorted([*ROOT.glob(f"*{ending}"), *nested])


def python_files() -> list[Path]:
    return files(".py")


def product_files() -> list[Path]:
    return sorted(PRODUCT.rglob("*.py"))


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def comments(path: Path) -> Iterator[Comment]:
    """Yield the comments of a file."""
    source = path.read_text(encoding="utf-8")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            stands_alone = not token.line[: token.start[1]].strip()
            yield Comment(path, token.start[0], token.string.lstrip("# "), stands_alone)
