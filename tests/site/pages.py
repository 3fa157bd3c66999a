"""Lay out the pages of the repository for the site, and mend the links that lead out of docs/."""

import os
import re
import shutil
from pathlib import Path
from typing import Final

from tests.tidy.repository import ROOT

DOCS: Final = ROOT / "docs"
_PROJECT: Final = ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
_ASSETS: Final = (".yaml", ".yml", ".json", ".txt")
_FILES: Final = "files"
_LINK: Final = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(<?([^)\s>]+)>?\)")
_CODE: Final = r"^( *)(?:```|~~~)[\s\S]*?^\1(?:```|~~~)[^\n]*$|`[^`\n]+`"
_LINK_OR_CODE: Final = re.compile(rf"(?m){_LINK.pattern}|{_CODE.replace('1', '4')}")
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*:")


def places() -> dict[Path, str]:
    """Say where each page is on the site."""
    pages = {path: path.relative_to(DOCS).as_posix() for path in sorted(DOCS.rglob("*.md"))}
    pages[DOCS / "README.md"] = "index.md"
    pages[ROOT / "README.md"] = "project/readme.md"
    pages[ROOT / "examples" / "README.md"] = "project/examples.md"
    for name in _PROJECT:
        pages[ROOT / name] = f"project/{name.lower()}"
    return pages


def lay_out(folder: Path) -> None:
    """Write all pages, and the files that they link to, into an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    pages = places()
    for path, place in pages.items():
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        text = mended(path, path.read_text(encoding="utf-8"), pages)
        target.write_text(text, encoding="utf-8")
        for asset in _assets(path, text, pages):
            copy = folder / _FILES / asset.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(asset, copy)


def mended(page: Path, text: str, pages: dict[Path, str]) -> str:
    """
    Return a page with links that hold on the site.

    A link to source code, which is no part of the site, becomes its text.
    """

    def new(found: re.Match[str]) -> str:
        # What is code stays as it is, though it may look like a link.
        if found[3] is None:
            return found[0]
        target = _target(page, found[3], pages)
        return found[2] if target is None else f"{found[1]}[{found[2]}]({target})"

    return _LINK_OR_CODE.sub(new, text)


def _target(page: Path, link: str, pages: dict[Path, str]) -> str | None:
    """Return a link as it is on the site; None if its target is not there."""
    if _SCHEME.match(link):
        return link
    name, _, part = link.partition("#")
    anchor = f"#{re.sub(r'-+', '-', part)}" if part else ""
    if not name:
        return anchor
    file = (page.parent / name).resolve()
    if file in pages:
        place = pages[file]
    elif file.suffix in _ASSETS and file.is_file():
        place = f"{_FILES}/{file.relative_to(ROOT).as_posix()}"
    elif file.exists():
        return None
    else:
        # The build finds it, and fails.
        return link
    start = Path(pages[page]).parent.as_posix()
    return Path(os.path.relpath(place, start)).as_posix() + anchor


def _assets(page: Path, text: str, pages: dict[Path, str]) -> list[Path]:
    """List the files that a mended page links to."""
    start = Path(pages[page]).parent
    found = [Path(os.path.normpath(start / each[3])) for each in _LINK.finditer(text)]
    return [
        ROOT / each.relative_to(_FILES) for each in found if each.parts and each.parts[0] == _FILES
    ]
