"""Sections of docs/benchmarks.md that separate benchmarks write."""

from typing import Final

_BEFORE: Final = "## Run it yourself"


def section_of(page: str, title: str) -> str:
    """Return a section of the page, empty if it has none."""
    _, found, rest = page.partition(f"{title}\n")
    body, _, _ = rest.partition("\n## ")
    return f"{found}{body}".rstrip() if found else ""


def with_section(page: str, section: str) -> str:
    """Return the page with a section, in the place of the old one with its title."""
    if not section:
        return page
    title, _, _ = section.partition("\n")
    old = section_of(page, title)
    if old:
        return page.replace(old, section)
    head, found, tail = page.partition(_BEFORE)
    return f"{head.rstrip()}\n\n{section}\n\n{found}{tail}" if found else f"{page}\n{section}\n"
