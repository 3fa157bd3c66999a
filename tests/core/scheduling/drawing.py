"""
Hypothesis strategies: requirements, types and offerings over few keys and values.

The possible requirements on a key are listed beforehand, because drawing them takes long.
"""

from itertools import combinations_with_replacement
from typing import Final

from hypothesis import strategies as st

from karpy.model.instances import InstanceType, Offering
from karpy.model.labels import CAPACITY_TYPE, ZONE
from karpy.model.requirements import Requirement, Requirements, collect, one_of
from tests.builders import above, absent, below, exists, is_in, not_in

CUSTOM: Final = "team"
KEYS: Final = (ZONE, "cpus", CUSTOM)
KNOWN: Final = frozenset({ZONE, CAPACITY_TYPE, "cpus"})

values = st.sampled_from(["0", "1", "2", "3", "a", "b", "007"])


def _sayings(key: str) -> list[Requirement]:
    """List the requirements that pods, pools and types may have on a key: of one term, or two."""
    plain = [
        is_in(key, "a"),
        is_in(key, "1", "2"),
        is_in(key, "a", "b", "3", "007"),
        not_in(key, "a"),
        not_in(key, "1", "b"),
        exists(key),
        absent(key),
        above(key, 0),
        above(key, 2),
        below(key, 2),
        below(key, 1),
    ]
    pairs = combinations_with_replacement(plain, 2)
    return list(dict.fromkeys([*plain, *(left & right for left, right in pairs)]))


def requirements_on(key: str) -> st.SearchStrategy[Requirement]:
    """Draw a requirement on one key."""
    return st.sampled_from(_sayings(key))


def requirement_sets(*keys: str) -> st.SearchStrategy[Requirements]:
    """Draw requirements on some of the keys."""
    drawn = st.tuples(*(st.sampled_from([None, *_sayings(key)]) for key in keys))
    return drawn.map(lambda some: collect(each for each in some if each is not None))


def _offering(place: Requirements, price: int, *, is_available: bool) -> Offering:
    spot = {CAPACITY_TYPE: one_of(CAPACITY_TYPE, "spot")}
    return Offering({**place, **spot}, price, is_available)


def _type(requirements: Requirements, offerings: list[Offering]) -> InstanceType:
    return InstanceType("t", requirements, tuple(offerings), {"cpu": 4})


offerings = st.builds(
    _offering, requirement_sets(ZONE, CUSTOM), st.integers(1, 9), is_available=st.booleans()
)
catalogs = st.lists(
    st.builds(_type, requirement_sets(*KEYS), st.lists(offerings, max_size=3)), max_size=5
)
