import ast
from pathlib import Path

from tests.tidy.repository import ROOT, shown, tree


def test_a_file_of_tests_can_fail() -> None:
    """A collected file without assertions only looks like coverage."""
    toothless = [
        shown(path) for path in sorted((ROOT / "tests").rglob("test_*.py")) if not _bites(path)
    ]

    assert toothless == [], "assert something in a `test_…` function, or rename the file"


def _bites(path: Path) -> bool:
    tests = [
        node
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
    ]
    return any(_asserts(node) for test in tests for node in ast.walk(test))


def _asserts(node: ast.AST) -> bool:
    return isinstance(node, ast.Assert) or (
        isinstance(node, ast.Attribute) and node.attr in {"raises", "warns"}
    )
