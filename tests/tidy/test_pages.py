import re
from pathlib import Path
from typing import Final

import pytest

from tests.tidy.pages import PAGES
from tests.tidy.parity import Mark, marks_in_code, marks_in_rules
from tests.tidy.repository import PRODUCT, ROOT, shown

_DIFFERENCE: Final = re.compile(r".+: (?:Karpenter|in Karpenter|for Karpenter).+; .*Karpy\b")


@pytest.mark.parametrize("path", PAGES, ids=shown)
def test_a_generated_page_is_up_to_date(path: Path) -> None:
    text = path.read_text(encoding="utf-8") if path.exists() else ""

    assert text == PAGES[path](), "run `make fix` and commit the page"


def test_marks_are_found_with_all_their_lines() -> None:
    """A mark may have several lines, which the page must contain."""
    assert (
        Mark(
            kind="Differs",
            text="a Node with a NodePool label and no NodeClaim in the input: Karpenter does not "
            "count it as managed; Karpy does, because recordings and manifests may hold Nodes "
            "alone.",
            path=PRODUCT / "model" / "nodes.py",
            place="join_node",
        )
        in marks_in_code()
    )


def test_marks_of_the_rules_are_found_under_their_heading() -> None:
    assert (
        Mark(
            kind="Differs",
            text="labels of an existing node: Karpenter may treat the requirements of a placed pod "
            "as further labels of the node; Karpy keeps the node's labels as they are, because "
            "placing a pod does not change them.",
            path=ROOT / "docs" / "concepts" / "provisioning.md",
            place="existing-node-in-order",
        )
        in marks_in_rules()
    )


def test_a_difference_states_the_case_and_what_both_do() -> None:
    vague = [
        f"{mark.path.name}: {mark.text}"
        for mark in (*marks_in_code(), *marks_in_rules())
        if mark.kind == "Differs" and not _DIFFERENCE.match(mark.text)
    ]

    assert vague == [], "write `CASE: Karpenter …; Karpy …, because …`"
