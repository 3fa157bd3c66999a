from pathlib import Path

import pytest

from tests.tidy.pages import PAGES
from tests.tidy.parity import Mark, marks_in_code, marks_in_rules
from tests.tidy.repository import PRODUCT, ROOT, shown


@pytest.mark.parametrize("path", PAGES, ids=shown)
def test_a_generated_page_is_up_to_date(path: Path) -> None:
    text = path.read_text(encoding="utf-8") if path.exists() else ""

    assert text == PAGES[path](), "run `make fix` and commit the page"


def test_marks_are_found_with_all_their_lines() -> None:
    """The page is only as good as the collector; this mark has two lines."""
    assert (
        Mark(
            kind="Differs",
            text="a NodePool's label is enough to be managed, since a recording may hold Nodes "
            "alone; Karpenter asks for the NodeClaim.",
            path=PRODUCT / "model" / "nodes.py",
            place="join_node",
        )
        in marks_in_code()
    )


def test_marks_of_the_rules_are_found_under_their_heading() -> None:
    assert (
        Mark(
            kind="Differs",
            text="a node's labels never become wider by the pods placed on it.",
            path=ROOT / "docs" / "concepts" / "provisioning.md",
            place="existing-node-in-order",
        )
        in marks_in_rules()
    )
