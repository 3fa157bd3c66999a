"""The pages of docs/ that are generated from code."""

import os
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Final

from karpy import errors
from karpy.model.verdicts import Constraint, NodeReason, Reason
from tests.tidy.operatorpages import events_page, metrics_page, settings_page
from tests.tidy.parity import Mark, marks_in_code, marks_in_rules
from tests.tidy.repository import ROOT
from tests.tidy.tables import NOTE, table


def errors_page() -> str:
    """List every error with its code."""
    families: list[tuple[str, type[errors.KarpyError]]] = [
        ("Errors in the input", errors.ConfigError),
        ("Errors of an API server", errors.ClusterError),
        ("Errors of a cloud", errors.CloudError),
        ("Bugs of Karpy", errors.Bug),
    ]
    parts = [
        NOTE,
        "# Errors\n",
        "Each error says what happened, its code, and a hint. The codes never change.\n",
    ]
    for title, family in families:
        kinds = sorted(family.__subclasses__(), key=lambda kind: kind.code)
        rows = [(f"`{kind.code}`", kind.__name__, _first_line(kind)) for kind in kinds]
        parts += [f"## {title}\n", table(("code", "name", "meaning"), rows)]
    return "\n".join(parts)


def refusals_page() -> str:
    """List every reason of a refusal."""
    return "\n".join(
        [
            NOTE,
            "# Refusals\n",
            "A verdict has a refusal for each pod that stays pending and each node that stays. The",
            "names are stable, and JSON output has them. The sentences are for human readers and",
            "may change.\n",
            "## Why a pod stays pending\n",
            _enumtable(Reason),
            "## What kept a pod from a node, an instance type or a NodePool\n",
            _enumtable(Constraint),
            "## Why a node stays\n",
            _enumtable(NodeReason),
        ]
    )


def parity_page() -> str:
    """List where behaviour follows Karpenter on purpose, and where it does not."""
    code = marks_in_code()
    return "\n".join(
        [
            NOTE,
            "# Parity with Karpenter\n",
            "Karpenter v1.15 is the model. This page lists where Karpy deliberately differs from",
            "Karpenter, and where it follows a detail that is easy to miss.\n",
            "## Where the rules differ\n",
            _list(marks_in_rules(), "[{name}]({link}#{place})"),
            "## Where the code differs\n",
            _list(
                [each for each in code if each.kind == "Differs"], "`{place}` in [{name}]({link})"
            ),
            "## Where the code follows\n",
            _list(
                [each for each in code if each.kind == "Parity"], "`{place}` in [{name}]({link})"
            ),
        ]
    )


PAGES: Final[dict[Path, Callable[[], str]]] = {
    ROOT / "docs" / "errors.md": errors_page,
    ROOT / "docs" / "events.md": events_page,
    ROOT / "docs" / "metrics.md": metrics_page,
    ROOT / "docs" / "parity.md": parity_page,
    ROOT / "docs" / "refusals.md": refusals_page,
    ROOT / "docs" / "settings.md": settings_page,
}


def _first_line(kind: type) -> str:
    return (kind.__doc__ or "").strip().splitlines()[0]


def _enumtable(kind: type[Enum]) -> str:
    rows = [(f"`{member.name}`", str(member.value)) for member in kind]
    return table(("name", "meaning"), rows)


def _list(marks: list[Mark], place: str) -> str:
    return "".join(f"- {_sentence(mark, place)}\n" for mark in marks) or "Nowhere yet.\n"


def _sentence(mark: Mark, place: str) -> str:
    link = Path(os.path.relpath(mark.path, ROOT / "docs")).as_posix()
    where = place.format(place=mark.place, name=mark.path.name, link=link)
    return f"{mark.text[0].upper()}{mark.text[1:].rstrip('.')}. ({where.removeprefix('`` in ')})"
