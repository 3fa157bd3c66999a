import ast
from pathlib import Path
from typing import Final

from tests.tidy.repository import python_files, shown, tree

FUNCTION_LINES_MAX: Final = 60


def test_a_function_fits_the_screen() -> None:
    too_long = [each for path in python_files() for each in _long_functions(path)]

    assert too_long == [], "keep the ifs in the function and move the fors into others"


def _long_functions(path: Path) -> list[str]:
    return [
        f"{shown(path)}:{node.lineno} {node.name}: {lines} lines"
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := (node.end_lineno or node.lineno) - node.lineno + 1) >= FUNCTION_LINES_MAX
    ]
