"""Try seeds: `python -m tests.fidelity --seeds 300 [--start N]`, or `--seed N`."""

import argparse
import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import Sequence
from time import monotonic

from karpy.adapters.controlplane.plane import ControlPlane
from karpy.adapters.controlplane.programs import require_programs
from karpy.errors import ControlPlaneMissing
from tests.fidelity.clusters import Cluster, random_cluster
from tests.fidelity.judge import Finding, Outcome, examine
from tests.fidelity.realworld import real_world

_SHOWN_PER_SEED = 4


def main() -> int:
    options = _options()
    seeds = range(options.start, options.start + options.seeds)
    is_alone = options.seed is not None
    try:
        with ControlPlane(require_programs(os.environ), has_kwok=False) as plane:
            return asyncio.run(
                _run(plane, [options.seed] if is_alone else seeds, is_alone=is_alone)
            )
    except ControlPlaneMissing as missing:
        print(f"{missing.message}; {missing.hint}", file=sys.stderr)
        return 2


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fidelity", description=__doc__)
    parser.add_argument("--seeds", type=int, default=300, help="how many seeds to try")
    parser.add_argument("--start", type=int, default=0, help="the first of them")
    parser.add_argument("--seed", type=int, help="only this one, with all that is wrong")
    return parser.parse_args()


async def _run(plane: ControlPlane, seeds: Sequence[int], *, is_alone: bool) -> int:
    outcomes: list[Outcome] = []
    begun = monotonic()
    async with real_world(plane) as real:
        for seed in seeds:
            cluster = random_cluster(seed)
            if is_alone:
                print(_story(cluster))
            outcomes.append(await examine(real, cluster))
            _report(seed, outcomes[-1].findings, is_whole=is_alone)
            if len(outcomes) % 20 == 0:
                print(f"{len(outcomes)} seeds, {monotonic() - begun:.0f} s", file=sys.stderr)
    print(_summary(outcomes))
    print(f"{monotonic() - begun:.0f} s")
    return 1 if any(each.findings for each in outcomes) else 0


def _summary(outcomes: list[Outcome]) -> str:
    failed = Counter(check for each in outcomes for check in {one.check for one in each.findings})
    known = Counter(why for each in outcomes for why in set(each.known))
    asked, bound, planned = (
        sum(getattr(each, field) for each in outcomes) for field in ("asked", "bound", "planned")
    )
    bad = sum(bool(each.findings) for each in outcomes)
    lines = [f"{count} seeds break {each.name}: {each.value}" for each, count in failed.items()]
    lines += [f"{count} seeds know {each.name}: {each.value}" for each, count in known.items()]
    lines.append(f"{asked} questions, {bound} answered with a node; {planned} pods planned")
    twice = sum(each.is_second_look for each in outcomes)
    lines.append(f"{len(outcomes)} seeds, {twice} looked at twice, {bad} bad")
    return "\n".join(lines)


def _report(seed: int, findings: tuple[Finding, ...], *, is_whole: bool) -> None:
    if not findings:
        return
    print(f"seed {seed}: python -m tests.fidelity --seed {seed}")
    shown = findings if is_whole else findings[:_SHOWN_PER_SEED]
    for finding in shown:
        print(f"  {finding}")
    if len(findings) > len(shown):
        print(f"  and {len(findings) - len(shown)} more")


def _story(cluster: Cluster) -> str:
    parts = [f"about {', '.join(cluster.features)}"]
    for title in ("nodes", "limits", "volumes", "claims", "bound", "pods"):
        objects = getattr(cluster, title)
        parts += [f"{title}:", *(f"  {json.dumps(each)}" for each in objects)]
    return "\n".join([*parts, f"being deleted: {', '.join(sorted(cluster.ending))}"])


if __name__ == "__main__":
    sys.exit(main())
