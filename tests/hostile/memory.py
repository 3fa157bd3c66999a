"""How much memory something takes on the way."""

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def at_most(megabytes: int) -> Iterator[None]:
    """Fail if more memory than this is taken at any time."""
    tracemalloc.start()
    try:
        yield
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert taken < megabytes * 1_000_000
