"""The lock fits pyproject.toml, and installed and listed packages fit the lock."""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from packaging.requirements import Requirement

from tests.tidy.lock import BUILDER, LOCK, REQUIREMENTS, RUN_BY, SBOM
from tests.tidy.repository import ROOT

PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCKED: Final = {
    each["name"]: each for each in tomllib.loads(LOCK.read_text(encoding="utf-8"))["package"]
}
PINS: Final = re.compile(
    r"^([a-z0-9-]+)==(\S+)(?: ;.*?)? \\\n((?: +--hash=\S+(?: \\)?\n)+)", re.MULTILINE
)
PUBLIC: Final = {"pypi.org", "files.pythonhosted.org"}

Pins = dict[tuple[str, str], set[str]]
"""The SHA-256 sums of the files of each name and version."""


def _needed() -> Iterator[str]:
    """Yield all packages that Karpy needs for any cloud, with their dependencies."""
    extras = LOCKED["karpy"]["optional-dependencies"]
    rest = [each["name"] for extra in RUN_BY for each in extras[extra]]
    yield from rest
    found, rest = {"karpy", *rest}, ["karpy", *rest]
    while rest:
        needs = {each["name"] for each in LOCKED[rest.pop()].get("dependencies", ())}
        yield from needs - found
        rest += needs - found
        found |= needs


def _files(package: dict[str, Any]) -> Iterator[dict[str, str]]:
    yield from package.get("wheels", ())
    if "sdist" in package:
        yield package["sdist"]


def _locked(names: Iterable[str] = ()) -> Pins:
    return {
        (name, LOCKED[name]["version"]): {
            each["hash"].removeprefix("sha256:") for each in _files(LOCKED[name])
        }
        for name in (names or _needed())
    }


def _required(path: Path = REQUIREMENTS) -> Pins:
    return {
        (name, version): set(re.findall(r"sha256:([0-9a-f]{64})", hashes))
        for name, version, hashes in PINS.findall(path.read_text(encoding="utf-8"))
    }


def _listed() -> Pins:
    components = json.loads(SBOM.read_text(encoding="utf-8"))["components"]
    return {
        (each["name"], each["version"]): {
            one["content"] for file in each["externalReferences"] for one in file["hashes"]
        }
        for each in components
    }


def _plain(requirement: Requirement) -> tuple[str, str, str]:
    name = requirement.name.lower().replace("_", "-")
    return name, ",".join(sorted(requirement.extras)), str(requirement.specifier)


def test_the_lock_is_of_what_the_project_asks_for() -> None:
    asked = {_plain(Requirement(each)) for each in PROJECT["dependencies"]}
    for extra in PROJECT["optional-dependencies"].values():
        asked |= {_plain(Requirement(each)) for each in extra}
    known = {
        _plain(
            Requirement(
                f"{each['name']}[{','.join(each.get('extras', ()))}]{each.get('specifier', '')}"
            )
        )
        for each in LOCKED["karpy"]["metadata"]["requires-dist"]
    }

    assert known == asked, "run `make lock`"


def test_what_is_installed_is_what_is_locked() -> None:
    assert _required() == _locked(), "run `make lock`"


def test_what_builds_the_wheel_is_locked() -> None:
    assert _required(BUILDER) == _locked(["uv"]), "run `make lock`"


def test_what_is_listed_is_what_is_locked() -> None:
    assert _listed() == _locked(), "run `make lock`"


@pytest.mark.parametrize("path", [LOCK, REQUIREMENTS, BUILDER, SBOM], ids=lambda path: path.name)
def test_no_file_names_a_mirror(path: Path) -> None:
    urls = re.findall(r"[a-z+]+://[^\s\"'#]+", path.read_text(encoding="utf-8"))

    assert {urlsplit(each).hostname for each in urls} <= PUBLIC


def test_the_sbom_is_reproducible() -> None:
    found = json.loads(SBOM.read_text(encoding="utf-8"))

    assert {"serialNumber", "timestamp"}.isdisjoint({*found, *found["metadata"]})
