import re
from pathlib import Path

import pytest

from tests.tidy.markdown import anchor, links, why_broken
from tests.tidy.repository import ROOT, files, product_files, shown


def test_links_between_pages_lead_somewhere() -> None:
    broken = [
        f"{shown(page)}: {why}"
        for page in files(".md")
        for target in links(page)
        if (why := why_broken(page, target))
    ]

    assert broken == [], "mend the link, or write the page"


def test_the_product_sends_people_to_pages_that_exist() -> None:
    """A hint that names a missing page is worse than none."""
    missing = [
        f"{shown(path)}: {page}"
        for path in product_files()
        for page in re.findall(r"docs/[\w/-]+\.md", path.read_text(encoding="utf-8"))
        if not (ROOT / page).exists()
    ]

    assert missing == [], "write the page, or name another one"


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("Time", "time"),
        (
            "7. Reservations (`settings.reserved_capacity`)",
            "7-reservations-settingsreserved_capacity",
        ),
        ("Existing node, in order", "existing-node-in-order"),
    ],
)
def test_an_anchor_is_named_as_on_github(heading: str, expected: str) -> None:
    assert anchor(heading) == expected


def test_a_link_to_a_missing_page_or_heading_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One\n`[no](code.md)` [a](#one) [b](#two) [c](gone.md) [d](https://e.org)\n")

    assert links(page) == ["#one", "#two", "gone.md", "https://e.org"]
    assert [why_broken(page, each) for each in links(page)] == [
        None,
        "`page.md` has no heading `#two`",
        "there is no `gone.md`",
        None,
    ]
