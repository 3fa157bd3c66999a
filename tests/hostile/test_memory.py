"""Memory does not grow with the number of pods created and deleted."""

import gc
import sys
import tracemalloc
from collections.abc import Iterator

import msgspec
import pytest

from karpy.adapters.mirror.nodebook import NodeBook
from karpy.codec.podjson import PodJsonReader
from tests.builders.nodes import kube_node, node_claim
from tests.soak.lives import Life

FIRST = 6_000
"""Caches are full after this many pods; that of times still grows by five objects per pod."""
PODS = 10_000
OBJECTS_A_POD_MAX = 10
"""A pod that is kept has 40 objects."""


def live(life: Life, first: int, last: int) -> int:
    """Create and delete pods; return the number of Python objects afterwards."""
    for number in range(first, last):
        life.pass_by(number)
    gc.collect()
    return sys.getallocatedblocks()


def come_and_go(book: NodeBook, first: int, last: int) -> int:
    """Create and delete nodes of claims; return the number of Python objects afterwards."""
    for name in map(str, range(first, last)):
        book.claims.put(name, node_claim(name, provider_id=f"kwok://{name}", node_name=name))
        book.nodes.put(name, kube_node(name, provider_id=f"kwok://{name}"))
        book.limits.put(name, {})
        book.nodes.put(name, None)
        book.claims.put(name, None)
        book.limits.put(name, None)
    gc.collect()
    return sys.getallocatedblocks()


@pytest.mark.parametrize("is_leader", [True, False])
async def test_pods_that_are_gone_are_forgotten(*, is_leader: bool) -> None:
    life = Life(is_leader=is_leader)
    before = live(life, 0, FIRST)

    grown = live(life, FIRST, PODS) - before

    assert grown / (PODS - FIRST) <= OBJECTS_A_POD_MAX


def read_large(reader: PodJsonReader, count: int) -> int:
    """Read different pods of 700 KB; return the bytes in use afterwards."""
    for number in range(count):
        values = [f"{number}-{each}-{'x' * 3500}" for each in range(200)]
        spec = {"containers": [{"name": "c"}], "tolerations": [{"value": each} for each in values]}
        meta = {"name": f"job-{number}", "creationTimestamp": "2026-01-01T00:00:00Z"}
        obj = {"metadata": meta, "spec": spec, "status": {"phase": "Pending"}}
        reader.from_bytes(msgspec.json.encode(obj))
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.usefixtures("traced")
def test_pods_as_large_as_they_may_be_are_forgotten_sooner() -> None:
    """A user who may create pods can create thousands of the largest size that etcd accepts."""
    held = read_large(PodJsonReader(), 100)

    assert held <= 60 * 2**20


def test_nodes_that_are_gone_are_forgotten_by_a_replica_that_only_watches() -> None:
    book = NodeBook()
    before = come_and_go(book, 0, 1_000)

    grown = come_and_go(book, 1_000, 2_000) - before

    assert grown / 1_000 <= 0.1
