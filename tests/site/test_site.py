"""The site: every page is on it, and its links hold."""

import tomllib
from pathlib import Path

import pytest

from tests.site.__main__ import CONFIG, main
from tests.site.pages import lay_out, mended, places
from tests.tidy.markdown import links, why_broken
from tests.tidy.repository import ROOT


def _listed(nav: list[object]) -> list[str]:
    found: list[str] = []
    for each in nav:
        match each:
            case str(page):
                found.append(page)
            case dict(section):
                found += [page for pages in section.values() for page in _listed(pages)]
    return found


def test_every_page_is_in_the_navigation_once() -> None:
    nav = _listed(tomllib.loads(CONFIG.read_text())["project"]["nav"])

    assert sorted(nav) == sorted(places().values())


def test_links_of_the_site_hold(tmp_path: Path) -> None:
    lay_out(tmp_path)

    broken = [
        f"{page.relative_to(tmp_path)}: {why}"
        for page in tmp_path.rglob("*.md")
        for target in links(page)
        if not target.partition("#")[2] and (why := why_broken(page, target))
    ]
    assert broken == []


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("[a](../refusals.md#one--two)", "[a](../refusals.md#one-two)"),
        ("[`a`](../../README.md)", "[`a`](../project/readme.md)"),
        ("[a](../../deploy/rbac.yaml)", "[a](../files/deploy/rbac.yaml)"),
        ("[a](../../src/karpy/errors.py)", "a"),
        ("`[a](gone.md)` [b](https://example.com)", "`[a](gone.md)` [b](https://example.com)"),
        ("```\n[a](gone.md)\n```\n[b](gone.md)", "```\n[a](gone.md)\n```\n[b](gone.md)"),
        ("[a](#b)", "[a](#b)"),
    ],
)
def test_a_link_leads_where_it_leads_in_the_repository(link: str, expected: str) -> None:
    page = ROOT / "docs" / "guides" / "operator.md"

    assert mended(page, link, places()) == expected


def test_the_site_is_built_without_a_broken_link(capsys: pytest.CaptureFixture[str]) -> None:
    main()

    assert capsys.readouterr().out == "wrote build/site\n"
