"""Requests as numbers: sums must come out as if every resource were added up by itself."""

from hypothesis import given
from hypothesis import strategies as st

from karpy.core.scheduling.existing import Loads
from karpy.model.resources import add
from tests.builders import node, pod, snapshot
from tests.core.scheduling.answers import hosts

requests = st.dictionaries(st.sampled_from("abcd"), st.integers(0, (1 << 64) - 1))


@given(st.lists(requests, max_size=20))
def test_a_sum_of_loads_can_be_spelled_out(asked: list[dict[str, int]]) -> None:
    loads = Loads()

    found = loads.requests_of(sum(loads.load_of(each) or 0 for each in asked))

    assert found == {name: amount for name, amount in add(*asked).items() if amount}


def test_loads_are_found_again_by_the_same_requests() -> None:
    loads, asked = Loads(), {"cpu": 5, "memory": 7}

    assert [loads.find(asked), loads.find(asked)] == [loads.load_of(asked)] * 2


def test_what_does_not_fit_a_digit_has_no_load() -> None:
    loads = Loads()

    found = [loads.load_of({"cpu": 1 << 64}), loads.load_of({"cpu": -1})]

    assert found == [None, None]


def test_a_bound_pod_may_ask_for_more_than_a_digit_holds() -> None:
    huge = pod("huge", on="n", more={"example.com/stars": "100000000000000000000000"})

    short = node("n", cpu="16", capacity={"example.com/stars": "1"})

    found = hosts(snapshot(nodes=[short], pods=[huge, pod("p")]))

    assert found == {"p": "default-0"}
