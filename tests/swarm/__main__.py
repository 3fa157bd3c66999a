"""Play seeds: `python -m tests.swarm --seeds 200 [--start N] [-j 2]`, or `--seed N`."""

import argparse
import json
import multiprocessing
import os
import sys
from collections import Counter
from time import monotonic

from karpy.errors import KarpyError
from tests.swarm.findings import Finding, Law
from tests.swarm.play import Ending, Story, play, random_story

_SHOWN_PER_SEED = 4
_SHOWN_CHARACTERS = 300
_SEEDS_PER_REPORT = 20


def main() -> int:
    options = _options()
    if options.seed is not None:
        return _one(options.seed)
    return _many(range(options.start, options.start + options.seeds), options.jobs)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.swarm", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many seeds to play")
    parser.add_argument("--start", type=int, default=0, help="the first of them")
    parser.add_argument("--seed", type=int, help="only this one, with the whole story")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count(), help="processes")
    return parser.parse_args()


def _one(seed: int) -> int:
    story = random_story(seed)
    print(_setting(story))
    ending = play(story, has_timeline=True)
    print(ending.timeline)
    print(f"seed {seed}: {len(ending.findings)} findings, at rest after {ending.rest_second:.0f} s")
    for finding in ending.findings:
        print(f"  {finding}")
    return 1 if ending.findings else 0


def _many(seeds: range, jobs: int) -> int:
    begun, broken = monotonic(), Counter[Law]()
    bad = lives = launches = 0
    with multiprocessing.Pool(jobs) as workers:
        for done, (seed, ending) in enumerate(workers.imap_unordered(_try, seeds), start=1):
            lives += ending.lives
            launches += ending.launches
            bad += bool(ending.findings)
            broken.update({finding.law for finding in ending.findings})
            _report(seed, ending.findings)
            if done % _SEEDS_PER_REPORT == 0 or done == len(seeds):
                took = monotonic() - begun
                print(f"{done}/{len(seeds)} seeds, {bad} bad, {took:.0f} s", file=sys.stderr)
    for law, count in broken.most_common():
        print(f"{count} seeds break {law.name}: {law.value}")
    print(f"{len(seeds)} stories, {lives} operators, {launches} launches; {bad} ended badly")
    return 1 if bad else 0


def _try(seed: int) -> tuple[int, Ending]:
    try:
        return seed, play(random_story(seed))
    except KarpyError as error:
        # The simulation raises an error for a loop that does not end.
        return seed, Ending([Finding(Law.DEATH, f"{error.message}")])


def _report(seed: int, findings: list[Finding]) -> None:
    if not findings:
        return
    print(f"seed {seed}: python -m tests.swarm --seed {seed}")
    for finding in findings[:_SHOWN_PER_SEED]:
        print(f"  {str(finding)[:_SHOWN_CHARACTERS]}")
    if len(findings) > _SHOWN_PER_SEED:
        print(f"  and {len(findings) - _SHOWN_PER_SEED} more", flush=True)


def _setting(story: Story) -> str:
    cluster = story.cluster
    objects = [
        *(("NodePool", each) for each in cluster.pools),
        *(("Deployment", each) for each in cluster.deployments),
        *(("StatefulSet", each) for each in cluster.stateful_sets),
        *(("DaemonSet", each) for each in cluster.daemon_sets),
        *(("PodDisruptionBudget", each) for each in cluster.budgets),
        *(("CapacityBuffer", each) for each in cluster.buffers),
    ]
    lines = [
        f"{kind} {each['metadata']['name']} {json.dumps(each['spec'])}" for kind, each in objects
    ]
    lines += [f"fault {each}" for each in story.faults]
    lines += [f"crash {each}" for each in story.crashes]
    lines += [f"outage at {second:.0f} s, for {lasting:.0f} s" for second, lasting in story.outages]
    return "\n".join([*lines, f"has_cloud={story.has_cloud} has_standby={story.has_standby}"])


if __name__ == "__main__":
    sys.exit(main())
