"""
The places where Karpy deliberately follows Karpenter, or deliberately differs.

In code: `# Parity: …` and `# Differs: …` comments. In the rules: `*Differs:* …` in docs/concepts.
"""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from tests.tidy.markdown import anchor
from tests.tidy.repository import ROOT, Comment, comments, product_files, tree

_MARK: Final = re.compile(r"(Parity|Differs): (.+)")
_RULE: Final = re.compile(
    r"^#+ +(?P<heading>[^\n]+)$|\*Differs:\*\s+(?P<text>.+?)(?=\n\s*[-#*]|\n\n|\s*\Z)",
    re.MULTILINE | re.DOTALL,
)


class Mark(NamedTuple):
    """A place where Karpy deliberately follows Karpenter, or differs."""

    kind: str
    text: str
    path: Path
    place: str


def marks_in_code() -> list[Mark]:
    return [mark for path in product_files() for mark in _marks_of(path)]


def marks_in_rules() -> list[Mark]:
    pages = sorted((ROOT / "docs" / "concepts").rglob("*.md"))
    return [mark for page in pages for mark in _rules_of(page)]


def _marks_of(path: Path) -> Iterator[Mark]:
    found = list(comments(path))
    for i, each in enumerate(found):
        if match := _MARK.match(each.text):
            text = " ".join([match[2], *_continuation(found[i:])])
            yield Mark(match[1], text, path, _owner(path, each.line))


def _continuation(found: list[Comment]) -> Iterator[str]:
    for before, each in pairwise(found):
        if not each.stands_alone or each.line != before.line + 1 or _MARK.match(each.text):
            return
        yield each.text


def _owner(path: Path, line: int) -> str:
    owners = [
        node
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    return ".".join(node.name for node in sorted(owners, key=lambda node: node.lineno))


def _rules_of(page: Path) -> Iterator[Mark]:
    heading = ""
    for match in _RULE.finditer(page.read_text(encoding="utf-8")):
        if match["heading"]:
            heading = match["heading"]
        else:
            yield Mark("Differs", " ".join(match["text"].split()), page, anchor(heading))
