import pytest

from karpy.cli.tables import (
    Align,
    Column,
    amount_of,
    bar,
    count_of,
    cut,
    dollars,
    few_of,
    labelled,
    per_month,
    table,
)
from karpy.cli.terminal import Line, line


def text(spans: Line) -> str:
    return "".join(span.text for span in spans)


@pytest.mark.parametrize(
    ("fraction", "expected"),
    [(0.0, "░░░░   0%"), (0.5, "██░░  50%"), (1.0, "████ 100%"), (1.3, "████ 130%")],
)
def test_a_bar_shows_and_says_how_full_it_is(fraction: float, expected: str) -> None:
    assert text(bar(fraction, 4)) == expected


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    columns = (Column("name"), Column("$/h", Align.RIGHT))
    rows = [[line("a"), line("10.5")], [line("longer"), line("2")]]

    assert [text(each) for each in table(columns, rows)] == [
        "name     $/h",
        "a       10.5",
        "longer     2",
    ]


def test_numbers_are_written_for_people() -> None:
    assert dollars(82_300) == "$0.0823"
    assert per_month(2_345_600) == "$1,712.29"
    assert amount_of("cpu", 12_500) == "12.5 cores"
    assert amount_of("memory", 3 * 2**30) == "3.0 GiB"
    assert count_of(1, "pod") == "1 pod"
    assert count_of(1200, "pod") == "1,200 pods"
    assert few_of(["a", "b", "c"], 2) == "a, b and 1 more"
    assert cut("abcdef", 4) == "abc…"


def test_a_long_text_wraps_beside_its_label_and_ends_in_time() -> None:
    lines = labelled("why", "one two three four five six", 14, label_width=5, lines_max=2)

    assert [text(each) for each in lines] == ["why  one two", "     three …"]
