"""
Have 200,000 pods live shortly, and see what is still held when they are gone.

    python -m tests.soak [--pods 200000]

Exits with 3 if that is more than 40 MiB.
"""

import argparse
import asyncio
import ctypes
import gc
import os
import sys
from pathlib import Path
from typing import Final

from tests.soak.lives import Life

_PODS: Final = 200_000
_FIRST: Final = 2_000
"""So many have lived when it begins to count: modules are loaded, and tables have their size."""
_MIB_MAX: Final = 40


def main() -> int:
    """Measure and print one line."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--pods", type=int, default=_PODS)
    pods: int = parser.parse_args().pods
    return asyncio.run(_soak(pods))


async def _soak(pods: int) -> int:
    life = Life()
    for number in range(_FIRST):
        life.pass_by(number)
    before = _held()
    for number in range(_FIRST, pods):
        life.pass_by(number)
    grown = (_held() - before) / 2**20
    print(f"soak: {pods:,} pods have come and gone: {grown:.1f} MiB stay (at most {_MIB_MAX})")
    return 0 if grown <= _MIB_MAX else 3


def _held() -> int:
    """Return what this process has of the machine, with what it does not use given back."""
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    raise SystemExit(main())
