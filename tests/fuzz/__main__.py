"""Try seeds on all cores: `python -m tests.fuzz --seeds 1000 [--start N]`, or `--seed N`."""

import argparse
import multiprocessing
import os
import sys
from collections import Counter

from karpy.model.settings import Packing
from tests.fuzz.clusters import raw_snapshot
from tests.fuzz.dice import Dice
from tests.fuzz.judge import DECIDE, Check, Finding, judge, missing
from tests.fuzz.show import show
from tests.fuzz.shrink import shrink, still_finds

_CHUNK = 8
_SHOWN_PER_SEED = 4


def main() -> int:
    options = _options()
    if absent := missing():
        print(f"not there yet, and not checked: {', '.join(absent)}", file=sys.stderr)
        if DECIDE in absent:
            return 1
    checks = frozenset(Check[name.upper()] for name in options.checks)
    packing = Packing[options.packing.upper()]
    if options.seed is not None:
        return _one(options.seed, packing, checks, is_shrinking=options.shrink)
    return _many(range(options.start, options.start + options.seeds), packing, checks)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many seeds to try")
    parser.add_argument("--start", type=int, default=0, help="the first of them")
    parser.add_argument("--seed", type=int, help="only this one, with all that is wrong")
    parser.add_argument("--shrink", action="store_true", help="make the failing cluster small")
    packings = [packing.name.lower() for packing in Packing]
    parser.add_argument("--packing", choices=packings, default=packings[0], help="in which order")
    names = [check.name.lower() for check in Check]
    parser.add_argument("--checks", nargs="+", choices=names, default=names, metavar="CHECK")
    return parser.parse_args()


def _one(seed: int, packing: Packing, checks: frozenset[Check], *, is_shrinking: bool) -> int:
    snapshot = raw_snapshot(seed, packing)
    findings = judge(snapshot, checks)
    names = sorted(feature.name for feature in Dice(seed).features)
    print(f"seed {seed}: {len(findings)} findings; about {', '.join(names)}")
    for finding in findings:
        print(f"  {finding}")
    if findings and is_shrinking:
        small = shrink(snapshot, still_finds(findings[0]))
        print(show(small))
        for finding in judge(small, frozenset({findings[0].check})):
            print(f"  {finding}")
    return 1 if findings else 0


def _many(seeds: range, packing: Packing, checks: frozenset[Check]) -> int:
    failed: Counter[Check] = Counter()
    bad = 0
    with multiprocessing.Pool(os.cpu_count()) as workers:
        jobs = ((seed, packing, checks) for seed in seeds)
        for done, (seed, findings) in enumerate(
            workers.imap_unordered(_try, jobs, chunksize=_CHUNK), start=1
        ):
            if findings:
                bad += 1
                failed.update({finding.check for finding in findings})
                _report(seed, packing, findings)
            if done % 100 == 0 or done == len(seeds):
                print(f"{done}/{len(seeds)} seeds, {bad} bad", file=sys.stderr)
    for check, count in failed.most_common():
        print(f"{count} seeds break {check.name}: {check.value}")
    return 1 if bad else 0


def _try(job: tuple[int, Packing, frozenset[Check]]) -> tuple[int, list[Finding]]:
    seed, packing, checks = job
    return seed, judge(raw_snapshot(seed, packing), checks)


def _report(seed: int, packing: Packing, findings: list[Finding]) -> None:
    how = f"--seed {seed} --packing {packing.name.lower()}"
    print(f"seed {seed}: python -m tests.fuzz {how} --shrink")
    for finding in findings[:_SHOWN_PER_SEED]:
        print(f"  {finding}")
    if len(findings) > _SHOWN_PER_SEED:
        print(f"  and {len(findings) - _SHOWN_PER_SEED} more")


if __name__ == "__main__":
    sys.exit(main())
