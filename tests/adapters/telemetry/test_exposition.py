from math import inf, nan

import pytest
from prometheus_client.parser import text_string_to_metric_families

from karpy.adapters.telemetry.metrics import LineWriter, head, number_text
from karpy.adapters.telemetry.specs import gauge


@pytest.mark.parametrize("value", ["", "plain", "100%s", 'a "b"', "back\\slash", "two\nlines", "ä"])
def test_what_is_written_can_be_read(value: str) -> None:
    line = LineWriter("m", ("first", "second")).write((value, "x"), 2.5)

    (family,) = text_string_to_metric_families(line)

    assert [tuple(each)[:3] for each in family.samples] == [
        ("m", {"first": value, "second": "x"}, 2.5)
    ]


def test_a_metric_without_labels_is_a_name_and_a_number() -> None:
    assert LineWriter("m").write((), 3) == "m 3.0\n"


def test_a_metric_says_what_it_is() -> None:
    spec = gauge("m", (), "One\nline with a \\.")

    assert head(spec) == "# HELP m One\\nline with a \\\\.\n# TYPE m gauge\n"


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0, "0.0"),
        (1.5, "1.5"),
        (64 * 2**30, "68719476736.0"),
        (1e-8, "1e-08"),
        (nan, "NaN"),
        (inf, "+Inf"),
        (-inf, "-Inf"),
    ],
)
def test_numbers_are_written_so_that_go_reads_them(number: float, expected: str) -> None:
    assert number_text(number) == expected
