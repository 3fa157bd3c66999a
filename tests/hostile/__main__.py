"""Spoil objects by seeds: `python -m tests.hostile --seeds 200 [--start N] [-j 2]`."""

import argparse
import multiprocessing
import os
import sys
from collections import Counter

from karpy.errors import KarpyError
from tests.hostile.objectfuzz import Ending, play

_SHOWN_CHARACTERS = 500
_SHOWN = 20


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many seeds to play")
    parser.add_argument("--start", type=int, default=0, help="the first of them")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count(), help="processes")
    options = parser.parse_args()
    seeds = range(options.start, options.start + options.seeds)
    bad = set_aside = 0
    contained = Counter[str]()
    with multiprocessing.Pool(options.jobs) as workers:
        for seed, ending in workers.imap_unordered(_try, seeds):
            set_aside += ending.set_aside
            bad += bool(ending.findings)
            contained.update(set(ending.contained))
            for each in ending.findings[:_SHOWN]:
                print(f"seed {seed}: {each[:_SHOWN_CHARACTERS]}", flush=True)
    for failure, count in contained.most_common(_SHOWN):
        print(f"held by a barrier, {count} seeds: {failure[:_SHOWN_CHARACTERS]}")
    print(f"{len(seeds)} seeds, {set_aside} versions of objects set aside; {bad} seeds ended badly")
    return 1 if bad else 0


def _try(seed: int) -> tuple[int, Ending]:
    try:
        return seed, play(seed)
    except KarpyError as error:
        # The simulation itself gives up on a loop that does not end.
        return seed, Ending([f"{error.message}"])


if __name__ == "__main__":
    sys.exit(main())
