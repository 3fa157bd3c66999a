"""Every package that the product imports is declared, and the plain package needs no extra."""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Final

import pytest
from packaging.requirements import Requirement

from tests.tidy.repository import ROOT, product_files, tree

PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OURS: Final = {"karpy", *sys.stdlib_module_names}
BLOCKED: Final = ["aiobotocore", "botocore", "cryptography", "flask", "moto", "textual", "werkzeug"]
WITHOUT_EXTRAS: Final = """
import sys
for name in {blocked}:
    sys.modules[name] = None
sys.argv = ["karpy", *{words}]
from karpy.cli.main import main
main()
"""


LOADED_BY_HELP: Final = """
import sys
sys.argv = ["karpy", "--help"]
from karpy.cli.main import main
try:
    main()
finally:
    print(*sys.modules.keys() & {"cel_expr_python", "jsonschema_rs"}, file=sys.stderr)
"""


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")


def _declared(requirements: list[str]) -> set[str]:
    return {_plain(Requirement(each).name) for each in requirements}


def _of_extras() -> set[str]:
    """Return the packages of all extras except `dev`."""
    extras = PROJECT["optional-dependencies"]
    names = ("embedded", "aws", "aws-fake", "tui")
    return {each for name in names for each in _declared(extras[name])}


def _modules(path: Path) -> Iterator[str]:
    """Yield the modules that a file imports, by statement or by `import_module`."""
    for node in ast.walk(tree(path)):
        match node:
            case ast.Import(names):
                yield from (each.name for each in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module
            case ast.Call(ast.Name("import_module"), [ast.Constant(str(name)), *_]):
                yield name
            case ast.Call(ast.Name("import_module"), [ast.JoinedStr([ast.Constant(start), *_])]):
                yield str(start)


def _imported() -> dict[str, str]:
    """Return each imported third-party module with its distribution."""
    modules = {each.partition(".")[0] for path in product_files() for each in _modules(path)}
    known = packages_distributions()
    return {name: _plain(known.get(name, ["?"])[0]) for name in modules - OURS}


def test_the_reference_imports_nothing_of_what_it_judges() -> None:
    reference = sorted((ROOT / "tests" / "reference").glob("*.py"))
    imported = {name for path in reference for name in _modules(path)}

    assert [name for name in sorted(imported) if name.startswith("karpy.core")] == []


def test_every_package_that_is_imported_is_declared_and_no_other() -> None:
    declared = _declared(PROJECT["dependencies"]) | _of_extras()

    assert {*_imported().values()} == declared


@pytest.mark.parametrize("command", ["", "run"])
def test_no_command_needs_an_extra_to_say_what_it_does(command: str) -> None:
    blocked = [name for name, distribution in _imported().items() if distribution in _of_extras()]
    words = [*filter(None, [command]), "--help"]
    script = WITHOUT_EXTRAS.format(blocked=blocked, words=words)

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)

    assert (sorted(blocked), done.returncode, done.stderr) == (BLOCKED, 0, b"")


def test_the_checkers_of_schemas_are_loaded_by_those_who_ask_them_alone() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED_BY_HELP], capture_output=True, check=False)

    assert (done.returncode, done.stderr) == (0, b"\n")
