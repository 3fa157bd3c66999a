"""Findings about an input, as text and as JSON."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Any, Final

from karpy.cli.terminal import Line, Span, Style, Terminal, line
from karpy.codec.findings import CONVERTED, Finding, Severity, note

_STYLES: Final = {
    Severity.ERROR: Style.BAD,
    Severity.WARNING: Style.CARE,
    Severity.NOTE: Style.CARE,
}
_CONVERT_HINT: Final = "`karpy convert --check FILE` names each of them"
_ORDER: Final = tuple(Severity)


def report_findings(findings: Iterable[Finding], terminal: Terminal) -> None:
    """
    Write findings to stderr, errors first; consecutive findings with the same hint share it.

    The notes on the fields of a converted object are counted only: `karpy convert` lists them.
    """
    ranked = sorted(_counted(findings), key=lambda each: _ORDER.index(each.severity))
    for each, following in zip_longest(ranked, ranked[1:]):
        terminal.report(*_lines(each, following.hint if following else ""))


def findings_answer(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Write findings as JSON, in the order of the input."""
    return [
        {
            "severity": each.severity.value,
            "code": each.code,
            "object": each.object,
            "source": each.source,
            "path": each.path,
            "message": each.message,
            "hint": each.hint,
            "isLeftOut": each.is_partial,
        }
        for each in findings
    ]


def _counted(findings: Iterable[Finding]) -> list[Finding]:
    """Replace several notes on the conversion of one object by one note that counts them."""
    kept: list[Finding] = []
    changed: dict[tuple[str, str], list[Finding]] = {}
    for each in findings:
        if each.code == CONVERTED:
            changed.setdefault((each.source, each.object), []).append(each)
        else:
            kept.append(each)
    for (source, about), notes in changed.items():
        changes = Counter(each.message.split()[1].rstrip(":") for each in notes)
        counts = ", ".join(f"{count} {change}" for change, count in sorted(changes.items()))
        message = f"is read in its form of today; fields: {counts}"
        whole = note(CONVERTED, message, where=f"{source}, {about}", hint=_CONVERT_HINT)
        kept += [whole] if notes[1:] else notes
    return kept


def _lines(finding: Finding, following: str) -> list[Line]:
    code = "" if finding.severity is Severity.NOTE else f" ({finding.code})"
    label = Span(f"{finding.severity.value}: ", _STYLES[finding.severity])
    lines = [line(label, f"{finding}{code}")]
    if finding.hint and finding.hint != following:
        lines.append(line(Span("  hint: ", Style.QUIET), finding.hint))
    return lines
