"""One word names one thing: docs/glossary.md."""

import ast
from collections import defaultdict
from pathlib import Path

from tests.tidy.repository import PRODUCT, product_files, shown, tree

SCHEMAS = PRODUCT / "codec" / "schemas"
"""The fields of custom resources: these classes have the names of the values they are read into."""


def _public_classes(path: Path) -> list[str]:
    found = [each.name for each in tree(path).body if isinstance(each, ast.ClassDef)]
    return [name for name in found if not name.startswith("_")]


def test_no_two_modules_have_a_public_class_of_the_same_name() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for path in product_files():
        for name in _public_classes(path) if SCHEMAS not in path.parents else ():
            homes[name].append(shown(path))

    shared = {name: paths for name, paths in homes.items() if len(paths) > 1}

    assert not shared, "name each class after its own concept"
