import ast
from typing import Final

from tests.tidy.repository import PRODUCT, product_files, python_files, shown, tree

FORBIDDEN: Final = frozenset({"utils", "helpers", "common", "types", "base", "misc", "manager"})
PURE: Final = ("model", "core", "codec")


def test_modules_are_named_after_what_they_hold() -> None:
    nameless = [shown(path) for path in python_files() if FORBIDDEN & {path.stem, path.parent.name}]

    assert nameless == [], "find the noun its content shares, or put each piece where it belongs"


def test_a_package_says_what_it_is_for() -> None:
    silent = [
        shown(path)
        for path in product_files()
        if path.name == "__init__.py" and not ast.get_docstring(tree(path))
    ]

    assert silent == [], "write a docstring that says what belongs into the package"


def test_a_layer_states_its_law() -> None:
    """A law says what a new module may do; import-linter enforces it."""
    lawless = [
        shown(path)
        for path in PRODUCT.glob("*/__init__.py")
        if not (ast.get_docstring(tree(path)) or "").startswith("LAW: ")
    ]

    assert lawless == [], "begin the docstring of the layer with `LAW: ` and one sentence"


def test_a_package_file_holds_its_docstring_alone() -> None:
    """An import in it would run for every importer of a module below it."""
    busy = [shown(path) for path in PRODUCT.glob("*/**/__init__.py") if len(tree(path).body) > 1]

    assert busy == [], "move the code into a module and import it from there"


def test_the_pure_packages_ban_the_same_things() -> None:
    rules = {(PRODUCT / each / "ruff.toml").read_text(encoding="utf-8") for each in PURE}

    assert len(rules) == 1, "change the ruff.toml of model, core and codec together"
