"""
Print verdicts as JSON, one line each: `python -m tests.determinism.verdicts 7 real-300`.

A number is a seed of the fuzz, anything else a workload of the benchmark.
"""

import sys

from karpy.bench.workloads import find_recipe
from karpy.codec.karpbench import read_workload
from karpy.codec.verdicts import verdict_to_json
from karpy.core.scheduling.decide import decide
from karpy.model.snapshot import Snapshot
from tests.fuzz.clusters import random_snapshot


def named_snapshot(name: str) -> Snapshot:
    """Make the snapshot a name stands for."""
    if name.isdigit():
        return random_snapshot(int(name))
    return read_workload(find_recipe(name).make(), name)


def verdict_lines(names: list[str]) -> str:
    """Decide on each snapshot, one verdict to a line."""
    return "\n".join(verdict_to_json(decide(named_snapshot(name))).decode() for name in names)


if __name__ == "__main__":
    sys.stdout.write(verdict_lines(sys.argv[1:]))
