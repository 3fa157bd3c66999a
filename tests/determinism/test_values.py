"""Equal snapshots, equal verdicts: which objects a snapshot shares does not matter."""

from copy import deepcopy

import pytest
from msgspec.structs import replace

from karpy.codec.recordings import Recording, RecordingReader, encode_catalog, encode_decision
from karpy.codec.verdicts import verdict_to_json
from karpy.core.scheduling.decide import decide
from karpy.model.settings import Packing
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Verdict
from tests.determinism.verdicts import named_snapshot
from tests.fuzz.clusters import random_snapshot

SEEDS = range(60)
WORKLOADS = ["diverse-200", "adv-prefs-60"]


def _in_pieces(cluster: Snapshot) -> Snapshot:
    """Copy each pod, node and instance type on its own, so that no two share an object."""
    shelves = cluster.catalog
    return replace(
        deepcopy(cluster),
        pods=tuple(deepcopy(pod) for pod in cluster.pods),
        nodes=tuple(deepcopy(node) for node in cluster.nodes),
        daemons=tuple(deepcopy(daemon) for daemon in cluster.daemons),
        catalog=replace(
            shelves,
            types=tuple(deepcopy(each) for each in shelves.types),
            by_pool={
                pool: tuple(deepcopy(each) for each in types)
                for pool, types in shelves.by_pool.items()
            },
        ),
    )


def _recorded(cluster: Snapshot) -> Snapshot:
    """Write a snapshot as a recording does, and read it."""
    digest, catalog = encode_catalog(cluster.catalog)
    reader = RecordingReader()
    reader.read(catalog)
    read = reader.read(encode_decision(cluster, Verdict(), digest, "test"))
    assert isinstance(read, Recording)
    return read.snapshot


def _verdicts(cluster: Snapshot) -> list[bytes]:
    copies = [cluster, deepcopy(cluster), _in_pieces(cluster), _recorded(cluster)]
    assert copies == [cluster] * len(copies)
    return [verdict_to_json(decide(each)) for each in copies]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("packing", Packing)
def test_equal_clusters_give_the_same_bytes(seed: int, packing: Packing) -> None:
    verdicts = _verdicts(random_snapshot(seed, packing))

    assert verdicts == verdicts[:1] * len(verdicts)


@pytest.mark.parametrize("name", WORKLOADS)
def test_equal_workloads_give_the_same_bytes(name: str) -> None:
    verdicts = _verdicts(named_snapshot(name))

    assert verdicts == verdicts[:1] * len(verdicts)
