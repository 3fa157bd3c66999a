"""
Measure store, mirror, lists of a real API server, a virtual day, and a cluster at rest.

    python -m benchmarks.worlds

Each benchmark runs in a process of its own and prints one line, which also says whether it missed
its limit or could not run.
"""

import subprocess
import sys
from typing import Final

from msgspec import Struct

from benchmarks.measuring import tell

NAMES: Final = ("store", "mirror", "latency", "listing", "virtual", "resting")
_MISSED: Final = 3
_SECONDS_MAX: Final = 1200


class Line(Struct, frozen=True):
    """The line of one benchmark."""

    name: str
    text: str
    is_met: bool

    def __str__(self) -> str:
        """Return the line as a Markdown list item."""
        return f"- `{self.name}`: {self.text}{'' if self.is_met else ' **missed**'}"


def measure_worlds() -> list[Line]:
    """Run every benchmark."""
    return [_measure(name) for name in NAMES]


def main() -> int:
    """Measure and print."""
    lines = measure_worlds()
    for line in lines:
        print(line)
    return 0 if all(line.is_met for line in lines) else _MISSED


def _measure(name: str) -> Line:
    tell(f"  {name} ...")
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS_MAX,
    )
    said = (done.stdout or done.stderr).strip().splitlines() or ["said nothing"]
    return Line(name, said[-1].removeprefix(f"{name}: "), done.returncode == 0)


if __name__ == "__main__":
    sys.exit(main())
