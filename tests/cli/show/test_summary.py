import pytest

from karpy.cli.show.summary import (
    Summary,
    percentile,
    price_at,
    sparkline,
    summary_answer,
    summary_lines,
)

PRICES = ((0.0, 0), (10.0, 400_000), (20.0, 100_000))
SUMMARY = Summary(
    seconds=40.0,
    speed=2.0,
    is_complete=True,
    launched=3,
    removed=2,
    waits=(1.0, 2.0, 9.0),
    prices=PRICES,
    decided=(0.001, 0.012),
    refused=1,
    troubles=0,
)
NOTHING = Summary(
    seconds=0.0,
    speed=1.0,
    is_complete=False,
    launched=0,
    removed=0,
    waits=(),
    prices=((0.0, 0),),
    decided=(),
    refused=0,
    troubles=1,
)


def text_of(summary: Summary) -> list[str]:
    return ["".join(span.text for span in each) for each in summary_lines(summary)]


@pytest.mark.parametrize(
    ("percent", "expected"), [(50, 2.0), (99, 4.0), (100, 4.0), (25, 1.0), (1, 1.0)]
)
def test_a_percentile_is_a_value_that_was_measured(percent: int, expected: float) -> None:
    assert percentile((1.0, 2.0, 3.0, 4.0), percent) == expected


def test_a_percentile_of_no_values_is_zero() -> None:
    assert percentile((), 50) == 0.0


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0, 0), (9.9, 0), (10, 400_000), (15, 400_000), (99, 100_000)]
)
def test_a_price_holds_until_the_next_one(seconds: float, expected: int) -> None:
    assert price_at(PRICES, seconds) == expected


def test_a_sparkline_fills_its_height() -> None:
    assert sparkline([0, 1, 2, 4, 8]) == "▁▂▃▅█"
    assert sparkline([0, 0]) == "▁▁"
    assert sparkline([]) == ""


def test_an_average_weighs_prices_by_their_time() -> None:
    assert (SUMMARY.peak, SUMMARY.average) == (400_000, 150_000)


def test_a_summary_says_what_a_fleet_at_its_peak_would_cost() -> None:
    lines = text_of(SUMMARY)

    assert "Nodes    3 launched, 2 removed, 1 left" in lines
    assert "Pods     3 ran; from creation to running p50 2.0 s, p99 9.0 s" in lines
    assert "Decided  2 times about pods, in 12 ms at most; 1 pod refused, with the reason" in lines
    assert "         $0.1500/h on average, $0.1000/h in the end" in lines
    assert "         as many nodes as at the peak, all the time: 167% more" in lines
    assert "Time     20 s on the wall, 40 s in the cluster" in lines


def test_an_empty_demo_has_a_summary() -> None:
    assert "Nodes    0 launched, 0 removed, 0 left" in text_of(NOTHING)
    assert summary_answer(NOTHING)["dollarsPerHour"]["average"] == 0
