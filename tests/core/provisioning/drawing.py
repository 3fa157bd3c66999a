"""Hypothesis strategies: requirements, types and offerings over few keys and values."""

from functools import reduce
from operator import and_
from typing import Final

from hypothesis import strategies as st

from karpy.model.instances import InstanceType, Offering
from karpy.model.labels import CAPACITY_TYPE, ZONE
from karpy.model.requirement import Operator, Requirement, one_of, require
from karpy.model.requirements import Requirements, collect

CUSTOM: Final = "team"
KNOWN: Final = frozenset({ZONE, CAPACITY_TYPE, "cpus"})
KEYS: Final = (ZONE, "cpus", CUSTOM)

_LISTED: Final = (Operator.IN, Operator.NOT_IN, Operator.EXISTS, Operator.DOES_NOT_EXIST)
_BOUNDED: Final = (Operator.GT, Operator.LT, Operator.GTE, Operator.LTE)

numbers = st.sampled_from(["0", "1", "2", "3"])
values = st.one_of(numbers, st.sampled_from(["a", "b", "007"]))


def requirements_on(key: str) -> st.SearchStrategy[Requirement]:
    """Draw what pods, pools or types may say about one key: up to three expressions together."""
    written = st.one_of(
        st.builds(
            require, st.just(key), st.sampled_from(_LISTED), st.lists(values, min_size=1, max_size=3)
        ),
        st.builds(require, st.just(key), st.sampled_from(_BOUNDED), st.tuples(numbers)),
    )
    return st.lists(written, min_size=1, max_size=3).map(lambda parts: reduce(and_, parts))


def requirement_sets(*keys: str) -> st.SearchStrategy[Requirements]:
    """Draw requirements on some of the keys."""
    drawn = st.tuples(*(st.none() | requirements_on(key) for key in keys))
    return drawn.map(lambda some: collect(each for each in some if each is not None))


offerings = st.builds(
    Offering,
    requirement_sets(ZONE, CUSTOM).map(
        lambda some: {**some, CAPACITY_TYPE: one_of(CAPACITY_TYPE, "spot")}
    ),
    st.integers(1, 9),
    st.booleans(),
)
types = st.builds(
    InstanceType,
    st.text("abc", min_size=1, max_size=3),
    requirement_sets(*KEYS),
    st.lists(offerings, max_size=3).map(tuple),
    st.fixed_dictionaries({"cpu": st.integers(0, 4)}),
)
catalogs = st.lists(types, max_size=6)
