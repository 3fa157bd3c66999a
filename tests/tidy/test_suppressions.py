"""
Lint limits that are waved through are no limits.

Each suppression names its rule and says why, and their number may only fall.
"""

import re
from typing import Final

from tests.tidy.repository import comments, python_files, shown

SUPPRESSIONS: Final = 3
_SUPPRESSION: Final = re.compile(
    r"noqa|type: ?ignore|fmt: ?(off|skip)|pragma: ?no ?cover", re.IGNORECASE
)
_RULE: Final = r"noqa: [A-Z]+\d+(, ?[A-Z]+\d+)*|type: ignore\[[a-z, -]+\]|fmt: \w+|pragma: no cover"
_WITH_REASON: Final = re.compile(rf"({_RULE})( - |  # )\w+ .+")


def test_a_suppression_names_its_rule_and_its_reason() -> None:
    bare = [
        f"{shown(each.path)}:{each.line} {each.text}"
        for path in python_files()
        for each in comments(path)
        if _SUPPRESSION.match(each.text) and not _WITH_REASON.match(each.text)
    ]

    assert bare == [], "write `# noqa: S104 - why` or `# type: ignore[arg-type]  # why`, or mend it"


def test_suppressions_only_become_fewer() -> None:
    found = [
        f"{shown(each.path)}:{each.line} {each.text}"
        for path in python_files()
        for each in comments(path)
        if _SUPPRESSION.match(each.text)
    ]

    assert len(found) <= SUPPRESSIONS, f"mend the code instead; all of them: {found}"
    assert len(found) == SUPPRESSIONS, f"well done; now lower SUPPRESSIONS to {len(found)}"
