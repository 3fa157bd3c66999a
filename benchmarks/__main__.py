"""
Generate workloads, measure Karpy on them, and write docs/benchmarks.md.

    python -m benchmarks --quick                     a minute; writes .bench/benchmarks.md
    python -m benchmarks                             some minutes
    python -m benchmarks --against PROTO.py          beside another solver
    python -m benchmarks --dir DIR --figures FILE    also beside figures recorded on those files
"""

import argparse
import sys
from pathlib import Path
from typing import Final

from benchmarks.consolidating import TITLE as CONSOLIDATION
from benchmarks.figures import read_figures
from benchmarks.measuring import HAS_NODES, Measurement, measure_file, tell
from benchmarks.nominations import TITLE as NOMINATIONS
from benchmarks.peer.section import TITLE as BESIDE
from benchmarks.processes import RunFailed, make_file
from benchmarks.report import Page, page_text
from benchmarks.sections import section_of, with_section
from benchmarks.worlds import measure_worlds

FILES: Final = Path(".bench")
PAGE: Final = Path("docs/benchmarks.md")
QUICK: Final = (
    *("diverse-200", "diverse-1000", "preference-500", "real-300", "real-2000", "mixed-20"),
    *("adv-distinct-500", "adv-hostanti-500", "adv-zonespread-500", "adv-prefs-500"),
    *("adv-unschedulable-500", "adv-selectors-500"),
)
FULL: Final = (
    *("diverse-1000", "diverse-10000", "diverse-50000", "preference-4000"),
    *("real-2000", "real-10000", "real-50000", "mixed-100", "mixed-1000"),
    *("adv-distinct-2000", "adv-hostanti-2000", "adv-zonespread-2000", "adv-prefs-2000"),
    *("adv-unschedulable-2000", "adv-selectors-2000"),
)


def main() -> int:
    """Measure what the command line asks for."""
    asked = _parse()
    names = asked.names or (QUICK if asked.quick else FULL)
    page = asked.page or (FILES / PAGE.name if asked.quick or asked.names else PAGE)
    FILES.mkdir(exist_ok=True)
    try:
        own = [_measure_own(name, asked) for name in names]
        compared, figures = [], {}
        if asked.dir is not None:
            figures = read_figures(asked.figures)
            compared = [
                measure_file(path, rounds=asked.rounds)
                for path in sorted(asked.dir.glob("*.json"))
                if path.stem in figures
            ]
    except RunFailed as error:
        tell(f"error: {error}")
        return 1
    opponent = asked.against.stem if asked.against else ""
    words = [Path(word).name if "/" in word else word for word in sys.argv[1:]]
    command = " ".join(["python -m benchmarks", *words])
    page.parent.mkdir(parents=True, exist_ok=True)
    text = page_text(
        Page(
            command,
            own,
            opponent=opponent,
            compared=compared,
            figures=figures,
            worlds=[] if asked.quick or asked.names else measure_worlds(),
        )
    )
    # Keep the sections that other benchmarks write.
    before = page.read_text() if page.exists() else ""
    for title in (CONSOLIDATION, BESIDE, NOMINATIONS):
        text = with_section(text, section_of(before, title))
    page.write_text(text)
    tell(f"wrote {page}")
    return int(any("breaches" in each.verdict for each in (*own, *compared)))


def _measure_own(name: str, asked: argparse.Namespace) -> Measurement:
    path = make_file(name, FILES)
    # The other solver ignores running nodes, so that its decision would differ.
    against = None if name.startswith(HAS_NODES) else asked.against
    return measure_file(path, rounds=asked.rounds, against=against)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", help="workloads; by default all the usual ones")
    parser.add_argument("--quick", action="store_true", help="small ones only")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each, at most 3 of big ones")
    parser.add_argument("--against", type=Path, help="script that prints a result line for a file")
    parser.add_argument("--dir", type=Path, help="folder of files that figures are recorded for")
    parser.add_argument("--figures", type=Path, help="result lines of Karpenter, file or folder")
    parser.add_argument("--page", type=Path, help=f"where to write; by default {PAGE}")
    asked = parser.parse_args()
    if (asked.dir is None) != (asked.figures is None):
        parser.error("--dir and --figures go together: figures hold for the very files only")
    return asked


if __name__ == "__main__":
    sys.exit(main())
