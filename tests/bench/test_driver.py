"""What `python -m benchmarks` makes of result lines."""

from pathlib import Path

import pytest

from benchmarks.figures import Figure, read_figures
from benchmarks.measuring import Measurement
from benchmarks.processes import Outcome
from benchmarks.report import Page, growth, page_text
from benchmarks.shared import Judgement, judge_alone, judge_together


def _outcome(seconds: float, price: float = 10.0, failed: int = 0) -> Outcome:
    return Outcome(
        workload="w",
        pods=100,
        scheduled=100 - failed,
        failed=failed,
        nodes=3,
        total_price=price,
        wall_s=seconds,
        pods_per_s=100 / seconds,
        peak_rss_mb=50.0,
        breaches=0,
    )


def _measurement(name: str, *seconds: float, theirs: tuple[float, ...] = ()) -> Measurement:
    ours = tuple(_outcome(each) for each in seconds)
    return Measurement(name, ours, tuple(_outcome(each) for each in theirs), "sound")


def _figure(price: float = 10.0, failed: int = 0) -> Figure:
    return Figure(runs=3, best_s=50.0, median_price=price, lowest_price=price, failed=(failed,))


def _missed(judgements: list[Judgement]) -> list[str]:
    return [judgement.what for judgement in judgements if not judgement.is_met]


def test_the_best_of_each_side_counts_and_the_turn_in_the_middle() -> None:
    even = _measurement("real-2000", 0.3, 0.2, theirs=(0.6, 0.4))
    lucky = _measurement("real-2000", 0.4, 0.4, 0.1, theirs=(0.4, 0.4, 0.4))
    unlucky = _measurement("real-2000", 0.4, 0.4, 0.4, theirs=(0.4, 0.4, 0.1))

    assert even.ratio == pytest.approx(0.5)
    assert lucky.ratio == pytest.approx(1.0)
    assert unlucky.ratio == pytest.approx(4.0)
    assert _measurement("real-2000", 0.3).ratio is None


def test_figures_are_pooled_by_workload_without_runs_cut_short(tmp_path: Path) -> None:
    line = '{{"workload":"a","pods":1,"scheduled":1,"failed":{},"nodes":1,"total_price":{},'
    line += '"wall_s":{},"pods_per_s":1,"timed_out":{}}}\n'
    runs = [(0, 5.0, 2.0, "false"), (0, 7.0, 1.5, "false"), (9, 1.0, 0.1, "true")]
    (tmp_path / "provision.jsonl").write_text("".join(line.format(*run) for run in runs))
    (tmp_path / "provision-2.jsonl").write_text(line.format(1, 6.0, 3.0, "false"))
    (tmp_path / "consolidate.jsonl").write_text("not looked at")

    figures = read_figures(tmp_path)

    assert figures == {
        "a": Figure(runs=3, best_s=1.5, median_price=6.0, lowest_price=5.0, failed=(0, 1))
    }


def test_growth_is_shown_for_sizes_that_go_together() -> None:
    measured = [_measurement("real-10000", 1.0), _measurement("real-50000", 5.5)]

    assert growth(measured) == [("real", 10_000, 50_000, 5.5)]


def test_the_page_has_a_row_for_each_workload_and_the_rules() -> None:
    own = [_measurement("real-2000", 0.5, theirs=(1.0,))]
    compared = [_measurement("diverse-1000", 0.5), _measurement("mixed-20", 0.5)]
    page = Page("python -m benchmarks", own, "proto", compared, {"diverse-1000": _figure(12.5)})

    text = page_text(page)

    assert "| `real-2000` | 100 | 0 | 0.500 s | 200 | 3 | 10.00 | 0 | 50 MB | sound |" in text
    assert "| 1.000 s | 10.00 | 0.50 |" in text
    assert "| 50.0 s | 100 | 10.00 | 12.50 | -20.0% | 3 |" in text
    assert "karpbench/v1" in text


def test_all_requirements_can_be_met() -> None:
    measurement = _measurement("real-50000", 0.9, theirs=(1.0,))

    assert _missed(list(judge_alone(measurement, _figure()))) == []


@pytest.mark.parametrize(
    ("measurement", "figure", "missed"),
    [
        (_measurement("real-50000", 1.6, theirs=(1.0,)), _figure(), ["time : prototype"]),
        (_measurement("mixed-1000", 1.6, theirs=(1.0,)), None, ["time : real-10000"]),
        (_measurement("mixed-1000", 1.4, theirs=(1.0,)), None, []),
        (_measurement("mixed-2000", 9.9), None, []),
        (_measurement("real-50000", 0.9), _figure(price=9.9), ["price"]),
        (_measurement("real-50000", 0.9), _figure(failed=2), ["pods without a place"]),
        (
            Measurement("real-2000", (_outcome(1.0, 10.0), _outcome(1.0, 11.0)), (), "2 breaches"),
            None,
            ["same plan in each run", "our checker"],
        ),
        (
            Measurement("real-2000", (_outcome(1.0),), (), "not checked within 120 s"),
            None,
            ["our checker"],
        ),
    ],
)
def test_what_is_missed_is_named(
    measurement: Measurement, figure: Figure | None, missed: list[str]
) -> None:
    assert _missed(list(judge_alone(measurement, figure))) == missed


def test_requirements_between_workloads_are_judged() -> None:
    measured = [
        _measurement("real-10000", 1.0),
        _measurement("real-50000", 6.1),
    ]

    judgements = list(judge_together(measured))

    assert len(judgements) == 1
    assert _missed(judgements) == ["growth 10000 to 50000"]
