"""Same snapshot, same bytes: whatever the process, the hash seed or the order of the input."""

import os
import subprocess
import sys
from copy import deepcopy

import pytest
from msgspec.structs import replace

from karpy.codec.verdicts import verdict_to_json
from karpy.core.scheduling.decide import decide
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Verdict
from tests.determinism.verdicts import named_snapshot, verdict_lines
from tests.tidy.repository import ROOT

SEEDS = [str(seed) for seed in range(40)]
WORKLOADS = ["diverse-200", "real-300", "mixed-10", "adv-prefs-60", "adv-distinct-100"]


def _lines_under(hash_seed: int, names: list[str]) -> list[str]:
    """Decide in a process of its own; sets of strings have another order there."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.determinism.verdicts", *names],
        env={
            **os.environ,
            "PYTHONHASHSEED": str(hash_seed),
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
        },
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split("\n")


@pytest.mark.parametrize("names", [SEEDS, WORKLOADS], ids=["fuzz", "workloads"])
def test_verdicts_are_the_same_bytes_under_any_hash_seed(names: list[str]) -> None:
    one, two = _lines_under(1, names), _lines_under(2, names)

    differing = [name for name, *both in zip(names, one, two, strict=True) if both[0] != both[1]]

    assert differing == []
    assert one == verdict_lines(names).split("\n")


@pytest.mark.parametrize("name", [*SEEDS[:10], *WORKLOADS])
def test_deciding_twice_is_deciding_once(name: str) -> None:
    cluster = named_snapshot(name)

    first = decide(cluster)

    assert decide(cluster) == first
    assert verdict_to_json(decide(cluster)) == verdict_to_json(first)
    assert cluster == named_snapshot(name), "deciding leaves the snapshot alone"


def _reversed(cluster: Snapshot) -> Snapshot:
    """Turn everything around whose order means nothing."""
    shelves = cluster.catalog
    return replace(
        cluster,
        pods=cluster.pods[::-1],
        nodes=cluster.nodes[::-1],
        pools=cluster.pools[::-1],
        daemons=cluster.daemons[::-1],
        catalog=replace(
            shelves,
            types=shelves.types[::-1],
            by_pool={
                pool: types[::-1] for pool, types in sorted(shelves.by_pool.items(), reverse=True)
            },
        ),
    )


def _decisions(verdict: Verdict) -> tuple[object, ...]:
    """Leave out in which order refusals are listed."""
    refused = {pod: each.reason for each in verdict.refusals for pod in each.pods}
    return verdict.launches, verdict.nominations, refused


def _unshared(cluster: Snapshot) -> Snapshot:
    """Give every pod and every type objects of its own, though they are equal."""
    shelves = cluster.catalog
    return replace(
        cluster,
        pods=tuple(deepcopy(pod) for pod in cluster.pods),
        catalog=replace(
            shelves,
            types=tuple(deepcopy(each) for each in shelves.types),
            by_pool={
                pool: tuple(deepcopy(each) for each in types)
                for pool, types in shelves.by_pool.items()
            },
        ),
    )


@pytest.mark.parametrize("name", [*SEEDS, *WORKLOADS])
def test_what_objects_pods_and_types_share_does_not_matter(name: str) -> None:
    """Sharing saves time: work is done once for each object. It must not be seen otherwise."""
    cluster = named_snapshot(name)

    assert _decisions(decide(_unshared(cluster))) == _decisions(decide(cluster))


@pytest.mark.parametrize("name", [*SEEDS, *WORKLOADS])
def test_the_order_of_the_input_does_not_matter(name: str) -> None:
    """A watch gives no order; the plan must not depend on it."""
    cluster = named_snapshot(name)

    assert _decisions(decide(_reversed(cluster))) == _decisions(decide(cluster))
