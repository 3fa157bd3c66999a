"""Headings and links of Markdown pages."""

import re
from pathlib import Path
from typing import Final

_FENCE: Final = re.compile(r"^( *)(```|~~~).*?^\1\2", re.MULTILINE | re.DOTALL)
_CODE: Final = re.compile(r"`[^`\n]+`")
_LINK: Final = re.compile(r"\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
_HEADING: Final = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
_NOT_IN_ANCHOR: Final = re.compile(r"[^\w\- ]")


def links(path: Path) -> list[str]:
    """List the targets of all links and images outside of code."""
    text = _FENCE.sub("", path.read_text(encoding="utf-8"))
    return _LINK.findall(_CODE.sub("", text))


def anchor(heading: str) -> str:
    """Return GitHub's anchor of a heading."""
    return _NOT_IN_ANCHOR.sub("", heading.lower()).replace(" ", "-")


def headings(text: str) -> list[str]:
    return _HEADING.findall(_FENCE.sub("", text))


def why_broken(page: Path, target: str) -> str | None:
    """Return why a relative link is broken, or None; links to the web are not checked."""
    if re.match(r"[a-z][a-z0-9+.-]*:", target):
        return None
    name, _, part = target.partition("#")
    file = (page.parent / name).resolve() if name else page
    if not file.exists():
        return f"there is no `{name}`"
    if part and file.suffix == ".md":
        anchors = {anchor(each) for each in headings(file.read_text(encoding="utf-8"))}
        return None if part in anchors else f"`{name or page.name}` has no heading `#{part}`"
    return None
